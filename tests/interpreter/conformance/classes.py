#: a class with methods and repr
class Account:
    def __init__(self, owner, balance=0):
        self.owner, self.balance = owner, balance

    def deposit(self, amount):
        if amount <= 0:
            raise ValueError("amount must be positive")
        self.balance += amount
        return self

    def __repr__(self):
        return f"Account({self.owner!r}, {self.balance})"

print(Account("ada").deposit(10).deposit(5))
try:
    Account("bob").deposit(-1)
except ValueError as error:
    print("refused:", error)
#: inheritance and the order of methods
class Base:
    def who(self):
        return ["Base"]

class Left(Base):
    def who(self):
        return ["Left", *super().who()]

class Right(Base):
    def who(self):
        return ["Right", *super().who()]

class Both(Left, Right):
    def who(self):
        return ["Both", *super().who()]

print(Both().who(), [one.__name__ for one in Both.__mro__])
#: a dataclass
from dataclasses import asdict, astuple, dataclass, field, fields, replace

@dataclass(order=True)
class Item:
    price: float
    name: str = field(compare=False)
    tags: list[str] = field(default_factory=list, compare=False)

items = sorted([Item(3.5, "tea"), Item(1.25, "bun", ["sweet"]), Item(2, "egg")])
print(items)
print(asdict(items[0]), astuple(items[1]), replace(items[2], name="green tea"))
print([f.name for f in fields(Item)], Item(1, "a") == Item(1, "b"))
#: a frozen dataclass with slots
from dataclasses import FrozenInstanceError, dataclass

@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0

    def __post_init__(self):
        if self.x < 0:
            raise ValueError("x is negative")

point = Point(1, 2)
try:
    point.x = 5
except FrozenInstanceError as error:
    print("frozen:", error)
print(hash(point) == hash(Point(1, 2)), hasattr(point, "__dict__"), {point: "here"}[Point(1, 2)])
#: dataclass inheritance and keyword only fields
from dataclasses import KW_ONLY, InitVar, dataclass

@dataclass
class Shape:
    name: str
    _: KW_ONLY
    colour: str = "red"

@dataclass
class Square(Shape):
    side: float = 1.0
    scale: InitVar[int] = 1

    def __post_init__(self, scale):
        self.side *= scale

print(Square("s", 2.0, 3, colour="blue"))
#: properties
class Celsius:
    def __init__(self, degrees):
        self.degrees = degrees

    @property
    def fahrenheit(self):
        """In the other unit."""
        return self.degrees * 9 / 5 + 32

    @fahrenheit.setter
    def fahrenheit(self, value):
        self.degrees = (value - 32) * 5 / 9

    @fahrenheit.deleter
    def fahrenheit(self):
        self.degrees = None

one = Celsius(100)
one.fahrenheit = 50
print(one.degrees, Celsius.fahrenheit.__doc__)
del one.fahrenheit
print(one.degrees)
#: a descriptor that checks
class Positive:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner=None):
        return self if instance is None else getattr(instance, self.name)

    def __set__(self, instance, value):
        if value <= 0:
            raise ValueError(f"{self.name[1:]} must be positive, not {value}")
        setattr(instance, self.name, value)

class Box:
    width, height = Positive(), Positive()

    def __init__(self, width, height):
        self.width, self.height = width, height

print(Box(2, 3).width * Box(2, 3).height, type(Box.width).__name__)
try:
    Box(2, -3)
except ValueError as error:
    print(error)
#: a metaclass that registers
class Registry(type):
    known = {}

    def __new__(mcs, name, bases, namespace, **options):
        made = super().__new__(mcs, name, bases, namespace)
        mcs.known[name] = options
        return made

    def __init__(cls, name, bases, namespace, **options):
        super().__init__(name, bases, namespace)

    def __len__(cls):
        return len(cls.known)

class First(metaclass=Registry, weight=1): ...
class Second(First, weight=2): ...
print(Registry.known, len(First), type(Second).__name__)
#: a metaclass that prepares
class Ordered(type):
    @classmethod
    def __prepare__(mcs, name, bases):
        return {"prepared": name.lower()}

    def __call__(cls, *args):
        print("making", cls.__name__, args)
        return super().__call__(*args)

class Thing(metaclass=Ordered):
    def __init__(self, x):
        self.x = x

print(Thing(3).x, Thing.prepared)
#: subclasses that announce themselves
class Plugin:
    plugins = []

    def __init_subclass__(cls, /, kind="plain", **rest):
        super().__init_subclass__(**rest)
        cls.kind = kind
        Plugin.plugins.append(cls.__name__)

class A(Plugin): ...
class B(Plugin, kind="special"): ...
print(Plugin.plugins, A.kind, B.kind)
#: abstract classes
from abc import ABC, abstractmethod

class Animal(ABC):
    @property
    @abstractmethod
    def sound(self): ...

    def speak(self):
        return f"{type(self).__name__} says {self.sound}"

class Dog(Animal):
    sound = "woof"

try:
    Animal()
except TypeError as error:
    print(str(error).split(" with")[0])
print(Dog().speak(), Animal.__abstractmethods__)
#: operators
class Vector:
    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y) if isinstance(other, Vector) else NotImplemented

    def __rmul__(self, factor):
        return Vector(factor * self.x, factor * self.y)

    def __neg__(self):
        return -1 * self

    def __eq__(self, other):
        return (self.x, self.y) == (other.x, other.y)

    def __bool__(self):
        return bool(self.x or self.y)

    def __matmul__(self, other):
        return self.x * other.x + self.y * other.y

    def __repr__(self):
        return f"<{self.x}, {self.y}>"

print(Vector(1, 2) + 3 * Vector(1, 1), -Vector(1, 0), Vector(1, 2) @ Vector(3, 4), bool(Vector(0, 0)))
try:
    Vector(1, 2) + 1
except TypeError as error:
    print(error)
#: a container of its own
class Deck:
    def __init__(self):
        self.cards = [rank + suit for suit in "SH" for rank in "A23"]

    def __len__(self):
        return len(self.cards)

    def __getitem__(self, place):
        return self.cards[place]

    def __setitem__(self, place, card):
        self.cards[place] = card

    def __delitem__(self, place):
        del self.cards[place]

    def __contains__(self, card):
        return card in self.cards

deck = Deck()
deck[0] = "XX"
del deck[1]
print(len(deck), deck[0], deck[-1], deck[1:3], "3H" in deck, list(reversed(deck)), [c for c in deck if c[1] == "H"])
#: attributes made when asked for
class Lazy:
    def __getattr__(self, name):
        if name.startswith("no_"):
            raise AttributeError(name)
        value = name.upper()
        setattr(self, name, value)
        return value

    def __setattr__(self, name, value):
        super().__setattr__(name, value + "!")

    def __delattr__(self, name):
        print("deleting", name)
        super().__delattr__(name)

lazy = Lazy()
print(lazy.hello, lazy.__dict__, getattr(lazy, "no_way", "default"), hasattr(lazy, "no_no"))
del lazy.hello
#: class methods and static methods
class Date:
    def __init__(self, year, month):
        self.year, self.month = year, month

    @classmethod
    def parse(cls, text):
        return cls(*map(int, text.split("-")))

    @staticmethod
    def is_leap(year):
        return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)

class Later(Date): ...
print(type(Later.parse("2024-05")).__name__, Later.parse("2024-05").month, Date.is_leap(1900), Date.is_leap(2000))
#: a callable object and a class decorator
def counted(cls):
    original = cls.__init__

    def __init__(self, *args, **kwargs):
        cls.made = getattr(cls, "made", 0) + 1
        original(self, *args, **kwargs)

    cls.__init__ = __init__
    return cls

@counted
class Adder:
    def __init__(self, n):
        self.n = n

    def __call__(self, x):
        return x + self.n

print(list(map(Adder(5), range(3))), Adder(1)(1), Adder.made, callable(Adder(0)))
#: an enumeration
from enum import Enum, Flag, IntEnum, StrEnum, auto, unique

@unique
class Colour(Enum):
    RED = 1
    GREEN = auto()

    @property
    def pretty(self):
        return self.name.title()

class Level(IntEnum):
    LOW = 1
    HIGH = 10

class Word(StrEnum):
    YES = auto()

class Mode(Flag):
    READ = auto()
    WRITE = auto()
    BOTH = READ | WRITE

print(list(Colour), Colour(2), Colour["RED"].pretty, Level.HIGH > 5, Word.YES + "!", Mode.READ in Mode.BOTH, Mode.BOTH)
try:
    Colour(9)
except ValueError as error:
    print(error)
#: a protocol and a generic class
from typing import Generic, Protocol, TypeVar, runtime_checkable

T = TypeVar("T")

@runtime_checkable
class Closes(Protocol):
    def close(self) -> None: ...

class Stack(Generic[T]):
    def __init__(self) -> None:
        self.items: list[T] = []

    def push(self, item: T) -> "Stack[T]":
        self.items.append(item)
        return self

    def close(self) -> None:
        self.items.clear()

print(Stack[int]().push(1).push(2).items, isinstance(Stack(), Closes), isinstance([], Closes), Stack[int])
#: named tuples
from collections import namedtuple
from typing import NamedTuple

Pair = namedtuple("Pair", "left right", defaults=[0])

class Row(NamedTuple):
    name: str
    size: int = 3

print(Pair(1), Pair(1, 2)._asdict(), Pair(1)._replace(right=9), Row("a"), Row._fields, Row("b", 4)[1])
left, right = Pair("l", "r")
print(left + right, Row("a") == ("a", 3))
#: comparing by one attribute
from functools import total_ordering

@total_ordering
class Version:
    def __init__(self, text):
        self.parts = tuple(int(part) for part in text.split("."))

    def __eq__(self, other):
        return self.parts == other.parts

    def __lt__(self, other):
        return self.parts < other.parts

    def __hash__(self):
        return hash(self.parts)

print(Version("1.10") > Version("1.9"), Version("1.0") <= Version("1.0"), len({Version("1"), Version("1")}))
print(max(map(Version, ["1.2", "1.12", "0.9"])).parts)
#: copying and pickling
import copy
import pickle

class Node:
    def __init__(self, name, children=()):
        self.name, self.children = name, list(children)

    def __eq__(self, other):
        return (self.name, self.children) == (other.name, other.children)

tree = Node("root", [Node("a"), Node("b", [Node("c")])])
shallow, deep, back = copy.copy(tree), copy.deepcopy(tree), pickle.loads(pickle.dumps(tree))
tree.children[0].name = "changed"
print(shallow.children[0].name, deep.children[0].name, back.children[0].name, back == deep, type(back) is Node)
#: names of a class and of this module
class Outer:
    class Inner:
        def method(self): ...

    def function(self):
        def inside(): ...
        return inside

print(__name__, Outer.__module__, Outer.Inner.__qualname__, Outer.Inner.method.__qualname__, Outer().function().__qualname__)
print(sorted(name for name in vars(Outer) if not name.startswith("__")), Outer.Inner.__doc__)
import sys
print(sys.modules["__main__"].Outer is Outer, sys.modules[Outer.__module__].__name__)
#: private names and slots
class Safe:
    __slots__ = ("__code", "open")

    def __init__(self):
        self.__code = 1234
        self.open = False

    def unlock(self, code):
        self.open = code == self.__code
        return self.open

safe = Safe()
print(safe.unlock(1), safe.unlock(1234), safe._Safe__code)
try:
    safe.other = 1
except AttributeError as error:
    print(error)
