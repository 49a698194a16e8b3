"""Values of every supported type, nested and shared at random, go to text and come back exactly.

A failure prints the seed and the size of the smallest value that fails: sizes grow, so the first failure is a small one.
"""

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import ipaddress
import math
import operator
import pathlib
import random
import re
import types
import typing
import unittest
import uuid
import zoneinfo

import child

fimble = child.load()
CAP = 1 << 22


class Plain:
    kind = "a class attribute"


class Slotted:
    __slots__ = ("left", "right", "__dict__")


class Child(Slotted):
    __slots__ = ("more",)


class Computed:
    """A property hides what the instance keeps under the same name."""

    @property
    def size(self):
        return self.__dict__["size"]

    @functools.cached_property
    def area(self):
        return 1

    def __setattr__(self, name, value):
        raise RuntimeError("no attribute is set in the ordinary way")


@dataclasses.dataclass
class Job:
    name: object
    tags: object = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True, order=True)
class Frozen:
    key: object = 1


@dataclasses.dataclass(slots=True)
class Slim:
    first: object = None
    second: object = None


class Pair(typing.NamedTuple):
    left: object
    right: object = 0


Point = collections.namedtuple("Point", "x y")


class Rows(list):
    pass


class Table(dict):
    pass


class Ordered(collections.OrderedDict):
    pass


class Tags(set):
    pass


class Word(str):
    pass


class Count(int):
    pass


class Ratio(float):
    pass


class Raw(bytes):
    pass


class Row(tuple):
    pass


class Problem(Exception):
    def __init__(self, code, *, hint=None):
        super().__init__(f"problem {code}")
        self.code, self.hint = code, hint


class Colour(enum.Enum):
    RED = 1
    CRIMSON = 1
    BLUE = ("b", 2)
    GREEN = 7


class Access(enum.IntFlag):
    READ = 4
    WRITE = 2


class Mode(enum.StrEnum):
    FAST = "fast"


class Outer:
    class Inner:
        pass


def helper():
    return 1


OWN = {
    one.__name__: one
    for one in (
        Plain, Slotted, Child, Computed, Job, Frozen, Slim, Pair, Point, Rows, Table, Ordered, Tags, Word, Count, Ratio, Raw, Row, Problem,
        Colour, Access, Mode, Outer, helper,
    )
}  # fmt: skip
INSTANCES = (Plain, Slotted, Child, Computed, Job, Slim, types.SimpleNamespace, Outer.Inner)
FIELDS = {Slotted: ("left", "right", "other"), Child: ("left", "more", "other"), Computed: ("size", "area"), Job: ("name", "tags"), Slim: ("first", "second")}


def names():
    known = fimble.carriable.Names()
    for name, value in OWN.items():
        known.add(value, name)
    return known


def encode(value):
    return fimble.codec.encode(value, names(), CAP)


def decode(text):
    return fimble.decoding.decode(text, OWN.__getitem__)


def leaf(pick):
    """A value without parts that can change."""
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    hours = lambda: datetime.timezone(datetime.timedelta(minutes=pick.randint(-1439, 1439)), *pick.choice([(), ("here",)]))
    zone = lambda: pick.choice([None, berlin, datetime.timezone.utc, hours()])
    text = lambda: "".join(pick.choice("ab$\"\\\n\r\t é漢😀\x00\x7f\u2028\ufeff") for _ in range(pick.randint(0, 8)))
    made = pick.choice([
        lambda: None, lambda: True, lambda: False, lambda: pick.randint(-10, 10), lambda: -(1 << 63), lambda: (1 << 63) - 1, lambda: 1 << 63,
        lambda: -(1 << 63) - 1, lambda: pick.getrandbits(pick.randint(1, 4000)) * pick.choice([1, -1]), lambda: 10 ** pick.randint(0, 5000),
        lambda: pick.uniform(-1e3, 1e3), lambda: pick.choice([math.nan, -math.nan, math.inf, -math.inf, -0.0, 0.0, 5e-324, 1.7976931348623157e308, 1e16, 0.1 + 0.2]),
        text, lambda: pick.choice(["\ud800", "a\udfffb", "\udc00\ud800", "\ud83d\ude00", "$", "", "n", "v"]), lambda: pick.randbytes(pick.randint(0, 9)),
        lambda: complex(pick.choice([-0.0, math.inf, 1.5]), pick.choice([0.0, -0.0, math.nan])), lambda: bytearray(pick.randbytes(3)),
        lambda: datetime.datetime(pick.randint(1, 9999), 5, 6, 7, 8, 9, pick.randint(0, 999_999), tzinfo=zone(), fold=pick.randint(0, 1)),
        lambda: datetime.time(pick.randint(0, 23), 1, 2, pick.randint(0, 999_999), tzinfo=zone(), fold=pick.randint(0, 1)),
        lambda: datetime.date(pick.randint(1, 9999), 12, 31), lambda: datetime.timedelta(pick.randint(-999_999_999, 999_999_999), pick.randint(0, 86399), pick.randint(0, 999_999)),
        lambda: datetime.timedelta.max, hours, lambda: datetime.timezone.utc, lambda: berlin,
        lambda: decimal.Decimal(pick.choice(["1.10", "-0", "0E-5", "NaN", "-sNaN123", "Infinity", "1E+999", "1" * 60, "1e-999999"])),
        lambda: fractions.Fraction(pick.getrandbits(70), pick.randint(1, 99)), lambda: uuid.UUID(int=pick.getrandbits(128)),
        lambda: pick.choice([pathlib.PurePosixPath, pathlib.Path, pathlib.PureWindowsPath])(pick.choice(["/a/b", "x", ".", "c:/x", "a b/é"])),
        lambda: range(pick.randint(-5, 5), pick.choice([9, 1 << 70]), pick.choice([1, -3])), lambda: ..., lambda: NotImplemented,
        lambda: pick.choice([*Colour, Colour.CRIMSON, Access.READ | Access.WRITE, Access(0), Access(64), Mode.FAST]),
        lambda: pick.choice([Word("w"), Count(-7), Count(1 << 80), Ratio(math.nan), Ratio(-0.0), Raw(b"\xff"), Word("\ud800")]),
        lambda: pick.choice([ipaddress.ip_address("::1%eth0"), ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_interface("10.0.0.1/8")]),
        lambda: pick.choice([re.compile("a.b", re.I | re.S), re.compile(b"\xff+"), re.compile("é", re.A)]),
        lambda: pick.choice([int, len, math.sqrt, Plain, Outer.Inner, helper, collections.OrderedDict, operator.add, Job]),
    ])  # fmt: skip
    return made()


def key(pick):
    """Something hashable."""
    simple = ["a", "b", "$", "v", "n", "", "\ud800", "é", 1, 2.5, -0.0, None, True, 1 << 70, b"k", ..., Colour.RED, Mode.FAST, Plain, int]
    return pick.choice([
        lambda: pick.choice(simple), lambda: (key(pick), pick.choice(simple)), lambda: frozenset([pick.choice(simple), "f"]), lambda: Point(1, key(pick)),
        lambda: datetime.date(2024, 1, 2), lambda: uuid.UUID(int=5), lambda: decimal.Decimal("1.5"), lambda: Frozen(pick.choice(simple)), lambda: pathlib.Path("/k"),
        lambda: Word("key"), lambda: range(3), lambda: fractions.Fraction(1, 3), lambda: datetime.timedelta(1), lambda: Count(5),
    ])()  # fmt: skip


def value_of(pick, size, there):
    """A value of about that size. `there` are containers that exist, also those that this one will be in."""
    if size <= 0 or pick.random() < 0.3:
        return leaf(pick)
    if there and pick.random() < 0.2:
        return pick.choice(there)
    parts = pick.randint(0, min(size, 4))
    part = lambda: value_of(pick, size // 2 - 1, there)
    kind = pick.choice([
        list, dict, fimble.records.Record, tuple, set, frozenset, collections.deque, collections.OrderedDict, collections.Counter, collections.defaultdict,
        Rows, Table, Ordered, Tags, Row, Point, Pair, Frozen, Problem, KeyError, functools.partial, slice, *INSTANCES,
    ])  # fmt: skip
    if kind in (set, frozenset, Tags):
        return kind(key(pick) for _ in range(parts))
    if kind in (tuple, Row):
        return kind(part() for _ in range(parts))
    if kind is Point or kind is Pair or kind is slice:
        return kind(part(), part())
    if kind is Frozen:
        return Frozen(part())
    if kind is functools.partial:
        return functools.partial(pick.choice([int, helper, print]), part(), end=part())
    if kind is Problem or kind is KeyError:
        made = Problem(pick.randint(0, 9), hint=part()) if kind is Problem else KeyError(part())
        made.add_note("noted")
        return made
    if kind in INSTANCES:
        made = kind.__new__(kind)
        there.append(made)
        for name in FIELDS.get(kind, ("value", "other")):
            if pick.random() < 0.8:
                (made.__dict__.__setitem__ if kind is Computed else functools.partial(object.__setattr__, made))(name, part())
        return made
    made = {
        collections.deque: lambda: collections.deque(maxlen=pick.choice([None, 10])),
        collections.defaultdict: lambda: collections.defaultdict(pick.choice([None, list, int, helper, Plain])),
    }.get(kind, kind)()
    there.append(made)
    if kind in (Rows, Table, Ordered) and pick.random() < 0.5:
        made.note = part()
    for _ in range(parts):
        if kind in (list, Rows, collections.deque):
            made.append(part())
        else:
            dict.__setitem__(made, key(pick), part()) if kind is not collections.OrderedDict and kind is not Ordered else made.__setitem__(key(pick), part())
    return made


def shape(value, seen):
    """The value in nested tuples of types and contents, in which a container that is met again is its number."""
    kind = type(value)
    if kind is int:
        return kind, hex(value)
    if value is None or kind in (bool, str, bytes, float, complex):
        return kind, repr(value)
    if kind is Access:
        return kind, int(value)
    if isinstance(value, enum.Enum) or isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
        return "the same", id(value)
    if id(value) in seen:
        return "again", seen[id(value)]
    number = seen[id(value)] = len(seen)
    parts = []
    if isinstance(value, (set, frozenset)):
        # Their order is nobody's; what they hold is hashable and has no cycles here.
        parts.append(sorted(repr(shape(item, {})) for item in value))
    elif isinstance(value, dict):
        parts.append([(shape(name, seen), shape(item, seen)) for name, item in dict.items(value)])
        parts.append(shape(getattr(value, "default_factory", None), seen))
    elif isinstance(value, (list, tuple, collections.deque)):
        parts.append([shape(item, seen) for item in value])
        parts.append(getattr(value, "maxlen", None))
    elif isinstance(value, BaseException):
        parts.append(shape(value.args, seen))
    elif isinstance(value, functools.partial):
        parts.append([shape(one, seen) for one in (value.func, value.args, value.keywords)])
    elif isinstance(value, slice):
        parts.append([shape(one, seen) for one in (value.start, value.stop, value.step)])
    elif isinstance(value, (datetime.datetime, datetime.time)):
        zone = value.tzinfo
        parts.append((repr(value), value.fold, type(zone), repr(zone)))
    elif kind in (Word, Count, Ratio, Raw, bytearray):
        parts.append((str.__repr__(value) if kind is Word else repr(value)))
    elif kind not in INSTANCES and kind is not Frozen:
        parts.append(repr(value))
    state = fimble.objects.state(value) if kind in OWN.values() or kind in INSTANCES or isinstance(value, BaseException) else {}
    return kind, number, parts, [(name, shape(item, seen)) for name, item in state.items()]


class Exact(unittest.TestCase):
    def test_random_values_come_back_with_their_types_their_order_and_their_sharing(self):
        for seed in range(3_000):
            size = 1 + seed // 75
            value = value_of(random.Random(seed), size, [])
            text = encode(value)
            text.encode()
            try:
                back = decode(text)
                self.assertEqual(shape(back, {}), shape(value, {}))
                self.assertEqual(encode(back), text)
            except Exception as error:
                raise AssertionError(f"seed {seed}, size {size}: {text[:2000]}") from error

    def check(self, value):
        back = decode(encode(value))
        self.assertIs(type(back), type(value))
        return back

    def test_a_value_may_hold_itself_in_every_way(self):
        def ring(make):
            inner = []
            outer = make(inner)
            inner.append(outer)
            return outer

        made = [
            (Row, lambda one: one[0]), (Point, None), (Frozen, lambda one: one.key), (KeyError, lambda one: one.args[0]), (slice, lambda one: one.stop),
            (lambda inner: functools.partial(print, inner), lambda one: one.args[0]), (lambda inner: (inner,), lambda one: one[0]),
        ]  # fmt: skip
        made[0] = (lambda inner: Row([inner]), lambda one: one[0])
        made[1] = (lambda inner: Point(inner, 1), lambda one: one.x)
        for make, inner in made:
            back = self.check(ring(make))
            self.assertIs(inner(back)[0], back)
        for kind in (set, Tags):
            holder, member = kind(), Plain()
            member.value = holder
            holder.add(member)
            back = self.check(holder)
            self.assertIs(next(iter(back)).value, back)
        key = Plain()
        key.value = {key: 1}
        back = self.check(key)
        self.assertEqual(back.value[back], 1)
        for value in (collections.deque(), Rows()):
            value.append(value)
            back = self.check(value)
            self.assertIs(back[0], back)

    def test_exceptions_keep_what_their_classes_keep_in_c(self):
        def raised(source):
            try:
                exec(source)
            except BaseException as error:
                return error

        cause = raised("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('x') from e")
        self.assertEqual(type(self.check(cause).__cause__), ZeroDivisionError)
        group = self.check(ExceptionGroup("g", [ValueError(1), Problem(2, hint="h")]))
        self.assertEqual((str(group), group.exceptions[0].args, group.exceptions[1].hint), ("g (2 sub-exceptions)", (1,), "h"))
        sources = ("open('/no/such/file')", "import nothing_here", "nothing_here", "compile('x =', 'f', 'exec')", "exit(3)", "json.loads('[')", "b'\\xff'.decode()", "{}['k']")
        for source in sources:
            error = raised(f"import json; {source}")
            back = self.check(error)
            names = ("args", "errno", "filename", "name", "lineno", "offset", "text", "code", "pos", "start", "value")
            self.assertEqual([getattr(back, name, None) for name in names], [getattr(error, name, None) for name in names], source)
            self.assertEqual(str(back), str(error))

    def test_what_would_be_lost_is_refused(self):
        for value in (collections.OrderedDict(a=1), collections.Counter("ab"), functools.partial(int)):
            value.extra = 1
            with self.assertRaises(fimble.carriable.NotCarried):
                encode(value)


class Hostile(unittest.TestCase):
    """Keys and members that run code when they are hashed or compared are only looked at."""

    def test_no_hash_and_no_comparison_runs(self):
        touched = []

        class Key:
            def __hash__(self):
                touched.append("hash")
                return 1

            def __eq__(self, other):
                touched.append("eq")
                return self is other

        known = names()
        known.add(Key, "Key")

        class Mine(dict):
            def __iter__(self):
                touched.append("iter")
                return super().__iter__()

            def keys(self):
                touched.append("keys")
                return super().keys()

        known.add(Mine, "Mine")
        keys = [Key() for _ in range(3)]
        moved = collections.OrderedDict((key, 1) for key in keys)
        values = [dict.fromkeys(keys, 1), Table(dict.fromkeys(keys, 1)), Mine(dict.fromkeys(keys, 1)), set(keys), frozenset(keys), Tags(keys), moved, collections.Counter(keys)]
        plain = Plain()
        plain.__dict__[type("Text", (str,), {"__hash__": Key.__hash__, "__eq__": Key.__eq__})("value")] = 1
        values.append(plain)
        touched.clear()
        for value in [*values, values]:
            fimble.codec.encode(value, known, CAP)
            fimble.preview.preview(value)
            fimble.preview.type_name(value)
        self.assertEqual(touched, [])

    def test_the_order_of_an_ordered_dict_survives(self):
        value = collections.OrderedDict.fromkeys([("a", 1), "b", 3])
        value.move_to_end(("a", 1))
        self.assertEqual(list(decode(encode(value))), ["b", 3, ("a", 1)])


if __name__ == "__main__":
    unittest.main()
