"""What a program leaves behind, whatever it did to its process, its signals and its event loop."""

import textwrap
import unittest

import child


def play(text, *before, **more):
    """One round after another, each with what those before it left; the last one."""
    variables = {}
    for source in (*before, text):
        played = child.play(textwrap.dedent(source).lstrip("\n"), [(name, *one) for name, one in variables.items()], **more)
        for name, entry in played.written.items():
            variables[name] = (entry["kind"], entry["content"])
    return played


class Values(unittest.TestCase):
    def test_classes_with_an_underscore_are_kept_for_values_of_them(self):
        first = """
            class _Node:
                def __init__(self, value): self.value = value
            def _double(x): return 2 * x
            root, table = [_Node(7)], {"double": _double}
            """
        self.assertEqual(play('print(table["double"](root[0].value))', first, "x = 1").output, "14\n")

    def test_classes_of_mappings_keep_their_order_and_their_factory(self):
        first = """
            from collections import OrderedDict, defaultdict
            class Recent(OrderedDict): pass
            class Groups(defaultdict): pass
            recent, groups = Recent(a=1, b=2), Groups(list, x=[1])
            recent.move_to_end("a")
            """
        second = """
            recent.move_to_end("b")
            groups["y"].append(2)
            print(list(recent.items()), recent.popitem(), dict(groups), type(groups).__name__)
            """
        self.assertEqual(play(second, first).output, "[('a', 1), ('b', 2)] ('b', 2) {'x': [1], 'y': [2]} Groups\n")

    def test_objects_of_a_generic_class_are_kept(self):
        first = """
            from typing import Generic, TypeVar
            T = TypeVar("T")
            class Box(Generic[T]):
                def __init__(self, value): self.value = value
            box = Box[int](3)
            """
        self.assertEqual(play("print(box.value, type(box).__name__)", first).output, "3 Box\n")

    def test_an_import_from_the_future_is_no_variable(self):
        played = play("from __future__ import annotations\ndef f(x: Unknown): return x\nf(1)\n")
        self.assertEqual((list(played.written), played.done["not_carried"]), (["f"], []))


class Interrupted(unittest.TestCase):
    def test_an_error_of_a_signal_handler_ends_the_wait_for_a_call_and_nothing_else(self):
        source = """
            import signal
            def late(number, frame):
                raise TimeoutError("late")
            signal.signal(signal.SIGALRM, late)
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            try:
                await kit.sleep(30)
            except TimeoutError as error:
                kept = str(error)
            print(kept, await kit.get(2))
            """
        answers = {"sleep": child.Later(never=True), "get": 2}
        played = play(source, answer=lambda call: answers[call["method"]])
        self.assertEqual((played.output, played.contents["kept"], played.cancelled), ("late 2\n", '"late"', [1]))

    def test_a_call_whose_sending_was_interrupted_is_not_waited_for(self):
        fimble = child.load()

        class Channel:
            frame_bytes, spin_us = 1 << 20, 0

            def put(self, kind, body):
                raise TimeoutError("late")

        class Output:
            def flush(self):
                """Nothing to flush."""

        calls = fimble.calls.Calls(Channel(), Output(), fimble.limits.Guard(), 5, __file__, "")
        make = lambda: calls.make("kit", "get", (1,), {})
        self.assertRaises(TimeoutError, make)
        self.assertEqual((calls.complete(), calls._count), ([], 1))

    def test_a_handler_that_calls_within_a_call_is_told_so(self):
        source = """
            import signal
            def call(number, frame):
                try:
                    kit.get(1).result()
                except RuntimeError as error:
                    print(error)
                    raise
            signal.signal(signal.SIGALRM, call)
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            try:
                await kit.sleep(30)
            except RuntimeError:
                kept = "told"
            """
        played = play(source, answer=lambda call: child.Later(never=True))
        self.assertEqual(played.output, "a signal handler cannot wait for a call while it interrupts the wait for another one\n")
        self.assertEqual(played.contents["kept"], '"told"')

    def test_handlers_end_with_their_program(self):
        source = """
            import signal
            def late(number, frame):
                raise TimeoutError("late")
            signal.signal(signal.SIGALRM, late)
            items = [[n] for n in range(200_000)]
            signal.setitimer(signal.ITIMER_REAL, 0.005)
            """
        played = play(source)
        self.assertIn(played.ending["kind"], ("returned", "raised"))
        self.assertEqual((played.code, "items" in played.contents), (0, True))


class Tasks(unittest.TestCase):
    def test_what_tasks_raise_at_the_end_costs_nothing(self):
        source = """
            import asyncio, sys
            async def leave():
                try:
                    await asyncio.sleep(30)
                finally:
                    sys.exit("bye")
            task = asyncio.create_task(leave())
            await asyncio.sleep(0)
            kept = 5
            """
        played = play(source)
        self.assertEqual((played.code, played.contents["kept"]), (0, "5"))
        self.assertEqual(played.output, "warning: what still ran at the end failed: SystemExit: bye\n")

    def test_an_error_that_nobody_fetched_is_told(self):
        source = """
            import asyncio
            async def fail(): raise ValueError("bad")
            async def work(): return 1
            failed, fine, seen = (asyncio.create_task(one()) for one in (fail, work, fail))
            await asyncio.gather(seen, return_exceptions=True)
            """
        self.assertEqual(play(source).output, "warning: the task fail failed and nothing waited for it: ValueError: bad\n")


class Hints(unittest.TestCase):
    def test_names_that_cannot_be_looked_up_are_no_passing_trouble(self):
        for raised in ("socket.gaierror(-3, 'Temporary failure in name resolution')", "urllib.error.URLError('no')"):
            played = play(f"import socket, urllib.error\nraise {raised}\n")
            self.assertIn("\nhint: a program has no network; call a toolkit", played.ending["traceback"])


class Threads(unittest.TestCase):
    def test_an_error_of_a_thread_is_told_by_the_programs_own_lines(self):
        source = """
            import threading
            def work(number):
                return 1 / number
            thread = threading.Thread(target=work, args=(0,), name="worker")
            thread.start(), thread.join()
            """
        said = play(source).output
        self.assertTrue(said.startswith("the thread worker failed\nTraceback (most recent call last):\n  File \"<program>\", line 3, in work\n"), said)
        self.assertTrue(said.endswith("ZeroDivisionError: division by zero\nwhere number = 0\n"), said)
        self.assertNotIn("threading.py", said)


class Imports(unittest.TestCase):
    def test_what_is_known_of_folders_outlives_a_round(self):
        fimble = child.load()
        import sys

        known = dict(sys.path_importer_cache)
        fimble.runner.rehearse()
        self.assertEqual({path: sys.path_importer_cache.get(path) for path in known}, known)

    def test_a_program_that_left_no_way_to_import_is_looked_at_all_the_same(self):
        source = """
            x = 1
            def double(number): return 2 * number
            x, held = 2, []
            try:
                while True: held.append(open("/dev/null"))
            except OSError:
                pass
            import sys
            sys.path.clear(), sys.meta_path.clear(), sys.path_hooks.clear()
            """
        played = play(source)
        self.assertEqual((played.contents["x"], played.written["double"]["kind"]), ("2", "definition"))

    def test_a_place_is_told_where_only_the_event_loop_was_running(self):
        source = "import asyncio\nx = 1\nawait asyncio.sleep(30)\n"
        played = play(source, signals=[(0.3, child.signal.SIGUSR1)])
        self.assertEqual(played.ending["kind"], "limit")
        self.assertIn("(at line 3, statement 3 of 3)", played.ending["message"])


if __name__ == "__main__":
    unittest.main()
