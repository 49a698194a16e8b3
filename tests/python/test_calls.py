"""Calls of toolkits: awaited, gathered, cancelled, used without await, and what their errors are."""

import textwrap
import unittest

import child

play = child.play


def program(text):
    return textwrap.dedent(text).lstrip("\n")


def echo(call):
    """Fails for operations that are called like a kind, answers later to `slow`, never to `never`."""
    if call["method"] == "slow":
        return child.Later(call["positional"][0])
    if call["method"] == "never":
        return child.Later(never=True)
    if call["method"].startswith("fail_"):
        raise child.Refusal(call["method"][5:], "it failed", call["keyword"].get("hint"))
    return call["positional"][0] if call["positional"] else call["keyword"]


class Ways(unittest.TestCase):
    def check(self, source, value, **options):
        played = play(program(source), answer=echo, **options)
        self.assertEqual((played.ending, played.output), ({"kind": "returned", "value": value}, ""))
        return played

    def test_the_frame(self):
        source = "é = [kit.get(n, name=n, self=n, positional=n) for n in range(2)]; await kit.get(1)"
        played = play(source, answer=echo)
        frame = {"target": "kit", "method": "get", "line": 1}
        keyword = lambda n: {"name": n, "self": n, "positional": n}
        self.assertEqual(
            played.calls,
            [
                {**frame, "id": 1, "positional": [0], "keyword": keyword(0), "column": 5, "ordinal": 0},
                {**frame, "id": 2, "positional": [1], "keyword": keyword(1), "column": 5, "ordinal": 1},
                {**frame, "id": 3, "positional": [1], "keyword": {}, "column": source.rindex("kit"), "ordinal": 0},
            ],
        )

    def test_gathered_calls_are_all_sent_before_the_first_answer(self):
        played = self.check(
            """
            import asyncio
            await asyncio.gather(kit.slow(1), kit.slow(2), kit.get(3), return_exceptions=True)
            """,
            "[1, 2, 3]",
        )
        kinds = [kind for kind, _ in played.frames if kind in (child.CALL, child.STATEMENT)]
        self.assertEqual(kinds, [child.STATEMENT, child.CALL, child.CALL, child.CALL, child.STATEMENT])

    def test_bytes_in_a_result(self):
        self.check("(await kit.get({'$': 'bytes', 'v': 'AAEC'}), await kit.get([{'v': '', '$': 'bytes'}]))", "(b'\\x00\\x01\\x02', [b''])")
        for text in ("{'$': 'bytes', 'v': 'no!'}", "{'$': 'bytes', 'v': 3}", "{'$': 'bytes'}", "{'$': 'bytes', 'v': 'AA==', 'x': 1}"):
            self.check(f"await kit.get({text})", text)

    def test_bytes_as_an_argument_are_what_bytes_in_a_result_are(self):
        source = """
            image = await kit.get({'data': {'$': 'bytes', 'v': '/wAB'}})
            await kit.get(image, data=image.data, pieces=[bytearray(b'a'), memoryview(b'')])
            await kit.get(image.data) == image.data == b'\\xff\\0\\1'
            """
        played = self.check(source, "True")
        as_sent = {"$": "bytes", "v": "/wAB"}
        self.assertEqual(played.calls[1]["positional"], [{"data": as_sent}])
        self.assertEqual(played.calls[1]["keyword"], {"data": as_sent, "pieces": [{"$": "bytes", "v": "YQ=="}, {"$": "bytes", "v": ""}]})

    def test_every_way_of_asyncio(self):
        self.check("import asyncio\nt = asyncio.create_task(kit.get(1))\nu = asyncio.ensure_future(kit.get(2))\n[await t, await u]", "[1, 2]")
        self.check("import asyncio\nawait asyncio.wait_for(kit.get(1), 5)", "1")
        self.check("import asyncio\nsorted([await f for f in asyncio.as_completed([kit.slow(1), kit.slow(2), kit.get(3)])])", "[1, 2, 3]")
        self.check("import asyncio\nasync with asyncio.timeout(5):\n    x = await kit.get(1)\nx", "1")
        self.check("import asyncio\nasync with asyncio.TaskGroup() as g:\n    a = g.create_task(kit.slow(1)); b = g.create_task(kit.get(2))\n[a.result(), b.result()]", "[1, 2]")
        self.check("import asyncio\nasync def main():\n    return await kit.get(1), kit.get(2).result()\nasyncio.run(main())", "(1, 2)")
        self.check("import asyncio\nasyncio.get_event_loop().run_until_complete(kit.get(1))", "1")
        self.check("[x async for x in kit.get([1, 2])]", "[1, 2]")
        self.check("async def f(n): return await kit.get(n)\n[await f(n) for n in range(3)]", "[0, 1, 2]")
        self.check("p = kit.get(1)\n[await p, await p, p.result()]", "[1, 1, 1]")

    def test_sync_helpers_wait_in_place_also_within_the_loop(self):
        self.check(
            """
            import asyncio
            def helper(n):
                return kit.get(n).result() + kit.get(n)
            async def work(n):
                slow = kit.slow(n)
                return helper(n) + await slow
            await asyncio.gather(work(1), work(10))
            """,
            "[3, 30]",
        )

    def test_a_result_is_used_without_await(self):
        uses = {
            'kit.get({"a": 1})["a"]': "1", "kit.get({'a': 1}).a": "1", "[x for x in kit.get([1, 2])]": "[1, 2]",
            "len(kit.get([1, 2]))": "2", "'yes' if kit.get([]) else 'no'": "'no'", "kit.get(2) == 2, kit.get(1) < kit.get(2)": "(True, True)",
            "kit.get(2) + 1, 3 - kit.get(2), kit.get(4) / kit.get(2)": "(3, 1, 2.0)", "f'{kit.get(2):>3}', str(kit.get('a')), repr(kit.get('a'))": "('  2', 'a', \"'a'\")",
            "1 in kit.get([1])": "True", "kit.get('a').upper()": "'A'", "kit.get(kit.get(7))": "7", "dict(**kit.get({'a': 1}))": "{'a': 1}",
            "range(5)[kit.get(2)]": "2", "int(kit.get('3'))": "3", "-kit.get(1), abs(kit.get(-1)), round(kit.get(1.26), 1)": "(-1, 1, 1.3)",
            "copy.deepcopy(kit.get([1]))": "[1]", "list(reversed(kit.get([1, 2])))": "[2, 1]", "sorted(kit.get([2, 1]))": "[1, 2]",
        }  # fmt: skip
        found = {use: play(use, answer=echo).ending["value"] for use in uses if "value" in play(use, answer=echo).ending}
        self.assertEqual(found, uses)

    def test_threads(self):
        self.check(
            """
            from concurrent.futures import ThreadPoolExecutor
            import asyncio
            with ThreadPoolExecutor(4) as pool:
                a = list(pool.map(lambda n: kit.get(n).result(), range(50)))
            b = await asyncio.gather(*[asyncio.to_thread(lambda n=n: kit.get(n) + 0) for n in range(20)], kit.get(20))
            [a == list(range(50)), b == list(range(21))]
            """,
            "[True, True]",
        )

    def test_proxies_behave_for_dunders(self):
        self.check("[hasattr(kit, '__len__'), hasattr(kit.get, '__wrapped__'), repr(kit), repr(kit.get)]", "[False, False, '<toolkit kit>', '<operation kit.get>']")

    def test_arguments_become_json(self):
        played = play(
            program("""
            import decimal, enum, pathlib, dataclasses, collections, uuid, fractions
            class Level(enum.Enum): HIGH = "high"
            @dataclasses.dataclass
            class Job: name: str; level: Level
            Pair = collections.namedtuple("Pair", "a b")
            await kit.get([Level.HIGH, Job("x", Level.HIGH), Pair(1, 2), (1, 2), {3, 1}, pathlib.Path("/a"), decimal.Decimal("1.5"),
                decimal.Decimal("0.1234567890123456789"), datetime.date(2024, 1, 2), datetime.timedelta(minutes=1), uuid.UUID(int=1),
                fractions.Fraction(1, 4), (n for n in range(2)), {1: 2, None: True}, range(2), collections.deque([1])])
            """),
            answer=echo,
        )
        self.assertEqual(
            played.calls[0]["positional"][0],
            [
                "high", {"name": "x", "level": "high"}, {"a": 1, "b": 2}, [1, 2], [1, 3], "/a", 1.5, "0.1234567890123456789", "2024-01-02", 60,
                "00000000-0000-0000-0000-000000000001", 0.25, [0, 1], {"1": 2, "null": True}, [0, 1], [1],
            ],
        )  # fmt: skip

    def test_what_has_no_json_is_a_type_error_that_names_the_argument(self):
        errors = {
            "kit.get(1, path=object())": "kit.get: argument `path`: a object cannot be passed to a toolkit; pass its data as text, numbers, lists or dicts",
            "kit.get(float('nan'))": "kit.get: argument 1: nan is no number a toolkit can take; pass None where one is missing",
            "kit.get([1.5, -float('inf')])": "kit.get: argument 1: -inf is no number a toolkit can take",
            "kit.get(2**70)": "kit.get: argument 1: a number of more than 64 bits; pass it as text",
            "a = []\na.append(a)\nkit.get(a)": "kit.get: argument 1: nested deeper than 100 levels, or contains itself",
            "kit()": "kit is a toolkit; call one of its operations, e.g. kit.operation(…)",
            "await kit.get": "kit.get is not called; write kit.get(…)",
        }
        for source, message in errors.items():
            played = play(source, answer=echo)
            self.assertEqual(played.ending["traceback"].split("\nwhere")[0].splitlines()[-1], f"TypeError: {message}")
            self.assertEqual(played.calls, [])


class Failures(unittest.TestCase):
    def test_each_kind_is_a_class(self):
        source = """
            found = []
            for call in (kit.fail_unknown_operation, kit.fail_invalid_argument, kit.fail_not_found, kit.fail_timeout, kit.fail_unavailable, kit.fail_forbidden, kit.fail_failed):
                try:
                    await call(hint="h")
                except ToolError as error:
                    found.append([type(error).__name__, error.kind, error.message, error.hint, error.toolkit, error.operation == "fail_" + error.kind])
            try:
                await kit.fail_timeout()
            except TimeoutError as error:
                found.append(str(error))
            """
        played = play(program(source), answer=echo)
        names = ["UnknownOperation", "InvalidArgument", "NotFound", "ToolTimeout", "Unavailable", "Forbidden", "Failed"]
        kinds = ["unknown_operation", "invalid_argument", "not_found", "timeout", "unavailable", "forbidden", "failed"]
        expected = [[name, kind, "it failed", "h", "kit", True] for name, kind in zip(names, kinds)]
        self.assertEqual(child.json.loads(played.contents["found"]), [*expected, "it failed"])

    def test_denied_passes_except_exception(self):
        played = play("try:\n    await kit.fail_denied()\nexcept Exception:\n    pass\nx = 1", answer=echo)
        self.assertEqual((played.ending["exception"], played.contents), ("Denied", {}))
        self.assertTrue(played.ending["traceback"].endswith("Denied: it failed"), played.ending["traceback"])

    def test_errors_can_be_kept(self):
        played = play("try:\n    await kit.fail_not_found(hint='h')\nexcept ToolError as e:\n    kept = e", answer=echo)
        again = play("[type(kept), str(kept), kept.toolkit]", [("kept", "value", played.contents["kept"])])
        self.assertEqual(again.ending["value"], "[<class 'NotFound'>, 'it failed (hint: h)', 'kit']")

    def test_calls_that_nothing_waited_for_are_completed_and_their_errors_told(self):
        played = play("x = kit.get(5)\ny = kit.fail_failed()\n[kit.get(1) for _ in range(2)]\n1", answer=echo)
        self.assertEqual(played.output, "warning: kit.fail_failed (line 2) failed and nothing waited for it: Failed: it failed\n")
        self.assertEqual((played.ending["value"], len(played.calls), played.contents), ("1", 4, {"x": "5"}))
        self.assertEqual(played.done["not_carried"], [["y", "its call failed"]])

    def test_cancelling_the_awaiting_task_cancels_the_call(self):
        source = """
            import asyncio
            try:
                await asyncio.wait_for(kit.never(), 0.05)
            except TimeoutError:
                x = "late"
            t = asyncio.create_task(kit.never())
            await asyncio.sleep(0)
            t.cancel()
            try:
                await t
            except asyncio.CancelledError:
                y = "cancelled"
            await kit.get(1)
            """
        played = play(program(source), answer=echo)
        self.assertEqual((played.ending["value"], played.contents.get("x"), played.contents.get("y"), played.cancelled), ("1", '"late"', '"cancelled"', [1, 2]))

    def test_tasks_that_still_run_are_cancelled_and_named(self):
        source = """
            import asyncio
            async def watch():
                while True:
                    await asyncio.sleep(1)
            t = asyncio.create_task(watch())
            async def broken():
                raise ValueError("oops")
            u = asyncio.create_task(broken())
            await kit.get(1)
            """
        played = play(program(source), answer=echo)
        said = ["the task broken failed and nothing waited for it: ValueError: oops", "the task watch still ran at the end and was cancelled; await it"]
        self.assertEqual(sorted(played.output.splitlines()), [f"warning: {sentence}" for sentence in said])
        self.assertEqual(played.ending["value"], "1")

    def test_too_many_values_are_refused_here(self):
        for argument in ("[0] * 1_000_001", "[[0] * 1_000] * 1_000", "iter(range(1_000_001))", "{str(n): n for n in range(600_000)}"):
            played = play(f"await kit.get(1, x={argument})", answer=echo)
            self.assertEqual((played.ending["exception"], played.calls), ("TypeError", []))
            self.assertIn("kit.get: argument `x`: more than 999,900 values in one call; pass less at a time", played.ending["traceback"])

    def test_too_large_arguments_are_refused_here(self):
        played = play("await kit.get('x' * 100_000)", answer=echo, limits={"frame_bytes": 50_000})
        self.assertEqual((played.ending["exception"], played.calls), ("InvalidArgument", []))


if __name__ == "__main__":
    unittest.main()
