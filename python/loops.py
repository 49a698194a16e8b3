"""A program's event loop: one for the whole program, which counts as running also between its statements.

Loaded once `asyncio` is there, because that takes longer to import than most programs run. It does not know what a call
is.
"""

import asyncio
import contextlib
import contextvars
import types

from _fimble.pending import Pending
from _fimble.repeat import monotonic

_get_running, _set_running = asyncio._get_running_loop, asyncio._set_running_loop
_run, _current_task = asyncio.run, asyncio.current_task
# Looked up before `isinstance`, which asks for `__class__`.
getattr(asyncio.coroutines, "_iscoroutine_typecache", set()).add(Pending)


@contextlib.contextmanager
def _standing_still():
    """Lets another loop run while the program's own one stands still."""
    loop = _get_running()
    stands_still = type(loop) is SleepingLoop or type(loop) is ProgramLoop and not loop.is_running()
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


class SleepingLoop(ProgramLoop):
    """A `ProgramLoop` that nobody has asked for anything yet: the first question makes it one.

    Most programs never ask, and their calls are read in place."""

    def __getattribute__(self, name):
        _wake(self)
        return getattr(self, name)

    def __setattr__(self, name, value):
        _wake(self)
        setattr(self, name, value)

    def __hash__(self):
        # Who looks for its current task asks no more than this.
        _wake(self)
        return hash(self)

    def __del__(self):
        # It has nothing to close.
        return


def _wake(loop):
    if type(loop) is SleepingLoop:
        woken = object.__getattribute__(loop, "_woken")
        object.__setattr__(loop, "__class__", ProgramLoop)
        loop.__init__()
        woken()


class Begun:
    """A coroutine whose first step was made outside of the loop; a task makes the others."""

    def __init__(self):
        self._coroutine, self._waits_for = None, None

    def go_on(self, coroutine, waits_for):
        """The coroutine, and what its first step left it waiting for."""
        self._coroutine, self._waits_for = coroutine, (waits_for,)

    def send(self, value, /):
        if self._coroutine is None:
            # It was through with one step.
            raise StopIteration
        if self._waits_for:
            (first,), self._waits_for = self._waits_for, None
            return first
        return self._coroutine.send(value)

    def throw(self, *error):
        if self._coroutine is None:
            raise StopIteration
        if self._waits_for:
            (first,), self._waits_for = self._waits_for, None
            if asyncio.isfuture(first):
                first.cancel()
        return self._coroutine.throw(*error)

    def close(self):
        if self._coroutine is not None:
            self._coroutine.close()

    def __await__(self):
        return self


class Program:
    """The event loop of a program, and what `asyncio` says of it. `warn` takes a sentence about what failed unseen."""

    def __init__(self, driver, warn):
        self._driver, self._warn = driver, warn
        # What stands for a coroutine that was driven by hand when the loop woke.
        self._begun = self._task = None
        self._entered = False
        loop = self._loop = object.__new__(SleepingLoop)
        object.__setattr__(loop, "_woken", self._woken)
        asyncio.set_event_loop(loop)
        asyncio.run = asyncio.runners.run = self._run_main
        asyncio.Runner = asyncio.runners.Runner = Runner
        asyncio.new_event_loop = asyncio.events.new_event_loop = Loop
        asyncio.current_task = asyncio.tasks.current_task = self._current_task
        _set_running(loop)

    @property
    def awake(self):
        """True once somebody asked the loop for something."""
        return type(self._loop) is ProgramLoop

    def wake(self):
        """Makes it a whole loop now."""
        _wake(self._loop)

    def _woken(self):
        self._loop.set_exception_handler(lambda _loop, context: self._warn(_unseen(context)))
        if self._driver.by_hand and _get_running() is self._loop:
            # Whatever woke it may ask for its task next.
            self._stand_in()
            asyncio.tasks._enter_task(self._loop, self._task)
            self._entered = True

    def _stand_in(self):
        self._begun = Begun()
        self._task = self._loop.create_task(self._begun, context=self._driver.context)
        # A program that ends before its first step is not to be told of it.
        self._task._log_destroy_pending = False

    def leave(self):
        """A coroutine that was driven by hand is through, or waits."""
        if self._entered:
            self._entered = False
            asyncio.tasks._leave_task(self._loop, self._task)

    def go_on(self, coroutine, waits_for):
        """Runs the rest of a coroutine that waits for something after its first step."""
        self.wake()
        if self._task is None:
            self._stand_in()
        self._begun.go_on(coroutine, waits_for)
        return self._loop.run_until_complete(self._task)

    def drive(self, coroutine):
        """Runs a coroutine to its end."""
        return self._loop.run_until_complete(self._loop.create_task(coroutine, context=self._driver.context))

    def _current_task(self, loop=None):
        if loop is None:
            loop = asyncio.get_running_loop()
        _wake(loop)
        return _current_task(loop)

    def _run_main(self, main, *, debug=None, **options):
        """What `asyncio.run` is: the program's own loop runs it, unless it runs already."""
        if _get_running() is not self._loop or self._driver.by_hand or self._loop.is_running():
            return _run(main, debug=debug, **options)
        if not asyncio.iscoroutine(main):
            raise ValueError(f"a coroutine was expected, got {main!r}")
        # Called with the program's context entered: a task cannot enter it a second time.
        return self._loop.run_until_complete(self._loop.create_task(main))

    def finish(self):
        """Cancels the tasks that still run; returns sentences about them, and about those whose error nobody saw."""
        if not self.awake:
            return []
        failed = [task for task in list(asyncio.tasks._all_tasks) if task.done() and not task.cancelled() and task._log_traceback]
        left = [task for task in asyncio.all_tasks(self._loop) if not task.done() and task is not self._task]
        for task in left:
            task.cancel()
        if left:
            self._loop.run_until_complete(asyncio.wait(left, timeout=1.0))
        said = [f"the task {_task_name(task)} still ran at the end and was cancelled; await it" for task in left]
        for task in failed:
            error = task.exception()
            said.append(f"the task {_task_name(task)} failed and nothing waited for it: {type(error).__name__}: {error}")
        return said

    def close(self):
        """No loop is running from now on."""
        _set_running(None)


def _task_name(task):
    name = getattr(task.get_coro(), "__qualname__", None)
    return str(name) if name else task.get_name()


def _unseen(context):
    error = context.get("exception")
    what = context.get("message") or "a callback failed"
    return f"{what}: {type(error).__name__}: {error}" if error is not None else str(what)
