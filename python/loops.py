"""A program's event loop: one for the whole program, which counts as running also between its statements.

Loaded when a program has `asyncio` in sight, because that takes longer to import than most programs run. It does not
know what a call is.
"""

import asyncio
import contextlib
import contextvars
import types

from _fimble.pending import Pending
from _fimble.repeat import monotonic
from _fimble.statements import COROUTINE, Driver

_get_running, _set_running = asyncio._get_running_loop, asyncio._set_running_loop
# Looked up before `isinstance`, which asks for `__class__`.
getattr(asyncio.coroutines, "_iscoroutine_typecache", set()).add(Pending)


@contextlib.contextmanager
def _standing_still():
    """Lets another loop run while the program's own one stands still."""
    loop = _get_running()
    stands_still = type(loop) is ProgramLoop and not loop.is_running()
    if stands_still:
        _set_running(None)
    try:
        yield
    finally:
        if stands_still:
            _set_running(loop)


class Loop(asyncio.SelectorEventLoop):
    """An event loop that a program makes."""

    def time(self):
        return monotonic()

    def run_forever(self):
        with _standing_still():
            super().run_forever()

    def run_until_complete(self, future):
        with _standing_still():
            return super().run_until_complete(future)


class ProgramLoop(Loop):
    """The event loop that counts as the running one also while it stands still."""


class Runner(asyncio.Runner):
    """What `asyncio.Runner` is."""

    def run(self, coro, *, context=None):
        with _standing_still():
            return super().run(coro, context=context)


class LoopDriver(Driver):
    """Runs statements with an event loop; `warn` takes a sentence about what failed unseen."""

    def __init__(self, warn):
        self._loop = ProgramLoop()
        self._loop.set_exception_handler(lambda _loop, context: warn(_unseen(context)))
        self._context = contextvars.copy_context()
        self._asyncio_run = asyncio.run
        asyncio.set_event_loop(self._loop)
        asyncio.run = self._run_main
        asyncio.runners.run = self._run_main
        asyncio.Runner = asyncio.runners.Runner = Runner
        asyncio.new_event_loop = asyncio.events.new_event_loop = Loop
        _set_running(self._loop)

    def run(self, statement, namespace):
        return self._await(statement, namespace) if _awaits(statement) else self._context.run(super().run, statement, namespace)

    def _await(self, statement, namespace):
        value = self._in_task(eval(statement.code, namespace))
        if statement.has_value and (type(value) is Pending or type(value) is types.CoroutineType):
            return self._in_task(value)
        return value

    def _in_task(self, coroutine):
        return self._loop.run_until_complete(self._loop.create_task(coroutine, context=self._context))

    def drive(self, coroutine):
        # Called with the program's context entered: a task cannot enter it a second time.
        return self._loop.run_until_complete(self._loop.create_task(coroutine))

    def _run_main(self, main, *, debug=None, loop_factory=None):
        """What `asyncio.run` is: the program's own loop runs it, unless it runs already."""
        if self._loop.is_running() or _get_running() is not self._loop:
            return self._asyncio_run(main, debug=debug)
        if not asyncio.iscoroutine(main):
            raise ValueError(f"a coroutine was expected, got {main!r}")
        return self._loop.run_until_complete(self._loop.create_task(main))

    def finish(self):
        left = [task for task in asyncio.all_tasks(self._loop) if not task.done()]
        for task in left:
            task.cancel()
        if left:
            self._loop.run_until_complete(asyncio.wait(left, timeout=1.0))
        return [_task_name(task) for task in left]

    def close(self):
        _set_running(None)


def _awaits(statement):
    return bool(statement.code.co_flags & COROUTINE)


def _task_name(task):
    name = getattr(task.get_coro(), "__qualname__", None)
    return str(name) if name else task.get_name()


def _unseen(context):
    error = context.get("exception")
    what = context.get("message") or "a callback failed"
    return f"{what}: {type(error).__name__}: {error}" if error is not None else str(what)
