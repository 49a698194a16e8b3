"""Limits as exceptions: signals of the host become one in the program, so that its variables and output are kept.

It does not know how much a limit is; the host measures, and kills a program that goes on.
"""

import signal


class Limit(KeyboardInterrupt):
    """A limit ended the program.

    A KeyboardInterrupt, because `asyncio` lets that one through its event loop, and `except Exception` does too."""

    limit = "?"
    sentence = "a limit was reached"


class TimeLimit(Limit):
    """The wall time is over."""

    limit = "wall"
    sentence = "the time limit passed; do less in one program, or wait for less"


class CpuLimit(Limit):
    """The CPU time is over."""

    limit = "cpu"
    sentence = "the CPU time limit passed; compute less in one program, or use a faster way"


class CallLimit(Limit):
    """The calls of a round are used up."""

    limit = "calls"
    sentence = "the program made more calls than one program may; ask for more with each call"


MEMORY_SENTENCE = "the memory limit was reached; keep less at the same time, e.g. go through the data piece by piece"


class Guard:
    """Says when a limit may be raised: only while the program runs, and never within a `with guard:` block."""

    def __init__(self):
        self.armed = False
        self._depth = 0
        self._waiting = None

    def __enter__(self):
        self._depth += 1

    def __exit__(self, *_):
        self._depth -= 1
        if self._waiting is not None and not self._depth and self.armed:
            waiting, self._waiting = self._waiting, None
            raise waiting()

    def limit(self, kind):
        """Raises `kind` now, or as soon as it may be."""
        if not self.armed:
            return
        if self._depth:
            self._waiting = kind
            return
        raise kind()

    def listen(self):
        """Makes the host's signals into limits. For the main thread."""
        signal.signal(signal.SIGUSR1, lambda _number, _frame: self.limit(TimeLimit))
        signal.signal(signal.SIGXCPU, lambda _number, _frame: self.limit(CpuLimit))
