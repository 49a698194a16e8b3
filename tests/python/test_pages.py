"""`async for` over a call whose result comes page by page."""

import textwrap
import unittest

import child

# `kit.list(kind, cursor=…)` and `kit.flat(cursor=…)`, whose pages have their items at the top.
PAGING = [
    {"target": "kit", "method": "list", "argument": "cursor", "position": 1, "token": ["meta", "next"], "items": ["rows"]},
    {"target": "kit", "method": "wrong", "argument": "cursor", "position": 0, "token": ["next"], "items": ["rows"]},
]


def pages(call):
    """Three pages of two rows; `fails` on its second page, `repeats` leads to itself from there, `endless` has no last page."""
    if call["method"] != "list":
        return {"list_of": call["positional"], "rows": "no list"} if call["method"] == "wrong" else [1, 2]
    kind = call["positional"][0] if call["positional"] else call["keyword"]["kind"]
    cursor = call["keyword"].get("cursor") or (call["positional"][1] if len(call["positional"]) > 1 else None)
    number = int(cursor.removeprefix("p")) if cursor else 1
    if kind == "fails" and number == 2:
        raise child.Refusal("unavailable", "the second page is away", "try again")
    last = {"endless": 10**9, "repeats": 2}.get(kind, 3)
    next_one = f"p{number + 1}" if number < last else {"repeats": "p2", "empty": "", "null": None}.get(kind)
    rows = [] if kind == "sparse" and number < 3 else [f"{kind}{number}a", f"{kind}{number}b"]
    if kind == "absent":
        return {"rows": rows, **({"meta": {"next": next_one}} if next_one else {})}
    return {"rows": None if kind == "nothing" else rows, "meta": {"next": next_one}}


def play(source, **options):
    return child.play(textwrap.dedent(source).lstrip("\n"), answer=pages, paging=PAGING, **options)


def asked(played):
    return [(call["positional"], call["keyword"]) for call in played.calls]


class Pages(unittest.TestCase):
    def check(self, source, value, **options):
        played = play(source, **options)
        self.assertEqual((played.ending, played.output, played.cancelled), ({"kind": "returned", "value": value}, "", []))
        return played

    def test_the_items_of_all_pages_with_the_same_arguments(self):
        played = self.check(
            """
            labels, found = ["a"], []
            async for row in kit.list("x", labels=labels):
                found.append(row)
                labels.append("not seen by the next page")
            found
            """,
            "['x1a', 'x1b', 'x2a', 'x2b', 'x3a', 'x3b']",
        )
        sent = [(["x"], {"labels": ["a"]}), (["x"], {"labels": ["a"], "cursor": "p2"}), (["x"], {"labels": ["a"], "cursor": "p3"})]
        self.assertEqual(asked(played), sent)
        # The first call stands in the loop's line, and the pages after it are the loop's own.
        self.assertEqual([(call["line"], call["ordinal"]) for call in played.calls], [(2, 0), (2, 0), (2, 1)])

    def test_a_page_is_called_for_when_the_items_before_it_are_used_up(self):
        played = self.check(
            """
            async for row in kit.list("x"):
                kit.list(row, cursor="p3").result()
                if row == "x2a":
                    break
            row
            """,
            "'x2a'",
        )
        self.assertEqual([call["positional"][0] for call in played.calls], ["x", "x1a", "x1b", "x", "x2a"])

    def test_break_leaves_nothing_under_way(self):
        played = self.check("async for row in kit.list('x'):\n    break\nrow", "'x1a'")
        self.assertEqual(len(played.calls), 1)
        played = self.check("import asyncio\nasync for row in kit.list('x'):\n    if row == 'x1b': break\nawait asyncio.sleep(0)\nrow", "'x1b'")
        self.assertEqual(len(played.calls), 1)

    def test_every_place_for_a_loop(self):
        whole = "['x1a', 'x1b', 'x2a', 'x2b', 'x3a', 'x3b']"
        self.check("[row async for row in kit.list('x')]", whole)
        self.check("sorted({row: 1 async for row in kit.list(kind='x')})", whole)
        self.check("rows = kit.list('x')\n[row async for row in rows]", whole)
        self.check("async def rows(kind): return [row async for row in kit.list(kind)]\nawait rows('x')", whole)
        self.check("async def rows(kind):\n    async for row in kit.list(kind): yield row\n[row async for row in rows('x')]", whole)
        self.check("rows = aiter(kit.list('x'))\n[await anext(rows), await anext(rows), await anext(rows), await anext(rows, None)]", "['x1a', 'x1b', 'x2a', 'x2b']")
        self.check(
            """
            import asyncio
            async def rows(kind):
                return [row async for row in kit.list(kind)]
            [len(rows) for rows in await asyncio.gather(*[asyncio.create_task(rows(kind)) for kind in ("x", "empty", "sparse")])]
            """,
            "[6, 6, 2]",
        )
        # Two tasks that share one loop get each item once.
        self.check(
            """
            import asyncio
            rows, found = aiter(kit.list("x")), []
            async def take():
                async for row in rows:
                    found.append(row)
                    await asyncio.sleep(0)
            await asyncio.gather(take(), take())
            sorted(found)
            """,
            whole,
        )

    def test_where_it_ends(self):
        for kind in ("x", "empty", "null", "absent"):
            played = self.check(f"len([row async for row in kit.list('{kind}')])", "6")
            self.assertEqual(len(played.calls), 3, kind)
        # A server that leads a page to itself.
        self.assertEqual(len(self.check("[row async for row in kit.list('repeats')]", "['repeats1a', 'repeats1b', 'repeats2a', 'repeats2b']").calls), 2)
        self.assertEqual(len(self.check("[row async for row in kit.list('nothing')]", "[]").calls), 3)

    def test_it_begins_where_the_program_says(self):
        for call in ("'x', 'p3'", "'x', cursor='p3'", "kind='x', cursor='p3'"):
            self.assertEqual(len(self.check(f"[row async for row in kit.list({call})]", "['x3a', 'x3b']").calls), 1)
        played = self.check("[row async for row in kit.list('x', 'p2', 7)]", "['x2a', 'x2b', 'x3a', 'x3b']")
        self.assertEqual(asked(played), [(["x", "p2", 7], {}), (["x", "p3", 7], {})])

    def test_the_error_of_a_later_page_is_raised_in_the_loop(self):
        self.check(
            """
            found = []
            try:
                async for row in kit.list("fails"):
                    found.append(row)
            except Unavailable as error:
                found.append((error.toolkit, error.operation, error.hint))
            found
            """,
            "['fails1a', 'fails1b', ('kit', 'list', 'try again')]",
        )
        played = play("found = []\nasync for row in kit.list('fails'):\n    found.append(row)\n")
        self.assertEqual((played.ending["exception"], played.ending["line"]), ("Unavailable", 2))
        self.assertEqual(played.contents["found"], '["fails1a","fails1b"]')

    def test_the_limit_of_calls_holds(self):
        played = play("async for row in kit.list('endless'): pass", limits={"calls": 7})
        self.assertEqual((played.ending["kind"], played.ending["limit"], len(played.calls)), ("limit", "calls", 7))

    def test_a_timeout_cancels_the_page_that_is_waited_for(self):
        source = """
            import asyncio
            try:
                async with asyncio.timeout(0.05):
                    async for row in kit.list("x"):
                        pass
            except TimeoutError:
                row
            """
        slow = lambda call: child.Later(never=True) if call["keyword"].get("cursor") else pages(call)
        played = child.play(textwrap.dedent(source).lstrip("\n"), answer=slow, paging=PAGING)
        self.assertEqual((played.ending["kind"], played.cancelled, len(played.calls)), ("returned", [2], 2))

    def test_other_uses_are_as_ever(self):
        played = self.check("page = await kit.list('x')\n[page.rows, page.meta.next, kit.list('x').rows, [field for field in kit.list('x')]]", "[['x1a', 'x1b'], 'p2', ['x1a', 'x1b'], ['rows', 'meta']]")
        self.assertEqual(len(played.calls), 3)
        self.check("[row async for row in kit.flat()]", "[1, 2]")
        played = play("kept = aiter(kit.list('x'))\nawait anext(kept)")
        self.assertEqual(played.done["not_carried"], [["kept", "a Items belongs to this program; keep its items in a list"]])

    def test_what_is_no_list_is_told(self):
        played = play("[row async for row in kit.wrong()]")
        self.assertIn("TypeError: kit.wrong: `rows` is no list of items but a str", played.ending["traceback"])

    def test_arguments_are_taken_once(self):
        played = self.check("len([row async for row in kit.list('x', labels=(n for n in range(2)))])", "6")
        self.assertEqual([call["keyword"]["labels"] for call in played.calls], [[0, 1]] * 3)
        played = play("async for row in kit.list('x', labels=object()): pass")
        self.assertIn("TypeError: kit.list: argument `labels`", played.ending["traceback"])


if __name__ == "__main__":
    unittest.main()
