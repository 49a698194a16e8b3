"""Values to text and back: exactly what went in, and never a line of their classes' code."""

import collections
import datetime
import decimal
import enum
import fractions
import functools
import ipaddress
import json
import math
import pathlib
import random
import re
import types
import unittest
import uuid
import zoneinfo

import child

fimble = child.load()
Names, NotCarried, Record = fimble.carriable.Names, fimble.carriable.NotCarried, fimble.records.Record
CAP = 1 << 20


class Plain:
    def __init__(self, value):
        self.value = value


class Slotted:
    __slots__ = ("left", "right")


class Rows(list):
    pass


class Colour(enum.Enum):
    RED = 1
    BLUE = "b"


class Access(enum.IntFlag):
    READ = 4
    WRITE = 2


Point = collections.namedtuple("Point", "x y")
OWN = {one.__name__: one for one in (Plain, Slotted, Rows, Colour, Access, Point)}


def names():
    known = Names()
    for name, value in OWN.items():
        known.add(value, name)
    return known


def encode(value, cap=CAP):
    return fimble.codec.encode(value, names(), cap)


def through(value):
    return fimble.decoding.decode(encode(value), OWN.__getitem__)


def shape(value, seen=None):
    """The value as nested tuples of types and contents, by identity: equal shapes are equal values with equal sharing."""
    seen = {} if seen is None else seen
    kind = type(value)
    if kind is float:
        return kind, repr(value)
    if kind in (int, str, bytes, bool, type(None), complex):
        return kind, value
    if id(value) in seen and kind not in (tuple, frozenset):
        return "again", seen[id(value)]
    seen[id(value)] = len(seen)
    if kind in (list, tuple, collections.deque, Rows, Point):
        extra = getattr(value, "maxlen", None)
        return kind, extra, [shape(item, seen) for item in value]
    if kind in (set, frozenset):
        return kind, sorted(repr(shape(item, {})) for item in value)
    if isinstance(value, dict):
        factory = getattr(value, "default_factory", None)
        return kind, factory, [(shape(key, seen), shape(item, seen)) for key, item in value.items()]
    if kind in (Plain, types.SimpleNamespace):
        return kind, shape(value.__dict__, seen)
    return kind, repr(value)


def generate(random_, depth=0, mutable=None):
    """A random value of the supported types; sometimes one that was there before, or the container it is in."""
    mutable = [] if mutable is None else mutable
    leaves = [
        lambda: None, lambda: random_.random() < 0.5, lambda: random_.randint(-10, 10), lambda: random_.getrandbits(90),
        lambda: -(1 << 63) - random_.getrandbits(3), lambda: random_.uniform(-1e3, 1e3), lambda: random_.choice([math.nan, math.inf, -math.inf, -0.0, 1e16]),
        lambda: "".join(random_.choice("ab$\"\\\n é漢😀\x00") for _ in range(random_.randint(0, 8))),
        lambda: random_.choice(["\ud800", "a\udfffb", "$", ""]),
        lambda: random_.randbytes(random_.randint(0, 9)), lambda: complex(random_.random(), -0.0),
        lambda: datetime.datetime(2024, 5, 6, 7, 8, 9, random_.randint(0, 999_999)),
        lambda: datetime.datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")),
        lambda: datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=-3), "X")),
        lambda: datetime.time(1, 2, tzinfo=datetime.timezone.utc), lambda: datetime.date(9999, 12, 31),
        lambda: datetime.timedelta(-5, 3, 1), lambda: decimal.Decimal(random_.choice(["1.10", "-0", "sNaN123", "1E+999"])),
        lambda: fractions.Fraction(random_.getrandbits(70), 7), lambda: uuid.UUID(int=random_.getrandbits(128)),
        lambda: pathlib.PurePosixPath("/a/b"), lambda: pathlib.Path("x"), lambda: pathlib.PureWindowsPath("c:/x"),
        lambda: range(1, 1 << 70, 3), lambda: slice(None, 5), lambda: ..., lambda: Colour.RED, lambda: Colour.BLUE,
        lambda: Access.READ | Access.WRITE, lambda: Access(0), lambda: ipaddress.ip_address("::1"),
        lambda: ipaddress.ip_network("10.0.0.0/8"), lambda: int, lambda: len, lambda: math.sqrt, lambda: Plain,
    ]  # fmt: skip
    if depth > 4 or random_.random() < 0.4:
        return random_.choice(leaves)()
    if mutable and random_.random() < 0.15:
        return random_.choice(mutable)
    again = lambda: generate(random_, depth + 1, mutable)
    count = random_.randint(0, 4)
    keys = lambda: [random_.choice(["a", "b", "$", "v", 1, 2.5, None, (1, "x"), True, "\ud800"]) for _ in range(count)]
    kind = random_.choice([list, dict, Record, tuple, set, frozenset, collections.deque, collections.OrderedDict, collections.Counter, collections.defaultdict, Plain, Rows, Point, types.SimpleNamespace, bytearray])  # fmt: skip
    if kind in (tuple, Point):
        return Point(again(), again()) if kind is Point else tuple(again() for _ in range(count))
    if kind in (set, frozenset):
        return kind(random_.choice([1, "a", (1, 2), None, 2.5, frozenset("ab")]) for _ in range(count))
    if kind is bytearray:
        return bytearray(random_.randbytes(count))
    value = {
        collections.deque: lambda: collections.deque(maxlen=random_.choice([None, 10])),
        collections.defaultdict: lambda: collections.defaultdict(random_.choice([None, list, int])),
        Plain: lambda: Plain(None),
    }.get(kind, kind)()
    mutable.append(value)
    if kind in (list, Rows, collections.deque):
        for _ in range(count):
            value.append(again())
    elif kind in (Plain, types.SimpleNamespace):
        value.value = again()
    else:
        for key in keys():
            value[key] = again()
    return value


class RoundTrip(unittest.TestCase):
    def test_random_values_of_every_type_come_back_exactly(self):
        for seed in range(3_000):
            value = generate(random.Random(seed))
            with self.subTest(seed=seed):
                text = encode(value)
                back = fimble.decoding.decode(text, OWN.__getitem__)
                self.assertEqual(shape(back), shape(value))
                self.assertEqual(encode(back), text)
                text.encode()

    def test_plain_trees_stay_plain_json(self):
        value = {"a": [1, 2.5, None, True, "é"], "b": {"c": []}}
        self.assertEqual(encode(value), '{"a":[1,2.5,null,true,"é"],"b":{"c":[]}}')

    def test_cycles_and_sharing(self):
        ring = []
        ring.append(ring)
        back = through(ring)
        self.assertIs(back[0], back)
        inner = []
        outer = (inner, {"x": inner})
        inner.append(outer)
        back = through(outer)
        self.assertIs(back[0], back[1]["x"])
        self.assertIs(back[0][0], back)
        parent, son = Plain(None), Plain(None)
        parent.value, son.value = son, parent
        back = through(parent)
        self.assertIs(back.value.value, back)
        self.assertIs(type(back), Plain)

    def test_a_tuple_shared_a_hundred_levels_deep_stays_small(self):
        value = ()
        for _ in range(100):
            value = (value, value)
        self.assertLess(len(encode(value)), 10_000)

    def test_slots_partials_patterns_and_exceptions(self):
        value = Slotted()
        value.left = [1]
        back = through(value)
        self.assertEqual((back.left, hasattr(back, "right")), ([1], False))
        part = through(functools.partial(int, base=2))
        self.assertEqual(part("101"), 5)
        self.assertEqual(through(re.compile("a.b", re.I | re.S)), re.compile("a.b", re.I | re.S))
        error = through(KeyError("k"))
        self.assertEqual((type(error), error.args), (KeyError, ("k",)))

    def test_records_stay_records_in_compact_form(self):
        value = [Record(a=1, b=[Record(c=2)])]
        self.assertEqual(encode(value), '{"$":"records","v":[{"a":1,"b":[{"c":2}]}]}')
        self.assertEqual(through(value)[0].b[0].c, 2)
        mixed = through({"r": Record(x=1), "d": {"x": 1}})
        self.assertEqual((type(mixed["r"]), type(mixed["d"])), (Record, dict))

    def test_sets_have_one_text_whatever_their_order(self):
        self.assertEqual(encode({"a", "b", "c"}), encode(set(["c", "b", "a"])))


class Refused(unittest.TestCase):
    def reason(self, value, cap=CAP):
        with self.assertRaises(NotCarried) as caught:
            encode(value, cap)
        return str(caught.exception)

    def test_each_reason_says_what_to_do(self):
        function = lambda: 1  # noqa: E731
        function.__module__ = "__main__"
        self.assertEqual(
            [self.reason(value) for value in ((n for n in [1]), [function], {}.keys(), re.match("a", "a"), math)],
            [
                "a generator is used up once; turn it into a list",
                "it holds the function <lambda>, which is not defined at top level",
                "a dict_keys cannot be carried; turn it into a list",
                "a Match cannot be carried; keep its groups",
                "a module that no import makes again",
            ],
        )

    def test_depth_size_and_count_are_bounded(self):
        deep = []
        for _ in range(100_000):
            deep = [deep]
        self.assertEqual(self.reason(deep), "it is nested deeper than 300 levels")
        deep = {}
        for _ in range(100_000):
            deep = {"a": deep}
        self.assertEqual(self.reason(deep), "it is nested deeper than 300 levels")
        for value in ("x" * CAP, [0] * CAP, ["abc" * 10] * 100_000, b"x" * CAP, 1 << (8 * CAP), {str(n): n for n in range(200_000)}):
            self.assertEqual(self.reason(value), "it is larger than 1,024 KiB; keep only what is needed of it")

    def test_the_deepest_that_is_allowed_comes_back(self):
        deep = Plain(None)
        for _ in range(290):
            deep = Plain(deep)
        self.assertIs(type(through(deep).value), Plain)

    def test_no_code_of_the_values_runs(self):
        touched = []

        def trap(name):
            def method(self, *positional, **keyword):
                touched.append(name)
                raise RuntimeError(name)

            return method

        dunders = (
            "__eq__ __hash__ __repr__ __str__ __len__ __iter__ __bool__ __getattribute__ __reduce__ __reduce_ex__ __getstate__ "
            "__format__ __contains__ __getitem__ __sizeof__ __dir__ __index__ __int__ __float__"
        ).split()
        body = {name: trap(name) for name in dunders}
        body["__class__"] = property(trap("__class__"))
        for base in (object, dict, list, str, int, set, tuple, float):
            kind = type("Hostile", (base,), dict(body))
            value = kind.__new__(kind)
            known = Names()
            known.add(kind, "Hostile")
            text = fimble.codec.encode([value], known, CAP)
            self.assertTrue(text.startswith('[{"$":"object","v":["Hostile",{}'), text)
            fimble.preview.preview([value]), fimble.preview.type_name([value])
            with self.assertRaises(NotCarried):
                fimble.codec.encode([value], Names(), CAP)
        self.assertEqual(touched, [])

    def test_metaclasses_do_not_run_either(self):
        touched = []

        class Meta(type):
            def __getattribute__(cls, name):
                touched.append(name)
                return super().__getattribute__(name)

            def __instancecheck__(cls, other):
                touched.append("instancecheck")
                return True

            def __eq__(cls, other):
                touched.append("eq")
                return True

            __hash__ = type.__hash__

        class Odd(metaclass=Meta):
            pass

        value = Odd()
        touched.clear()
        known = Names()
        known.add(Odd, "Odd")
        fimble.codec.encode([value, Odd], known, CAP)
        fimble.preview.preview([value, Odd]), fimble.preview.type_name([value])
        self.assertEqual(touched, [])


class Shown(unittest.TestCase):
    def test_type_names(self):
        values = [[{"a": 1}], {"a": 1}, [Record(a=1)], (1, "a"), [], {1: "a", "b": None}, [1, "a", 2.0, None], None, Plain(1), Plain]
        self.assertEqual(
            [fimble.preview.type_name(value) for value in values],
            ["list[dict]", "dict[str, int]", "list[dict]", "tuple[int, str]", "list", "dict[int | str, str | None]", "list", "None", "Plain", "class"],
        )  # fmt: skip

    def test_previews_are_bounded(self):
        ring = [1]
        ring.append(ring)
        self.assertEqual(fimble.preview.preview(ring), "[1, …]")
        self.assertEqual(fimble.preview.preview(Plain({"a": (1,)})), "Plain(value={'a': (1,)})")
        self.assertEqual(fimble.preview.preview(["x" * 1000] * 1000), "['" + "x" * 77 + "…")
        self.assertEqual(fimble.preview.preview(1 << 100_000), "<int of 100,001 bits>")
        deep = []
        for _ in range(100_000):
            deep = [deep]
        self.assertLessEqual(len(fimble.preview.preview(deep)), 80)


class Frames(unittest.TestCase):
    def test_lone_surrogates_are_replaced_and_pairs_joined(self):
        self.assertEqual(fimble.wire.to_bytes("a\ud83d\ude00b\ud800").decode(), "a😀b\ufffd")
        self.assertEqual(json.loads(fimble.wire.to_bytes(fimble.wire.dumps({"\udc00x": "\ud800"}))), {"\ufffdx": "\ufffd"})


if __name__ == "__main__":
    unittest.main()
