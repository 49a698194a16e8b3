#: closures
def counter(start=0):
    count = start

    def step(by=1):
        nonlocal count
        count += by
        return count

    return step

one, two = counter(), counter(10)
print(one(), one(), two(5), one(), [cell.cell_contents for cell in one.__closure__])
#: closures in a loop
late = [lambda: n for n in range(3)]
early = [lambda n=n: n for n in range(3)]
print([f() for f in late], [f() for f in early])
#: all kinds of parameters
def f(a, /, b, *rest, c=3, **more):
    return a, b, rest, c, more

print(f(1, 2), f(1, 2, 3, 4, c=5, d=6), f(*"xy", **{"c": 0, "a": 1}))
import inspect
print(inspect.signature(f), [str(p.kind) for p in inspect.signature(f).parameters.values()])
for wrong in (lambda: f(), lambda: f(a=1, b=2)):
    try:
        wrong()
    except TypeError as error:
        print(error)
#: a default that is kept
def append(item, to=[]):
    to.append(item)
    return to

print(append(1), append(2), append(3, []), append.__defaults__)
#: decorators with arguments
import functools

def repeat(times):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return [function(*args, **kwargs) for _ in range(times)]
        return wrapper
    return decorate

@repeat(3)
def greet(name):
    """Greets."""
    return f"hi {name}"

print(greet("ada"), greet.__name__, greet.__doc__, greet.__wrapped__("bob"))
#: caches
from functools import cache, cached_property, lru_cache

@lru_cache(maxsize=2)
def square(n):
    print("computing", n)
    return n * n

print(square(2), square(2), square(3), square(4), square(2), square.cache_info())

@cache
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

class Lazy:
    @cached_property
    def value(self):
        print("once")
        return 42

lazy = Lazy()
print(fib(90), lazy.value + lazy.value)
#: partial and reduce
from functools import partial, partialmethod, reduce
import operator

power = partial(pow, exp=2)
class Cell:
    def set(self, state):
        self.state = state
        return self
    alive = partialmethod(set, True)

print(power(5), reduce(operator.mul, range(1, 6)), Cell().alive().state, reduce(lambda a, b: b + a, "abc", ""))
#: dispatch on a type
from functools import singledispatch, singledispatchmethod

@singledispatch
def show(value):
    return f"something {value!r}"

@show.register
def _(value: int):
    return f"int {value}"

@show.register(list)
def _(value):
    return "list of " + ", ".join(map(show, value))

class Formatter:
    @singledispatchmethod
    def of(self, x):
        return "?"

    @of.register
    def _(self, x: str):
        return x.upper()

print(show(1), show([1, "a", [2]]), show(2.5), Formatter().of("a"), Formatter().of(1))
#: generators
def evens(limit):
    n = 0
    while n < limit:
        received = yield n
        n = received if received is not None else n + 2

g = evens(10)
print(next(g), next(g), g.send(7), list(g))
def wrapped():
    result = yield from inner()
    print("inner gave", result)

def inner():
    yield 1
    return "done"

print(list(wrapped()))
#: generators that clean up
def resource():
    try:
        print("open")
        yield 1
        yield 2
    except ValueError as error:
        print("caught", error)
        yield "recovered"
    finally:
        print("close")

g = resource()
next(g)
print(g.throw(ValueError("boom")))
g.close()
for item in resource():
    break
del g
#: recursion
def hanoi(n, a="A", b="B", c="C"):
    return [] if n == 0 else hanoi(n - 1, a, c, b) + [a + c] + hanoi(n - 1, b, a, c)

def permutations(items):
    return [[]] if not items else [[x, *rest] for i, x in enumerate(items) for rest in permutations(items[:i] + items[i + 1:])]

def ackermann(m, n):
    return n + 1 if m == 0 else ackermann(m - 1, 1) if n == 0 else ackermann(m - 1, ackermann(m, n - 1))

print(hanoi(3), permutations([1, 2, 3]), ackermann(2, 3))
#: too deep a recursion
def deep(n):
    return deep(n + 1)

try:
    deep(0)
except RecursionError as error:
    print(type(error).__name__, str(error).split(" while")[0].split(" in")[0])
#: lambdas and sorting keys
people = [("bob", 25), ("ada", 36), ("eve", 25)]
print(sorted(people, key=lambda p: (p[1], p[0])), sorted(people, key=lambda p: -p[1]))
print(max(people, key=lambda p: p[1]), (lambda *a, **k: (a, k))(1, x=2), list(filter(lambda p: p[1] < 30, people)))
#: globals and locals
x = 1

def outer():
    x = 2

    def inner():
        global x
        x += 10
        return x

    return x, inner()

print(outer(), x, sorted(name for name in globals() if name in ("x", "outer", "inner")))
#: annotations and hints
from __future__ import annotations
from typing import Optional, get_type_hints

class Later: ...

def f(a: int, b: Optional[Later] = None, *, c: list[str] | None = None) -> dict[str, Later]: ...

print(f.__annotations__)
print(get_type_hints(f)["b"] == Optional[Later], get_type_hints(f)["return"])
#: hints of a class
from typing import Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

class Node:
    children: "list[Node]"
    kind: Literal["a", "b"] = "a"
    count: ClassVar[int] = 0

print(get_type_hints(Node)["children"], get_args(Literal["a", "b"]), get_origin(dict[str, int]), Union[int, str] == Union[str, int])
print(get_args(int | None), Any, Node.__annotations__["kind"])
#: source and documentation of a function
import inspect

def documented(a, b=2):
    """Adds.

    Twice.
    """
    return a + b

print(inspect.getsource(documented))
print(inspect.getdoc(documented), inspect.getfullargspec(documented).args, inspect.isfunction(documented))
#: code made at run time
namespace = {}
exec("def f(x):\n    return x * 2\ny = f(21)", namespace)
print(namespace["y"], eval("a + b", {"a": 1}, {"b": 2}), eval(compile("3 ** 2", "<x>", "eval")))
try:
    eval("1 +")
except SyntaxError as error:
    print(type(error).__name__, error.msg)
#: walrus and chained comparison
data = [3, 8, 1, 9]
if (largest := max(data)) > 5:
    print("large", largest)
print([y for x in data if (y := x * 2) > 5], 1 < 2 < 3 > 2, 0 == False is not None)
while (item := data.pop()) != 3:
    print(item, end=" ")
print()
#: unpacking
first, *middle, last = range(6)
(a, b), c = (1, 2), 3
print(first, middle, last, a, b, c, [*"ab", *range(2)], {**{"x": 1}, "y": 2, **{"x": 3}}, *[7, 8])
a, b = b, a
head, *_ = "word"
print(a, b, head)
try:
    a, b = 1, 2, 3
except ValueError as error:
    print(error)
#: loops with else
for n in range(2, 12):
    for d in range(2, n):
        if n % d == 0:
            break
    else:
        print(n, end=" ")
print()
while False:
    pass
else:
    print("never ran")
#: matching structures
def describe(value):
    match value:
        case 0 | 1:
            return "small"
        case int(n) if n < 0:
            return f"negative {n}"
        case [x, y]:
            return f"pair {x} {y}"
        case [first, *rest]:
            return f"list {first} +{len(rest)}"
        case {"type": "point", "at": (x, y), **rest}:
            return f"point {x},{y} {rest}"
        case str() as text:
            return f"text {text}"
        case None:
            return "nothing"
        case _:
            return "other"

for one in (1, -5, [1, 2], [1, 2, 3], {"type": "point", "at": (3, 4), "z": 1}, "hey", None, 2.5, []):
    print(describe(one))
#: matching classes
from dataclasses import dataclass
from enum import Enum

class Kind(Enum):
    CIRCLE = 1

@dataclass
class Circle:
    radius: float
    kind: Kind = Kind.CIRCLE

class Custom:
    __match_args__ = ("name",)
    def __init__(self, name):
        self.name = name

def area(shape):
    match shape:
        case Circle(r, Kind.CIRCLE) if r > 0:
            return round(3.14 * r * r, 2)
        case Circle(radius=0):
            return 0
        case Custom("square" | "box" as name):
            return name

print(area(Circle(2)), area(Circle(0)), area(Custom("box")), area(Custom("x")))
