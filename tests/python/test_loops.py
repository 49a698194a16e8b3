"""`asyncio` under whatever name a program reaches it: in children that have it imported already, and in those that do not."""

import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

import child
from test_calls import echo

HIDDEN = 'aio = __import__("asyn" + "cio")\n'
# Sources and what they show. None of them has the module's name in it.
WAYS = {
    HIDDEN + "t = aio.create_task(kit.get(1))\nu = aio.ensure_future(kit.get(2))\n[await t, await u]": "[1, 2]",
    HIDDEN + "await aio.gather(kit.slow(1), kit.slow(2), kit.get(3))": "[1, 2, 3]",
    HIDDEN + "sorted([await f for f in aio.as_completed([kit.slow(1), kit.slow(2), kit.get(3)])])": "[1, 2, 3]",
    HIDDEN + "async with aio.timeout(5):\n    x = await kit.get(1)\nx": "1",
    HIDDEN + "try:\n    async with aio.timeout(0.01):\n        await kit.never()\nexcept TimeoutError as e:\n    x = 'late'\nx": "'late'",
    HIDDEN + "try:\n    await aio.wait_for(kit.never(), 0.01)\nexcept TimeoutError as e:\n    x = 'late'\nx": "'late'",
    HIDDEN + "async with aio.TaskGroup() as g:\n    a = g.create_task(kit.slow(1)); b = g.create_task(kit.get(2))\n[a.result(), b.result()]": "[1, 2]",
    HIDDEN + "async def main():\n    await aio.sleep(0)\n    return await kit.get(1), kit.get(2).result()\naio.run(main())": "(1, 2)",
    HIDDEN + "aio.get_event_loop().run_until_complete(kit.get(1))": "1",
    HIDDEN + "aio.get_event_loop_policy().get_event_loop() is aio.get_running_loop()": "True",
    HIDDEN + "sorted(await aio.gather(*[aio.to_thread(lambda n=n: kit.get(n) + 0) for n in range(5)], kit.get(5)))": "[0, 1, 2, 3, 4, 5]",
    HIDDEN + "await aio.sleep(0, 'now')": "'now'",
    HIDDEN + "await aio.sleep(0.001, 'soon')": "'soon'",
    HIDDEN + "async def f():\n    me = aio.current_task()\n    await aio.sleep(0)\n    return me is aio.current_task(), me in aio.all_tasks()\nawait f()": "(True, True)",
    HIDDEN + "async def f():\n    aio.current_task().cancel()\n    await aio.sleep(1)\ntry:\n    await f()\nexcept aio.CancelledError:\n    x = 'cancelled'\nx": "'cancelled'",
    HIDDEN + "async def f():\n    aio.current_task()\n    raise KeyError('seen')\ntry:\n    await f()\nexcept KeyError as e:\n    x = e.args\nawait aio.sleep(0, x)": "('seen',)",
    HIDDEN + "async def f():\n    return aio.current_task() is not None\n[await f(), await f()]": "[True, True]",
    HIDDEN + "async def f():\n    loop = aio.get_running_loop()\n    try:\n        aio.run(kit.get(1))\n    except RuntimeError as e:\n        return str(e)\nawait f()": "'asyncio.run() cannot be called from a running event loop'",
    HIDDEN + "loop = aio.new_event_loop()\nx = loop.run_until_complete(kit.get(1))\nloop.close()\nx": "1",
    HIDDEN + "queue = aio.Queue()\nasync def work():\n    while (n := await queue.get()) is not None:\n        got.append(await kit.get(n))\ngot = []\nt = aio.create_task(work())\nfor n in [1, 2, None]:\n    await queue.put(n)\nawait t\ngot": "[1, 2]",
    "import importlib\naio = importlib.import_module('asyn' + 'cio.tasks')\nawait aio.gather(kit.slow(1), kit.get(2))": "[1, 2]",
    "import sys\nexec('import asyn' + 'cio as aio')\nawait aio.gather(kit.slow(1), kit.get(2))": "[1, 2]",
    "import concurrent.futures as f\nwith f.ThreadPoolExecutor(1) as pool:\n    aio = pool.submit(__import__, 'asyn' + 'cio').result()\nawait aio.gather(kit.slow(1), kit.get(2))": "[1, 2]",
    # What a context holds is there in all statements, whoever drives them.
    "import contextvars\nv = contextvars.ContextVar('v')\nv.set(1)\n" + HIDDEN + "async def f():\n    before = v.get()\n    v.set(2)\n    await aio.sleep(0)\n    v.set(v.get() + 1)\n    return before\n[await f(), v.get()]": "[1, 3]",
    "import helper\nawait helper.both(kit.slow(1), kit.get(2))": "[1, 2]",
    "await carried(kit.slow(1), kit.get(2))": "[1, 2]",
}
CARRIED = (
    "carried", "definition",
    "async def carried(*calls):\n    " + HIDDEN + "    return await aio.gather(*calls)\n",
)  # fmt: skip


class Hidden(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        Path(folder, "helper.py").write_text("import asyncio\n\n\nasync def both(*calls):\n    return await asyncio.gather(*calls)\n")
        sys.path.append(folder)
        cls.addClassCleanup(sys.path.remove, folder)

    def test_every_way_works_under_another_name(self):
        for source, value in WAYS.items():
            with self.subTest(source):
                played = child.play(source, [CARRIED], answer=echo, deadline=10)
                self.assertEqual((played.ending, played.output), ({"kind": "returned", "value": value}, ""))
                self.assertEqual(played.code, 0)

    def test_what_is_left_at_the_end_is_cancelled_and_named(self):
        source = HIDDEN + "async def watch():\n    await aio.sleep(9)\nt = aio.create_task(watch())\nawait kit.get(1)"
        played = child.play(source, answer=echo, deadline=10)
        self.assertEqual(played.output, "warning: the task watch still ran at the end and was cancelled; await it\n")

    def test_nobody_waits_for_what_is_no_future(self):
        source = "class Odd:\n    def __await__(self):\n        yield 5\nawait Odd()"
        played = child.play(source, answer=echo, deadline=10)
        self.assertEqual(played.ending["exception"], "RuntimeError")
        self.assertIn("Task got bad yield: 5", played.ending["traceback"])

    def test_a_loop_that_nobody_asks_for_sleeps(self):
        source = "async def f():\n    return await kit.get(1)\n[await f(), await kit.get(2)]\nimport os\n"
        look = "def files():\n    for n in os.listdir('/proc/self/fd'):\n        try:\n            yield os.readlink(f'/proc/self/fd/{n}')\n        except OSError:\n            pass\n'anon_inode:[eventpoll]' in set(files())"
        self.assertEqual(child.play(source + look, answer=echo).ending["value"], "False")
        self.assertEqual(child.play(HIDDEN + source + "await aio.sleep(0)\n" + look, answer=echo).ending["value"], "True")


class Cold(unittest.TestCase):
    """The same in children that have not imported `asyncio`."""

    def test_every_way_works_there_too(self):
        script = textwrap.dedent(
            """
            import sys
            sys.path.insert(0, sys.argv[1])
            import child
            child.load(warm=False)
            import test_loops
            test_loops.Hidden.setUpClass()
            for name in [name for name in sys.modules if name.partition(".")[0] in ("asyncio", "_asyncio")]:
                sys.exit(f"{name} is imported")
            for source, value in test_loops.WAYS.items():
                played = child.play(source, [test_loops.CARRIED], answer=test_loops.echo, deadline=10)
                if (played.ending, played.output, played.code) != ({"kind": "returned", "value": value}, "", 0):
                    sys.exit(f"{source}\\n{played.ending} {played.output}")
            plain = child.play("await kit.get(1)\\nimport sys\\n'asyn' + 'cio' in sys.modules", answer=test_loops.echo)
            if plain.ending["value"] != "False":
                sys.exit("a program that does not ask for it imports asyncio")
            test_loops.Hidden.doClassCleanups()
            print("all")
            """
        )
        done = subprocess.run([sys.executable, "-c", script, str(Path(__file__).parent)], capture_output=True, text=True, timeout=300)
        self.assertEqual((done.stdout, done.stderr), ("all\n", ""))


if __name__ == "__main__":
    unittest.main()
