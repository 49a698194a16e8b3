"""Variables over rounds: what is written, what is left alone, removed, or not carried, and how it comes back."""

import json
import textwrap
import unittest

import child


def program(text):
    return textwrap.dedent(text).lstrip("\n")


class Session:
    """Keeps variables from round to round as a host does: everything is sent, definitions in the order they were made."""

    def __init__(self, answer=None):
        self.variables, self.answer = {}, answer

    def round(self, source, **options):
        order = {"import": 0, "definition": 1, "value": 2}
        sent = sorted(((name, entry["kind"], entry["content"]) for name, entry in self.variables.items()), key=lambda one: order[one[1]])
        played = child.play(program(source), sent, self.answer, **options)
        for entry in played.done["written"]:
            self.variables.pop(entry["name"], None)
            self.variables[entry["name"]] = entry
        for name in played.done["removed"]:
            self.variables.pop(name, None)
        return played


class Written(unittest.TestCase):
    def test_only_what_changed_is_written(self):
        session = Session()
        session.round(
            """
            import collections
            a = [1, {"b": 2}]; b = {"x": {1, 2, 3}}; c = "text"; d = (1, [2]); e = 5; f = collections.Counter("aab")
            def helper(): return 1
            """
        )
        played = session.round("a[1]['b'] = 3\nd[1].append(3)\ne = 5\nc += '!'\nlen(b), helper()\ndel f\ng = a")
        self.assertEqual(
            {name: (entry["content"], entry["line"]) for name, entry in played.written.items()},
            {
                "a": ('[1,{"b":3}]', 1), "d": ('{"$":"tuple","v":[1,[2,3]]}', 2), "c": ('"text!"', 4), "g": ('[1,{"b":3}]', 7),
            },
        )  # fmt: skip
        self.assertEqual((played.done["removed"], played.done["not_carried"]), (["f"], []))
        self.assertEqual(session.round("1").done["written"], [])

    def test_every_kind_of_definition(self):
        session = Session()
        played = session.round(
            '''
            import math, os.path
            import xml.dom as dom
            from collections import namedtuple as nt, OrderedDict
            from dataclasses import dataclass, field
            import enum, functools, typing
            RATE = 2
            def area(r, scale=RATE):
                """An area."""
                text = """
              kept  as it is"""
                return math.pi * r * scale
            async def fetch(n): return await kit.get(n)
            @functools.lru_cache(maxsize=None)
            def cached(x): return area(x)
            square = lambda x: x * x
            alias = square
            @dataclass(order=True)
            class Job:
                name: str
                tags: list = field(default_factory=list)
                def label(self): return f"{self.name}!"
            class Special(Job): pass
            Point = nt("Point", "x y")
            class Colour(enum.Enum):
                RED = 1
            Rows = list[dict]
            if True:
                def inner(a):
                    return square(a)
            part = functools.partial(area, scale=1)
            jobs = [Job("a", ["t"]), Special("b")]
            point = Point(1, [2])
            paint = {"c": Colour.RED, "f": square, "t": Job}
            jobs[0].next = jobs[1]
            '''
        )
        self.assertEqual(played.ending, {"kind": "returned", "value": None})
        self.assertEqual(played.done["not_carried"], [])
        kinds = {name: entry["kind"] for name, entry in played.written.items()}
        for name in ("math", "os", "dom", "nt", "OrderedDict", "dataclass", "field", "enum", "functools", "typing"):
            self.assertEqual(kinds.pop(name), "import")
        for name in ("area", "fetch", "cached", "square", "alias", "Job", "Special", "Point", "Colour", "Rows", "inner"):
            self.assertEqual(kinds.pop(name), "definition")
        self.assertEqual(kinds, dict.fromkeys(("RATE", "part", "jobs", "point", "paint"), "value"))
        self.assertEqual(played.contents["os"], "import os.path")
        self.assertEqual(played.written["area"]["references"], ["RATE", "math"])
        self.assertEqual(played.written["area"]["preview"], "def area(r, scale=RATE):")
        self.assertEqual(played.written["Special"]["references"], ["Job"])
        self.assertEqual(played.written["Job"]["references"], ["dataclass", "field"])
        self.assertEqual(played.written["cached"]["content"], "@functools.lru_cache(maxsize=None)\ndef cached(x): return area(x)\n")
        self.assertEqual((played.written["jobs"]["type_name"], played.written["fetch"]["type_name"]), ("list[Job | Special]", "async function"))
        session.answer = lambda call: call["positional"][0]
        session.variables["RATE"] = session.variables.pop("RATE")
        played = session.round(
            """
            [round(area(1), 2), await fetch(4), cached(0), square(3), alias is square, jobs, jobs[0].label(), jobs[0].next is jobs[1],
             point.y, paint["c"] is Colour.RED, paint["f"] is square, paint["t"] is Job, inner(2), part(0), Rows, os.path.join("a", "b"),
             area(1).__class__, "kept  as" in "".join(str(c) for c in area.__code__.co_consts)]
            """
        )
        self.assertEqual(
            played.ending,
            {
                "kind": "returned",
                "value": "[6.28, 4, 0.0, 9, True, [Job(name='a', tags=['t']), Special(name='b', tags=[])], 'a!', True, [2], True, True, True, 4, 0.0,"
                " list[dict], 'a/b', <class 'float'>, True]",
            },
        )
        self.assertEqual((played.done["written"], played.done["not_carried"], played.done["removed"]), ([], [], []))

    def test_definitions_that_something_was_done_to(self):
        session = Session()
        session.round(
            """
            import contextlib, functools, abc
            @contextlib.contextmanager
            def timer(name):
                yield name
            def deco(f):
                @functools.wraps(f)
                def inner(*a): return f(*a) + 1
                return inner
            def raw(f):
                def inner(*a): return f(*a) + 2
                return inner
            @deco
            def plus(x): return x
            @raw
            def minus(x): return x
            f = g = lambda x: x
            h, i = lambda: 1, lambda: 2
            class Outer(abc.ABC):
                class Inner:
                    class Core: pass
                def go(self): return 1
            inner, core = Outer.Inner(), Outer.Inner.Core
            if h() == 2:
                class Way:
                    def go(self): return "first"
                way = lambda: "first"
            else:
                class Way:
                    def go(self): return "second"
                way = lambda: "second"
            """
        )
        self.assertEqual(session.variables["inner"]["references"], ["Outer"])
        played = session.round(
            """
            with timer("a") as name: pass
            [name, plus(1), minus(1), f(2), g is f, h(), i(), type(inner) is Outer.Inner, core is Outer.Inner.Core, Way().go(), way()]
            """
        )
        self.assertEqual(played.ending["value"], "['a', 2, 3, 2, True, 1, 2, True, True, 'second', 'second']")
        self.assertEqual(sorted(played.written), ["name"])

    def test_what_a_definitions_source_does_not_bring_back_is_named(self):
        session = Session()
        played = session.round(
            """
            import enum, dataclasses
            def counted(): pass
            counted.n = 0
            class Box:
                items = []
                limit = 3
            Box.items.append(1)
            class Colour(enum.Enum): RED = 1
            @dataclasses.dataclass
            class Job: tags: list = dataclasses.field(default_factory=list)
            def collect(x, seen=[]): seen.append(x)
            collect(1)
            def untouched(x, seen={}): return x
            """
        )
        said = "warning: only the source of `{}` is kept for the next program, not {} as it is now; keep it in a variable\n"
        expected = [said.format("counted", "`counted.n`"), said.format("Box", "`Box.items`"), said.format("collect", "its default values")]
        self.assertEqual(played.output, "".join(expected))
        self.assertEqual(session.round("Box.limit = 4").output, said.format("Box", "`Box.limit`"))
        self.assertEqual(session.round("Box.limit, untouched(1)").output, "")

    def test_what_a_cancelled_task_assigned_is_carried(self):
        session = Session(lambda call: child.Later(never=True))
        source = """
            import asyncio
            seen = []
            async def work():
                global last
                for last in range(9):
                    seen.append(last)
                    await (kit.never() if last == 2 else asyncio.sleep(0))
            task = asyncio.create_task(work())
            try:
                await asyncio.wait_for(task, 0.2)
            except TimeoutError:
                done = False
            """
        played = session.round(source)
        self.assertEqual([played.contents.get(name) for name in ("seen", "last", "done")], ["[0,1,2]", "2", "false"])
        self.assertEqual([name for name, _ in played.done["not_carried"]], ["task"])

    def test_redefinition_wins_and_old_instances_become_new_ones(self):
        session = Session()
        session.round("class A:\n    def v(self): return 1\na = A()\ndef f(): return 1\n")
        played = session.round("class A:\n    def v(self): return 2\ndef f(): return 2\nb = A()")
        self.assertEqual(sorted(played.written), ["A", "b", "f"])
        self.assertEqual(session.round("a.v(), b.v(), f()").ending["value"], "(2, 2, 2)")

    def test_after_an_exception_everything_up_to_it(self):
        session = Session()
        played = session.round("a = [1]\ndef f(): return a\nfor n in range(3):\n    a.append(n)\n    b = 1 / (1 - n)\nc = 2")
        self.assertEqual(played.ending["exception"], "ZeroDivisionError")
        self.assertEqual(
            {name: entry["content"] for name, entry in played.written.items()}, {"a": "[1,0,1]", "f": "def f(): return a\n", "n": "1", "b": "1.0"}
        )
        self.assertEqual(session.round("f()").ending["value"], "[1, 0, 1]")

    def test_what_cannot_be_carried_is_named_and_no_longer_stored(self):
        session = Session()
        session.round("g = 1")
        played = session.round(
            """
            import threading, asyncio
            g = (n for n in range(3))
            def make(n):
                def add(m): return n + m
                return add
            add = make(1)
            lock = threading.Lock()
            async def later(): pass
            t = asyncio.create_task(later())
            tools = kit
            fs = [lambda: 1]
            class Own:
                def __del__(self): pass
            own = Own()
            def local():
                class In: pass
                return In()
            inside = local()
            kinds = type("Made", (), {})
            w = 5
            """
        )
        self.assertEqual(
            dict(played.done["not_carried"]),
            {
                "g": "a generator is used up once; turn it into a list",
                "add": "it was made inside a function or by a call; define it at top level with def or class",
                "lock": "a lock belongs to this program",
                "t": "a Task belongs to this program; await it and keep the result",
                "fs": "it holds the function <lambda>, which is not defined at top level",
                "own": "its class Own cannot be made without running its code; keep its data",
                "inside": "its class In is not defined at top level",
                "kinds": "it was made inside a function or by a call; define it at top level with def or class",
            },
        )
        self.assertEqual((played.done["removed"], "w" in played.written), (["g"], True))

    def test_underscore_names_go_only_with_what_needs_them(self):
        session = Session()
        played = session.round("_rate = 2\n_own = 3\n_ = 4\ndef _twice(x): return x * _rate\ndef f(x): return _twice(x)")
        self.assertEqual(sorted(played.written), ["_rate", "_twice", "f"])
        played = session.round("f(2)")
        self.assertEqual((played.ending["value"], played.done["written"]), ("4", []))

    def test_records_and_results_survive(self):
        session = Session(lambda call: [{"sha": "a", "author": {"name": "x"}}])
        session.round("log = await kit.log()")
        played = session.round("log[0].author.name, json.dumps(log[0]), log[0] | {'b': 1}, isinstance(log[0], dict), {**log[0]} == log[0], log[0].get('z')")
        self.assertEqual(
            played.ending["value"],
            """('x', '{"sha": "a", "author": {"name": "x"}}', {'sha': 'a', 'author': {'name': 'x'}, 'b': 1}, True, True, None)""",
        )
        self.assertEqual(played.done["written"], [])


class Restored(unittest.TestCase):
    def test_what_fails_is_a_clear_error_when_it_is_used(self):
        variables = [
            ("needs", "definition", "@nothing\ndef needs(): pass\n"), ("mod", "import", "import no_such_module as mod"), ("bad", "value", '{"$":"what"}'),
            ("lost", "value", '{"$":"lost","v":"a generator is used up once"}'), ("p", "value", '{"$":"object","v":["Gone",{}]}'), ("ok", "value", "1"),
        ]  # fmt: skip
        self.assertEqual(child.play("ok", variables).ending["value"], "1")
        sentences = {
            "needs()": "`needs` could not be brought over from an earlier round: NameError: name 'nothing' is not defined",
            "mod.x": "`mod` could not be brought over from an earlier round: ModuleNotFoundError: No module named 'no_such_module'",
            "len(lost)": "`lost` could not be brought over from an earlier round: a generator is used up once",
            "p + 1": "`p` could not be brought over from an earlier round: KeyError: 'Gone'",
            "bad[0]": "`bad` could not be brought over from an earlier round: KeyError: 'what'",
        }
        for source, sentence in sentences.items():
            played = child.play(source, variables)
            self.assertIn(f"NotRestored: {sentence}", played.ending["traceback"])
            self.assertEqual((played.done["written"], played.done["removed"], played.done["not_carried"]), ([], [], []))

    def test_definitions_in_any_order(self):
        variables = [("b", "definition", "class B(A): pass\n".replace("B", "b").replace("A", "a")), ("v", "value", '{"$":"object","v":["b",{"x":1}]}'), ("a", "definition", "class a: pass\n")]
        self.assertEqual(child.play("v.x, isinstance(v, a)", variables).ending["value"], "(1, True)")

    def test_carried_helpers_show_in_tracebacks_and_calls_have_the_programs_site(self):
        variables = [("fetch", "definition", "async def fetch(n):\n    return await kit.get(n)\n"), ("div", "definition", "def div(a, b):\n    return a / b\n")]
        played = child.play("x = await fetch(1)\ny = [await fetch(n) for n in range(2)]\ndiv(x, 0)", variables, lambda call: 1)
        self.assertEqual([(call["line"], call["column"], call["ordinal"]) for call in played.calls], [(1, 4, 0), (2, 5, 0), (2, 5, 1)])
        self.assertIn('File "<div>", line 2, in div\n    return a / b\n           ~~^~~\nZeroDivisionError: division by zero\nwhere a = 1, b = 0', played.ending["traceback"])
        self.assertEqual(played.ending["line"], 3)


class Bounds(unittest.TestCase):
    def test_hostile_values_do_not_stop_the_others(self):
        played = child.play(
            program("""
            touched = []
            class Evil(dict):
                def items(self): touched.append("items"); raise RuntimeError
                def __iter__(self): touched.append("iter"); raise RuntimeError
                def __eq__(self, other): touched.append("eq"); raise RuntimeError
                def __repr__(self):
                    while True: touched.append("repr")
                def __reduce__(self): touched.append("reduce"); raise RuntimeError
                __class__ = property(lambda self: touched.append("class") or int)
                def __getattribute__(self, name): touched.append(name); raise RuntimeError(name)
            evil = Evil(a=1)
            deep = []
            for _ in range(100_000): deep = [deep]
            big = "x" * 10_000_000
            globals()[1] = 2
            globals()["no name"] = 3
            globals()["x" * 1000] = 4
            ok = 1
            """)
        )
        self.assertEqual(played.contents["touched"], "[]")
        self.assertEqual(played.contents["evil"], '{"$":"object","v":["Evil",{},{"a":1}]}')
        self.assertEqual(
            dict(played.done["not_carried"]),
            {"deep": "it is nested deeper than 300 levels", "big": "it is larger than 8,192 KiB; keep only what is needed of it"},
        )
        self.assertEqual(sorted(played.written), ["Evil", "evil", "ok", "touched"])

    def test_ten_thousand_variables_and_the_sum_of_all(self):
        played = child.play("for n in range(10_000): globals()[f'v{n}'] = [n]")
        self.assertEqual(len(played.written), 10_001)
        played = child.play("for n in range(9): globals()[f'v{n}'] = 'x' * 1000", limits={"variables_bytes": 3500})
        self.assertEqual((len(played.written), len(played.done["not_carried"])), (4, 6))

    def test_a_final_frame_that_is_too_large_drops_the_largest(self):
        played = child.play("a = '\"' * 20_000\nb = 1", limits={"frame_bytes": 30_000})
        self.assertEqual((played.contents, played.done["not_carried"][0][0]), ({"b": "1"}, "a"))

    def test_more_names_than_a_round_keeps_are_cut_by_the_child_itself(self):
        most = child.load().capture.MOST_NAMES
        played = child.play(f"for n in range({most + 5000}): globals()[f'v{{n}}'] = n\nwarned = 1", [("v3", "value", "0")])
        self.assertEqual((len(played.written), len(played.done["not_carried"])), (most, 201))
        self.assertIn(["v20000", "a round keeps at most 20,000 names; put values into a list or dict"], played.done["not_carried"])
        self.assertEqual(played.done["not_carried"][-1], ["*", "and so are 4,802 more names"])
        self.assertEqual(played.done["removed"], [])

    def test_a_name_that_can_no_longer_be_carried_does_not_keep_its_older_value(self):
        before = [(f"v{n}", "value", "0") for n in range(300)]
        played = child.play("for n in range(300): globals()[f'v{n}'] = (x for x in [])", before)
        self.assertEqual((len(played.done["removed"]), len(played.done["not_carried"])), (300, 201))
        played = child.play("v1 = '\"' * 20_000", before[:2], limits={"frame_bytes": 30_000})
        self.assertEqual((played.done["removed"], played.done["not_carried"][0][0]), (["v1"], "v1"))

    def test_fifty_megabytes_in_many_variables_come_out_in_one_frame(self):
        played = child.play("for n in range(5_000): globals()[f'v{n}'] = ['x' * 50] * 200")
        self.assertEqual((played.ending["kind"], len(played.written), played.done["not_carried"]), ("returned", 5_001, []))
        self.assertGreater(sum(map(len, played.contents.values())), 50_000_000)

    def test_what_does_not_fit_into_the_final_frame_is_dropped_in_one_go(self):
        # Quotes take two bytes each in the frame, and one in the sum of all variables.
        source = "for n in range(3_000): globals()[f'v{n}'] = '\"' * 2_000\nsmall = 1"
        played = child.play(source, limits={"frame_bytes": 8 << 20, "variables_bytes": 64 << 20})
        self.assertEqual((played.ending["kind"], played.contents["small"]), ("returned", "1"))
        self.assertGreater(len(played.written), 500)
        self.assertEqual(played.done["not_carried"][0][1], "the variables of this round are too large together; keep less")

    def test_the_child_does_not_wait_for_sizes(self):
        played = child.play("x = [0] * 30_000_000\ny = {n: n for n in range(300_000)}\nz = 'x' * 100_000_000\nw = 10 ** 100_000")
        self.assertEqual(sorted(name for name, _ in played.done["not_carried"]), ["x", "z"])
        self.assertLess(played.cpu, 10)
        self.assertEqual(json.loads(played.contents["w"])["$"], "int")


if __name__ == "__main__":
    unittest.main()
