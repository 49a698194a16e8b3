class Stack:
    def __init__(self, items=()):
        self._items = list(items)

    def push(self, item):
        self._items.append(item)

    def pop(self):
        return self._items.pop()

    def __len__(self):
        return len(self._items)

stack = Stack([1])
stack.push(2)
print(stack.pop(), len(stack))
# ---
from dataclasses import dataclass, field

@dataclass(order=True)
class Finding:
    severity: int
    text: str = field(compare=False)

findings = sorted([Finding(2, "b"), Finding(1, "a")])
print([finding.text for finding in findings])
# ---
from dataclasses import dataclass, asdict, replace

@dataclass(frozen=True)
class Disk:
    mount: str
    used_percent: float

    @classmethod
    def of(cls, record):
        return cls(record.mount, record.used_percent)

    @property
    def is_full(self):
        return self.used_percent > 90

disks = [Disk.of(record) for record in await ops_toolkit.disks()]
print([asdict(replace(disk, used_percent=100.0)) for disk in disks if not disk.is_full])
# ---
import enum

class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2

print(Level.HIGH > Level.LOW, Level["LOW"].name, [level.value for level in Level])
# ---
from typing import NamedTuple, Protocol

class Point(NamedTuple):
    x: int
    y: int = 0

class Shape(Protocol):
    def area(self) -> float: ...

point = Point(3)
print(point.x, point._replace(y=4), *point)
# ---
class Celsius:
    def __init__(self, degrees):
        self.degrees = degrees

    @property
    def fahrenheit(self):
        return self.degrees * 9 / 5 + 32

    @fahrenheit.setter
    def fahrenheit(self, value):
        self.degrees = (value - 32) * 5 / 9

    @staticmethod
    def zero():
        return Celsius(0)

boiling = Celsius(100)
boiling.fahrenheit = 32
print(boiling.degrees, Celsius.zero().fahrenheit)
# ---
class Base:
    name = "base"

    def describe(self):
        return f"I am {self.name}"

class Child(Base):
    name = "child"

    def describe(self):
        return super().describe() + "!"

print(Child().describe(), issubclass(Child, Base))
# ---
class Repository:
    def __init__(self, toolkit):
        self.toolkit = toolkit

    async def subjects(self, number):
        return [commit.subject for commit in await self.toolkit.log(limit=number)]

print(await Repository(git_toolkit).subjects(2))
# ---
class Report:
    def __init__(self):
        self.lines = []

    def add(self, *lines):
        self.lines.extend(lines)
        return self

    def __str__(self):
        return "\n".join(self.lines)

await system_toolkit.send_message(str(Report().add("one", "two")))
# ---
class Countdown:
    def __init__(self, start):
        self.left = start

    def __iter__(self):
        return self

    def __next__(self):
        if self.left <= 0:
            raise StopIteration
        self.left -= 1
        return self.left + 1

print(list(Countdown(3)))
# ---
class Poller:
    def __init__(self, times):
        self.times = times

    def __aiter__(self):
        return self

    async def __anext__(self):
        if not self.times:
            raise StopAsyncIteration
        self.times -= 1
        return await host_toolkit.service("nginx")

async for state in Poller(2):
    print(state.active)
# ---
class Timer:
    async def __aenter__(self):
        self.begin = await system_toolkit.now()
        return self

    async def __aexit__(self, kind, error, trace):
        self.end = await system_toolkit.now()
        return False

async with Timer() as timer:
    await host_toolkit.cpu()
print(timer.begin, timer.end)
# ---
class Suppress:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return kind is not None and issubclass(kind, KeyError)

with Suppress():
    {}["missing"]
print("still here")
# ---
class Node:
    __slots__ = ("value", "next")

    def __init__(self, value, next=None):
        self.value, self.next = value, next

head = Node(1, Node(2))
while head is not None:
    print(head.value)
    head = head.next
# ---
class Vector:
    def __init__(self, *parts):
        self.parts = parts

    def __add__(self, other):
        return Vector(*(a + b for a, b in zip(self.parts, other.parts)))

    def __eq__(self, other):
        return isinstance(other, Vector) and self.parts == other.parts

    def __repr__(self):
        return f"Vector{self.parts!r}"

print(Vector(1, 2) + Vector(3, 4) == Vector(4, 6))
# ---
class Registry(dict):
    def __missing__(self, key):
        self[key] = value = len(self)
        return value

registry = Registry()
print(registry["a"], registry["b"], registry["a"])
# ---
class TooMany(Exception):
    def __init__(self, count, limit):
        super().__init__(f"{count} is more than {limit}")
        self.count = count

try:
    commits = await git_toolkit.log(limit=3)
    if len(commits) > 1:
        raise TooMany(len(commits), 1)
except TooMany as error:
    print(error, error.count)
# ---
import abc

class Check(abc.ABC):
    @abc.abstractmethod
    async def run(self): ...

class DiskCheck(Check):
    async def run(self):
        return max((disk.used_percent for disk in await ops_toolkit.disks()), default=0)

class PortCheck(Check):
    async def run(self):
        return len((await ops_toolkit.ports()).ports)

print({type(check).__name__: await check.run() for check in (DiskCheck(), PortCheck())})
# ---
class Config:
    defaults = {"limit": 5}

    def __getattr__(self, name):
        try:
            return self.defaults[name]
        except KeyError:
            raise AttributeError(name) from None

print(Config().limit, hasattr(Config(), "other"))
# ---
class Meta(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        made.tag = cls.__name__.lower()
        return made

class Thing(metaclass=Meta):
    pass

print(Thing().tag)
# ---
class Outer:
    class Inner:
        value = 3

    git_toolkit = "a class attribute, no toolkit"

    def both(self):
        return self.Inner.value, self.git_toolkit

print(Outer().both())
# ---
class Temperature:
    unit = "C"
    scale = [unit] * 2
    table = {name: index for index, name in enumerate(["low", "high"])}

    def __format__(self, spec):
        return f"{20:{spec or 'd'}} {self.unit}"

print(f"{Temperature()} {Temperature():.1f} {Temperature.table}")
# ---
from types import SimpleNamespace

settings = SimpleNamespace(host="localhost", port=80)
settings.port += 1
print(vars(settings))
# ---
from typing import Generic, TypeVar

Item = TypeVar("Item")

class Box(Generic[Item]):
    def __init__(self, item: Item) -> None:
        self.item = item

    def open(self) -> Item:
        return self.item

print(Box[int](3).open())
# ---
from collections import namedtuple

Row = namedtuple("Row", "name size", defaults=[0])
rows = [Row("a", 3), Row("b")]
print(max(rows, key=lambda row: row.size).name)
# ---
class Cache:
    def __init__(self):
        self.hits = 0
        self.known = {}

    async def service(self, name):
        if name in self.known:
            self.hits += 1
        else:
            self.known[name] = await host_toolkit.service(name=name)
        return self.known[name]

cache = Cache()
for name in ["nginx", "nginx"]:
    await cache.service(name)
print(cache.hits)
# ---
class Lazy:
    @property
    async def branches(self):
        return await git_toolkit.branches()

print(await Lazy().branches)
# ---
class Plural(str):
    def __new__(cls, text):
        return super().__new__(cls, text + "s")

print(Plural("disk"), Plural("port").upper())
# ---
from enum import Enum, auto

class Kind(Enum):
    FILE = auto()
    FOLDER = auto()

    @classmethod
    def of(cls, entry):
        return cls.FOLDER if entry.get("is_dir") else cls.FILE

print([Kind.of(entry).name for entry in await files_toolkit.list("src")])
