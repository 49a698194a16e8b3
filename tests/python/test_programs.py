"""Programs from RUN to DONE: statements, endings, tracebacks, output and limits."""

import ast
import inspect
import signal
import textwrap
import unittest

import child

play = child.play


def program(text):
    return textwrap.dedent(text).lstrip("\n")


class Statements(unittest.TestCase):
    def test_flags_are_those_of_the_modules_that_it_does_not_import(self):
        from _fimble import statements

        flags = statements.FLAGS, statements.ONLY_TREE, statements.COROUTINE
        self.assertEqual(flags, (ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, ast.PyCF_ONLY_AST, inspect.CO_COROUTINE))

    def test_a_whole_final_frame(self):
        played = play('x = 1\nprint("hello", x)\nx + 1\n')
        self.assertEqual(played.code, 0)
        self.assertEqual(
            played.done,
            {
                "ending": {"kind": "returned", "value": "2"},
                "written": [
                    {"name": "x", "kind": "value", "content": "1", "type_name": "int", "preview": "1", "line": 1, "references": []}
                ],
                "removed": [],
                "not_carried": [],
                "statements_done": 3,
                "statements": 3,
            },
        )
        kinds = [(kind, body) for kind, body in played.frames if kind in (child.PRINT, child.STATEMENT)]
        self.assertEqual(
            kinds,
            [
                (child.STATEMENT, {"number": 1, "of": 3}),
                (child.PRINT, {"text": "hello 1\n"}),
                (child.STATEMENT, {"number": 2, "of": 3}),
                (child.STATEMENT, {"number": 3, "of": 3}),
            ],
        )

    def test_values_of_last_expressions(self):
        values = {
            "": None, "None": None, "x = 5": None, "'a' * 3": "'aaa'", "[1, {'a': (2,)}]": "[1, {'a': (2,)}]",
            "await kit.get()": "{'a': 1}", "kit.get()": "{'a': 1}", "async def f(): return 4\nf()": "4",
            "import asyncio\nasync def f(): return 4\nasyncio.run(f())": "4", "Ellipsis": "Ellipsis",
            "class A:\n    def __repr__(self): return 'an A'\nA()": "an A", "type('B', (), {})": "<class '__main__.B'>",
        }  # fmt: skip
        found = {source: play(source, answer=lambda call: {"a": 1}).ending for source in values}
        self.assertEqual(found, {source: {"kind": "returned", "value": value} for source, value in values.items()})

    def test_exit_ends_the_program_normally(self):
        for leave in ("exit()", "quit(3)", "raise SystemExit", "sys.exit('bye')"):
            played = play(f"x = 1\n{leave}\nx = 2")
            self.assertEqual((played.ending, played.contents, played.done["statements_done"]), ({"kind": "returned", "value": None}, {"x": "1"}, 1))
        self.assertEqual(played.output, "bye\n")

    def test_main_guard_modules_without_import_and_input(self):
        played = play(
            program("""
            if __name__ == "__main__":
                print(json.loads("[1]"), re.sub("a", "b", "a"), math.floor(1.5), datetime.date(2024, 1, 2))
            input("name?")
            """)
        )
        self.assertEqual(played.output, "[1] b 1 2024-01-02\nname?")
        self.assertEqual((played.ending["exception"], played.contents), ("EOFError", {}))

    def test_future_imports_hold_for_later_statements(self):
        played = play("from __future__ import annotations\ndef f(x: Missing) -> Other: return x\nf(1)")
        self.assertEqual(played.ending, {"kind": "returned", "value": "1"})
        again = play("f(2)", [("f", "definition", played.contents["f"])])
        self.assertEqual(again.ending, {"kind": "returned", "value": "2"})

    def test_a_program_cannot_break_the_runner_by_accident(self):
        played = play(
            program("""
            import builtins, sys, json, os, asyncio
            for name in ("len", "type", "print", "isinstance", "set", "map", "sorted", "list", "dict", "str"):
                setattr(builtins, name, None)
            json.dumps = os.write = os.read = None
            sys.stdout = None
            sys.modules.clear()
            sys.setrecursionlimit(60)
            sys.settrace(lambda *_: None)
            x = [1]
            """)
        )
        self.assertEqual((played.ending, played.contents.get("x")), ({"kind": "returned", "value": None}, "[1]"))

    def test_without_a_final_frame_the_exit_code_tells(self):
        self.assertIsNone(play("import os\nos._exit(0)").done)
        played = play("import os\nfor n in range(3, 30):\n    try: os.close(n)\n    except OSError: pass\nx = 1")
        self.assertEqual((played.done, played.code), (None, 3))


class Tracebacks(unittest.TestCase):
    def ending(self, text, **options):
        ending = play(program(text), **options).ending
        if ending["kind"] == "raised":
            # Python versions differ in where they point at.
            lines = ending["traceback"].splitlines()
            ending["traceback"] = "\n".join(line for line in lines if line.strip(" ~^"))
        return ending

    def test_only_the_programs_lines_with_the_values_on_the_failing_one(self):
        ending = self.ending(
            """
            import fractions
            def half(text, count):
                return fractions.Fraction(text) / count
            half("a", 5)
            """
        )
        self.assertEqual(
            ending,
            {
                "kind": "raised",
                "traceback": program("""
                    Traceback (most recent call last):
                      File "<program>", line 4, in <module>
                        half("a", 5)
                      File "<program>", line 3, in half
                        return fractions.Fraction(text) / count
                    ValueError: Invalid literal for Fraction: 'a'
                    where text = 'a', count = 5""").rstrip("\n"),
                "exception": "ValueError",
                "statement": 3,
                "line": 3,
            },
        )

    def test_a_tool_error_is_raised_at_the_call(self):
        def refuse(call):
            raise child.Refusal("not_found", "no pod named web", "list the pods")

        ending = self.ending("name = 'web'\npod = await kit.get(name)\n", answer=refuse)
        self.assertEqual(
            ending,
            {
                "kind": "raised",
                "traceback": program("""
                    Traceback (most recent call last):
                      File "<program>", line 2, in <module>
                        pod = await kit.get(name)
                    NotFound: no pod named web (hint: list the pods)
                    where name = 'web'""").rstrip("\n"),
                "exception": "NotFound",
                "statement": 2,
                "line": 2,
            },
        )

    def test_syntax_errors_have_no_statement(self):
        ending = self.ending("x = 1\nif x = 2:\n    pass\n")
        self.assertEqual((ending["exception"], ending["statement"], ending["line"]), ("SyntaxError", 0, 2))
        self.assertIn('File "<program>", line 2\n    if x = 2:\n', ending["traceback"])
        self.assertEqual(self.ending("x = 1\nreturn x")["exception"], "SyntaxError")
        self.assertEqual(self.ending("(" * 5000)["statement"], 0)
        self.assertEqual(self.ending("x = 1\0")["statement"], 0)

    def test_recursion_and_hostile_messages_are_bounded(self):
        ending = self.ending("def f(n):\n    return f(n + 1)\nf(0)")
        self.assertEqual((ending["exception"], ending["line"]), ("RecursionError", 2))
        self.assertLess(len(ending["traceback"]), 3_000)
        self.assertLess(len(self.ending("raise ValueError('x' * 10**6)")["traceback"]), 10_000)
        ending = self.ending("class E(Exception):\n    def __str__(self): raise KeyError\nraise E")
        self.assertEqual(ending["exception"], "E")

    def test_causes_and_report(self):
        played = play(
            program("""
            try:
                {}["a"]
            except KeyError as error:
                report(error)
                raise ValueError("b") from error
            """)
        )
        self.assertEqual(played.output, "Traceback (most recent call last):\n  File \"<program>\", line 2, in <module>\n    {}[\"a\"]\n    ~~^^^^^\nKeyError: 'a'\n")
        self.assertIn("direct cause", played.ending["traceback"])

    def test_missing_fields_name_those_there_are(self):
        ending = self.ending("c = await kit.get()\nc.shaa", answer=lambda call: {"sha": "1", "author": "x"})
        self.assertIn("no field 'shaa', did you mean 'sha'? the fields are: sha, author", ending["traceback"])

    def test_a_record_that_is_taken_for_its_list_says_where_that_is(self):
        ending = self.ending("c = await kit.get()\nc[0]", answer=lambda call: {"ports": [], "truncated": False})
        told = "this is a record and no list: its list is `.ports`, the fields are: ports, truncated"
        self.assertIn(told, ending["traceback"])
        ending = self.ending("c = await kit.get()\nc[0]", answer=lambda call: {"a": [], "b": []})
        self.assertIn("no field 0; the fields are: a, b", ending["traceback"])


class Outputs(unittest.TestCase):
    def test_surrogates_bytes_and_errors(self):
        played = play("print('a\\ud800b', '\\ud83d\\ude00')\nsys.stdout.buffer.write('é'.encode())\nprint('e', file=sys.stderr)\nsys.stdout.write(5)")
        self.assertEqual(played.output, "a\ufffdb 😀\née\n")
        self.assertEqual(played.ending["exception"], "TypeError")

    def test_ten_megabytes_are_cut_with_a_mark(self):
        played = play("print('x' * 10_000_000)\nfor n in range(10_000): print('é' * 100)")
        self.assertEqual(played.output[-26:], "x\n[output cut at 256 KiB]\n"[-26:])
        self.assertLessEqual(len(played.output.encode()), 256 * 1024)
        self.assertEqual(played.ending["kind"], "returned")

    def test_prints_arrive_while_the_program_runs(self):
        played = play("for n in range(3):\n    print(n)\n    await kit.tick(n)")
        order = [kind for kind, _ in played.frames if kind in (child.PRINT, child.CALL)]
        self.assertEqual(order, [child.PRINT, child.CALL] * 3)

    def test_warnings_are_lines(self):
        played = play("async def f(): pass\nx = [f()]\ndel x\nimport warnings\nwarnings.warn('careful')")
        self.assertEqual(played.output, "warning: coroutine 'f' was never awaited (line 3)\nwarning: careful (line 5)\n")


class Limits(unittest.TestCase):
    def test_time_and_cpu_keep_output_and_variables(self):
        for number, limit in ((signal.SIGUSR1, "wall"), (signal.SIGXCPU, "cpu")):
            played = play("x = [1]\nprint('so far')\nwhile True:\n    x.append(2) if len(x) < 3 else None\n", signals=[(0.3, number)])
            self.assertEqual((played.ending["kind"], played.ending["limit"], played.output), ("limit", limit, "so far\n"))
            self.assertIn("(at line", played.ending["message"])
            self.assertEqual((played.contents, played.done["statements_done"], played.done["statements"]), ({"x": "[1,2,2]"}, 2, 3))

    def test_time_passes_while_waiting(self):
        for source in (
            "await kit.never()", "kit.never().result()", "import asyncio\nawait asyncio.gather(kit.never(), kit.never())",
            "import asyncio\nawait asyncio.sleep(100)", "import time\ntime.sleep(100)", "x = kit.never()",
            "import asyncio\nasync def f():\n    while True: await asyncio.sleep(0)\nt = asyncio.create_task(f())\nawait t",
            "try:\n    while True: pass\nfinally:\n    1 / 0", "try:\n    while True: pass\nexcept Exception:\n    pass",
        ):  # fmt: skip
            with self.subTest(source):
                played = play("a = 1\n" + source, answer=lambda call: child.Later(never=True), signals=[(0.2, signal.SIGUSR1)])
                self.assertEqual((played.ending["kind"], played.ending.get("limit"), played.contents["a"]), ("limit", "wall", "1"))

    def test_endless_output_keeps_what_was_printed_first(self):
        played = play("x = 1\nwhile True:\n    try: print('y' * 1000)\n    except Exception: pass", limits={"output_bytes": 2048})
        self.assertEqual((played.ending["limit"], played.contents, played.done["statements_done"]), ("output", {"x": "1"}, 1))
        self.assertTrue(played.output.startswith("y" * 1000) and played.output.endswith("[output cut at 2 KiB]\n"))

    def test_too_many_calls(self):
        played = play("for n in range(9): last = await kit.get(n)", answer=lambda call: call["id"], limits={"calls": 3})
        self.assertEqual((played.ending["limit"], len(played.calls), played.contents), ("calls", 3, {"n": "3", "last": "3"}))

    def test_limits_of_the_kernel_are_named(self):
        hints = {
            "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))\nkept = [open('/dev/null') for _ in range(99)]":
                "a program may have 32 files open at the same time; close each one, e.g. with `with`",
            "import resource, tempfile\nresource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\nimport signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "with tempfile.TemporaryFile() as file:\n    file.write(bytes(2 << 20))":
                "the scratch folder holds 1 MiB; remove what is not needed, or keep data in variables",
            "raise RuntimeError(\"can't start new thread\")": "no more threads can be started; use a pool of a few, or `asyncio.gather` for calls",
        }  # fmt: skip
        for source, hint in hints.items():
            self.assertEqual(play(source).ending["traceback"].splitlines()[-1], f"hint: {hint}", source)
        self.assertNotIn("hint", play("raise PermissionError(1, 'x')").ending["traceback"])

    def test_memory(self):
        played = play("import resource\nresource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20))\nx = 1\ny = bytearray(1 << 30)")
        self.assertEqual((played.ending["kind"], played.ending["limit"], played.contents["x"]), ("limit", "memory", "1"))

    def test_what_fits_is_kept_however_the_memory_was_used_up(self):
        few = "for n in range(100): globals()[f'v{n}'] = 'x' * 7_000_000"
        many = "rows = []\nwhile True: rows.append({'a': len(rows), 'b': str(len(rows))})"
        for megabytes, source in ((20, few), (60, few), (20, many), (60, many)):
            bound = f"size + ({megabytes} << 20)"
            start = (
                "import resource\nsize = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
                f"small = [1]\nresource.setrlimit(resource.RLIMIT_AS, ({bound}, {bound}))\n"
            )
            with self.subTest(megabytes=megabytes, source=source):
                played = play(start + source)
                self.assertEqual((played.code, played.ending["limit"], played.contents.get("small")), (0, "memory", "[1]"))
                self.assertIn(["rows" if source is many else "v0"], [[name] for name, _ in played.done["not_carried"]])


if __name__ == "__main__":
    unittest.main()
