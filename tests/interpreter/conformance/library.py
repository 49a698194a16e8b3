#: hashes
import hashlib
import hmac
print(hashlib.sha256(b"x").hexdigest(), hashlib.md5(b"x").hexdigest(), hashlib.sha1(b"").hexdigest()[:10], hashlib.blake2b(b"x", digest_size=8).hexdigest(), hashlib.sha3_256(b"").hexdigest()[:8])
digest = hashlib.new("sha512")
digest.update(b"a")
digest.update(b"b")
print(digest.hexdigest()[:16], digest.digest_size, hmac.new(b"key", b"message", hashlib.sha256).hexdigest()[:16], hmac.compare_digest("a", "a"), "sha256" in hashlib.algorithms_guaranteed)
#: keys from passwords
import hashlib
import warnings
warnings.simplefilter("ignore")
print(hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 1000).hex())
#: unique ids and secrets
import secrets
import uuid
print(uuid.uuid5(uuid.NAMESPACE_DNS, "example.org"), uuid.UUID("12345678123456781234567812345678").hex[:8], uuid.uuid4().version, len(secrets.token_urlsafe(16)) > 16, secrets.choice("a"))
#: operators as functions
import operator
print(operator.itemgetter(1, 0)("ab"), operator.attrgetter("real")(5), operator.methodcaller("upper")("x"), operator.truediv(7, 2), operator.contains([1], 1), operator.not_(0), operator.concat("a", "b"))
rows = [{"n": 2, "s": "b"}, {"n": 1, "s": "c"}]
print(sorted(rows, key=operator.itemgetter("n")), operator.index(5), operator.countOf("banana", "a"))
#: arguments of a command
import argparse
parser = argparse.ArgumentParser(prog="tool", description="Does things.")
parser.add_argument("name")
parser.add_argument("-n", "--number", type=int, default=1, help="how many")
parser.add_argument("--flag", action="store_true")
commands = parser.add_mutually_exclusive_group()
commands.add_argument("--one", action="append")
print(parser.parse_args(["x", "-n", "5", "--flag", "--one", "a", "--one", "b"]))
print(parser.format_usage().strip())
import contextlib
import io
try:
    with contextlib.redirect_stderr(io.StringIO()) as said:
        parser.parse_args(["x", "-n", "five"])
except SystemExit as error:
    print("exit", error.code, said.getvalue().splitlines()[-1])
#: syntax trees
import ast
tree = ast.parse("x = [i ** 2 for i in range(3) if i]\ndef f(a, b=1): return a + b")
print(sorted({type(node).__name__ for node in ast.walk(tree)})[:6], ast.unparse(tree.body[1]), ast.literal_eval("{'a': [1, (2.5, None)]}"))
class Doubler(ast.NodeTransformer):
    def visit_Constant(self, node):
        return ast.copy_location(ast.Constant(node.value * 2), node)
print(eval(compile(ast.fix_missing_locations(Doubler().visit(ast.parse("1 + 2 * 3", mode="eval"))), "<t>", "eval")), ast.dump(ast.parse("a", mode="eval")))
try:
    ast.literal_eval("f()")
except ValueError as error:
    print("refused")
#: inspecting objects
import inspect
class Thing:
    """A thing."""
    size: int = 3
    def method(self, a, *, b=1): ...
    @property
    def prop(self): ...
print([name for name, _ in inspect.getmembers(Thing) if not name.startswith("_")], inspect.signature(Thing.method), inspect.isclass(Thing), inspect.getdoc(Thing), inspect.getmro(Thing)[1])
print(inspect.signature(lambda x, y=2: 0).bind(1).arguments, inspect.currentframe().f_code.co_name, inspect.isgeneratorfunction(lambda: (yield)))
#: disassembly and code objects
import dis
def f(a, b):
    c = a + b
    return c
print([i.opname for i in dis.get_instructions(f) if "ADD" in i.opname or "BINARY" in i.opname], f.__code__.co_varnames, f.__code__.co_argcount, f.__code__.co_name)
#: weak references
import gc
import weakref
class Node: ...
node = Node()
ref = weakref.ref(node, lambda r: print("gone"))
cache = weakref.WeakValueDictionary(a=node)
print(ref() is node, "a" in cache)
del node
gc.collect()
print(ref(), "a" in cache)
#: finalizers and cycles
import gc
class Loud:
    def __init__(self, name):
        self.name = name
    def __del__(self):
        print("del", self.name)
a = Loud("a")
a = None
b, c = Loud("b"), Loud("c")
b.other, c.other = c, b
del b, c
print(gc.collect() > 0)
#: types made by hand
import types
Point = type("Point", (), {"x": 1, "double": lambda self: self.x * 2})
print(Point().double(), types.SimpleNamespace(a=1, b=[2]), types.MappingProxyType({"k": 1})["k"], isinstance(len, types.BuiltinFunctionType))
module = types.ModuleType("made")
exec("value = 5", module.__dict__)
import sys
sys.modules["made"] = module
import made
print(made.value, types.new_class("New", (list,), exec_body=lambda ns: ns.update(z=1)).z)
def f(x): return x
print(types.FunctionType(f.__code__, {}, "renamed")(3), types.MethodType(lambda self: self * 2, 21)())
#: typing at run time
from typing import Annotated, Callable, Final, NewType, ParamSpec, Self, TypedDict, assert_never, cast, overload, TYPE_CHECKING
class Movie(TypedDict, total=False):
    title: str
    year: int
UserId = NewType("UserId", int)
def apply(f: Callable[[int], int], x: int) -> int:
    return f(x)
print(Movie(title="x"), UserId(5) + 1, apply(lambda x: x + 1, 1), cast(str, 5), TYPE_CHECKING, Annotated[int, "meta"].__metadata__, Movie.__annotations__, list[int] == list[int])
#: importing
import importlib.util
import math as m
from os import path as p
from collections import (Counter,
                         OrderedDict as OD)
print(m.pi, p.join("a", "b"), Counter("a"), OD(), importlib.import_module("json").dumps([1]), importlib.util.find_spec("no_such_module_here"))
try:
    import no_such_module_here
except ModuleNotFoundError as error:
    print(error, error.name)
try:
    from math import nothing_like_it
except ImportError as error:
    print(str(error).split(" (")[0])
#: a module of its own
import sys
from pathlib import Path
Path("helper.py").write_text("VALUE = 5\ndef double(x):\n    return x * 2\n")
Path("pack").mkdir()
Path("pack/__init__.py").write_text("from .part import name\n")
Path("pack/part.py").write_text("name = __name__\n")
sys.path.insert(0, ".")
import helper
import pack
print(helper.double(helper.VALUE), pack.name, helper.__name__)
#: the main guard
def main():
    print("running main", __name__)

if __name__ == "__main__":
    main()
#: locales, platforms and versions
import platform
import sys
print(sys.version_info[:2] >= (3, 11), sys.byteorder, sys.maxsize, platform.system(), platform.python_implementation(), sys.implementation.name, sys.getrecursionlimit(), sys.getdefaultencoding())
print(sys.float_info.max, sys.int_info.bits_per_digit, sys.hash_info.width, sys.getsizeof(1) > 0, sys.intern("x") is sys.intern("x"), sys.flags.optimize)
#: contexts
import contextvars
user = contextvars.ContextVar("user", default="nobody")
token = user.set("ada")
def who():
    return user.get()
copy = contextvars.copy_context()
user.reset(token)
print(who(), copy.run(who), token.old_value is contextvars.Token.MISSING, user in copy)
#: scheduling
import sched
import time
order = []
scheduler = sched.scheduler(time.monotonic, time.sleep)
scheduler.enter(0.02, 1, order.append, ("late",))
scheduler.enter(0.01, 2, order.append, ("early",))
scheduler.run()
print(order)
#: timing
import timeit
print(timeit.timeit("sum(range(10))", number=10) > 0, timeit.repeat("pass", number=1, repeat=2).__len__())
#: addresses of the internet
import ipaddress
net = ipaddress.ip_network("192.168.0.0/29")
print(list(net.hosts())[:3], net.num_addresses, ipaddress.ip_address("10.0.0.1") in net, ipaddress.ip_address("::1").is_loopback, net.netmask, ipaddress.ip_interface("10.1.2.3/8").network)
#: mail
from email.message import EmailMessage
from email.utils import parseaddr
from email import message_from_string, policy
mail = EmailMessage()
mail["Subject"], mail["From"], mail["To"] = "Hé", "a@x.org", "b@y.org"
mail.set_content("Hello\n")
print(mail["Subject"], mail.get_content_type(), parseaddr("Ada <ada@x.org>"))
print(message_from_string("Subject: x\n\nbody", policy=policy.default).get_content().strip())
#: colours, mime types and other small modules
import colorsys
import mimetypes
import string
import keyword
import numbers
print(colorsys.rgb_to_hsv(1, 0, 0), mimetypes.guess_type("a.html")[0], keyword.iskeyword("match"), keyword.iskeyword("for"), keyword.softkwlist, isinstance(1, numbers.Integral), string.hexdigits)
#: a command interpreter
import cmd
import io
class Shell(cmd.Cmd):
    prompt = ""
    use_rawinput = False
    def do_add(self, line):
        print(sum(map(int, line.split())), file=self.stdout)
    def do_quit(self, line):
        return True
out = io.StringIO()
Shell(stdin=io.StringIO("add 1 2 3\nnope\nquit\n"), stdout=out).cmdloop()
print(out.getvalue().split("\n"))
#: unit tests
import io
import unittest
from unittest import mock
class Case(unittest.TestCase):
    def test_good(self):
        self.assertEqual(1 + 1, 2)
    def test_bad(self):
        self.assertIn(3, [1, 2])
    def test_mock(self):
        thing = mock.Mock(return_value=5)
        self.assertEqual(thing(1), 5)
        thing.assert_called_once_with(1)
result = unittest.TextTestRunner(stream=io.StringIO()).run(unittest.defaultTestLoader.loadTestsFromTestCase(Case))
print(result.testsRun, len(result.failures), result.wasSuccessful())
#: doctests
import doctest
def add(a, b):
    """Adds.

    >>> add(1, 2)
    3
    >>> add("a", "b")
    'ab'
    """
    return a + b
print(doctest.run_docstring_examples(add, {"add": add}), doctest.testmod())
#: a bank
from abc import ABC, abstractmethod
from collections import defaultdict
class Rule(ABC):
    @abstractmethod
    def allows(self, balance, amount): ...
class NoOverdraft(Rule):
    def allows(self, balance, amount):
        return amount <= balance
class Bank:
    def __init__(self, *rules):
        self.rules, self.balances, self.log = rules, defaultdict(int), []
    def move(self, source, target, amount):
        if source and not all(rule.allows(self.balances[source], amount) for rule in self.rules):
            self.log.append(f"refused {source} -> {target}: {amount}")
            return False
        if source:
            self.balances[source] -= amount
        self.balances[target] += amount
        return True
bank = Bank(NoOverdraft())
print(bank.move(None, "ada", 100), bank.move("ada", "bob", 70), bank.move("ada", "bob", 40), dict(bank.balances), bank.log)
#: the game of life
def step(alive):
    from collections import Counter
    near = Counter((x + dx, y + dy) for x, y in alive for dx in (-1, 0, 1) for dy in (-1, 0, 1) if dx or dy)
    return {cell for cell, n in near.items() if n == 3 or (n == 2 and cell in alive)}
glider = {(1, 0), (2, 1), (0, 2), (1, 2), (2, 2)}
for _ in range(4):
    glider = step(glider)
for y in range(5):
    print("".join("#" if (x, y) in glider else "." for x in range(5)))
#: eight queens and a sudoku row
def queens(n, row=0, columns=frozenset(), left=frozenset(), right=frozenset()):
    if row == n:
        return 1
    return sum(queens(n, row + 1, columns | {c}, left | {row - c}, right | {row + c}) for c in range(n) if c not in columns and row - c not in left and row + c not in right)
print([queens(n) for n in range(1, 8)])
#: knapsack and edit distance
from functools import cache
def knapsack(items, room):
    best = [0] * (room + 1)
    for weight, value in items:
        for w in range(room, weight - 1, -1):
            best[w] = max(best[w], best[w - weight] + value)
    return best[room]
@cache
def distance(a, b):
    if not a or not b:
        return len(a) + len(b)
    return min(distance(a[1:], b) + 1, distance(a, b[1:]) + 1, distance(a[1:], b[1:]) + (a[0] != b[0]))
print(knapsack([(2, 3), (3, 4), (4, 5), (5, 6)], 8), distance("kitten", "sitting"))
#: sorting by hand
def quick(items):
    if len(items) < 2:
        return items
    pivot, *rest = items
    return quick([x for x in rest if x < pivot]) + [pivot] + quick([x for x in rest if x >= pivot])
def merge_sort(items):
    if len(items) < 2:
        return items
    half = len(items) // 2
    a, b, out = merge_sort(items[:half]), merge_sort(items[half:]), []
    while a and b:
        out.append((a if a[0] <= b[0] else b).pop(0))
    return out + a + b
data = [5, 3, 9, 1, 5, 0, -2]
print(quick(data), merge_sort(data), sorted(data) == quick(data))
#: trees
class Tree:
    def __init__(self, value, left=None, right=None):
        self.value, self.left, self.right = value, left, right
    def insert(self, value):
        side = "left" if value < self.value else "right"
        child = getattr(self, side)
        child.insert(value) if child else setattr(self, side, Tree(value))
    def __iter__(self):
        if self.left:
            yield from self.left
        yield self.value
        if self.right:
            yield from self.right
    def depth(self):
        return 1 + max((child.depth() for child in (self.left, self.right) if child), default=0)
tree = Tree(5)
for n in (2, 8, 1, 9, 3):
    tree.insert(n)
print(list(tree), tree.depth(), sum(tree), 8 in tree)
#: events and observers
class Events:
    def __init__(self):
        self.handlers = {}
    def on(self, name):
        def register(handler):
            self.handlers.setdefault(name, []).append(handler)
            return handler
        return register
    def emit(self, name, *args):
        return [handler(*args) for handler in self.handlers.get(name, [])]
events = Events()
@events.on("greet")
def hello(name):
    return f"hello {name}"
@events.on("greet")
def bye(name):
    return f"bye {name}"
print(events.emit("greet", "ada"), events.emit("nothing"))
#: a state machine
from enum import Enum, auto
class State(Enum):
    IDLE = auto()
    RUNNING = auto()
    DONE = auto()
MOVES = {(State.IDLE, "start"): State.RUNNING, (State.RUNNING, "stop"): State.DONE, (State.RUNNING, "pause"): State.IDLE}
state = State.IDLE
for event in ("start", "pause", "stop", "start", "stop"):
    new = MOVES.get((state, event))
    print(f"{state.name:>8} --{event}--> {new.name if new else 'ignored'}")
    state = new or state
#: an environment of variables
import os
os.environ["MY_SETTING"] = "on"
print(os.environ.get("MY_SETTING"), os.getenv("NOT_SET_AT_ALL", "default"), "MY_SETTING" in os.environ, os.path.expandvars("$MY_SETTING/x"))
del os.environ["MY_SETTING"]
print(os.environ.get("MY_SETTING"), os.name, os.getpid() > 0, os.cpu_count() > 0)
#: a text of many numbers parsed
report = """
region,month,sales
north,jan,100
south,jan,80
north,feb,120
south,feb,95
"""
rows = [line.split(",") for line in report.split()]
head, *body = rows
totals = {}
for region, month, sales in body:
    totals.setdefault(region, {})[month] = int(sales)
for region, months in totals.items():
    growth = (months["feb"] - months["jan"]) / months["jan"]
    print(f"{region:<6} {sum(months.values()):>5} {growth:+.1%}")
#: type checks at run time
from collections.abc import Callable, Iterator
print(isinstance(5, (int, str)), isinstance(True, int), type(5) is int, issubclass(bool, int), isinstance(print, Callable), isinstance(iter([]), Iterator), isinstance(5, int | None))
print(type(5).__name__, type([]).__mro__, callable(5), hasattr("", "upper"), getattr(5, "nope", None), id(None) == id(None), dir(type("X", (), {"a": 1})())[-1])
#: numbers from the command of a user that is not there
try:
    name = input("name? ")
except EOFError:
    name = "nobody"
print("hello", name)
