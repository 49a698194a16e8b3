"""What differs between two runs of one program, made the same: random numbers, unique ids, what clocks say.

A round that was cut off is run again with the answers that its calls got, and must then ask the same questions. Random
numbers come from the host's seed. What clocks said leaves with the next call, and comes back when the round is run again.
Without a seed nothing is changed. It does not know what a call is.
"""

import os
import sys
import time

from _fimble import imports, wire

try:
    from _sha512 import sha512 as _sha512
except ImportError:
    # CPython 3.12 and later.
    from _sha2 import sha512 as _sha512

_wall, _steady, _counter = time.time_ns, time.monotonic_ns, time.perf_counter_ns
_localtime, _gmtime, _ctime, _asctime, _strftime = time.localtime, time.gmtime, time.ctime, time.asctime, time.strftime
# For what waits, and must not be told another time.
monotonic = time.monotonic

_SECOND = 1_000_000_000
# Readings that are kept between two calls. A program that waits by looking at the clock makes millions.
MOST = 1_000
# Among readings: a call was made here, which the host writes (`Readings::CALL` in `src/record.rs`); and more were made than are
# kept. No clock says either.
CALL, CUT = -(1 << 63), 1 - (1 << 63)


def seed_packages(draw):
    """Makes the generators of packages begin anew: all processes that are forked from this one's parent have the same state.

    `draw(size)` gives random bytes."""
    numpy = sys.modules.get("numpy.random")
    if numpy is not None:
        numpy.seed([int.from_bytes(draw(4), "big") for _ in range(8)])


class _Clock:
    """One clock: what it says now, and what it said before."""

    __slots__ = ("_read", "_past", "_at", "_ahead", "fresh", "_goes_back", "_last")

    def __init__(self, read, past, goes_back):
        self._read, self._past, self._at, self._goes_back = read, past, 0, goes_back
        self._ahead, self.fresh, self._last = 0, [], CALL

    def now(self):
        said = self._past[self._at] if self._at < len(self._past) else CUT
        if said > CUT:
            self._at += 1
        else:
            # More readings before this call than were kept, or than there were.
            said = self._read() + self._ahead
            if said < self._last and not self._goes_back:
                self._ahead += self._last - said
        if not self._goes_back:
            said = self._last = max(said, self._last)
        if len(self.fresh) < MOST:
            self.fresh.append(said)
        elif len(self.fresh) == MOST:
            self.fresh.append(CUT)
        return said

    def call(self):
        """A call was made: what was said before it is told, and what was said after it last time comes next."""
        self.fresh = []
        try:
            self._at = self._past.index(CALL, self._at) + 1
        except ValueError:
            # It had not come so far.
            return


class _Source:
    """Random bytes out of a seed: SHA-512 of the seed and a counter."""

    def __init__(self, seed):
        self._seed, self._blocks, self._left = seed, 0, b""

    def bytes(self, size, /):
        if size < 0:
            raise ValueError("negative argument not allowed")
        pieces, have = [self._left], len(self._left)
        while have < size:
            self._blocks += 1
            piece = _sha512(self._seed + self._blocks.to_bytes(8, "big")).digest()
            pieces.append(piece)
            have += len(piece)
        drawn = b"".join(pieces)
        self._left = drawn[size:]
        return drawn[:size]


class Repeat:
    """The clocks and the chance of one round. `past` has the readings of an earlier run of it: lists of nanoseconds, with
    `CALL` where it made a call."""

    def __init__(self, seed, past):
        self._wall = _Clock(_wall, past.get("wall", []), True)
        self._steady = _Clock(_steady, past.get("steady", []), False)
        self._counter = _Clock(_counter, past.get("counter", []), False)
        self._clocks = (("wall", self._wall), ("steady", self._steady), ("counter", self._counter))
        self._source = _Source(bytes.fromhex(seed))

    def begin(self):
        """From now on the modules tell its own time and draw its own numbers, whenever they are imported."""
        wall, steady, counter = self._wall.now, self._steady.now, self._counter.now
        time.time_ns, time.monotonic_ns, time.perf_counter_ns = wall, steady, counter
        time.time = lambda: wall() / _SECOND
        time.monotonic = lambda: steady() / _SECOND
        time.perf_counter = lambda: counter() / _SECOND
        seconds = lambda given: wall() / _SECOND if given is None else given
        fields = lambda given: _localtime(wall() / _SECOND) if given is None else given
        time.localtime = lambda seconds_=None, /: _localtime(seconds(seconds_))
        time.gmtime = lambda seconds_=None, /: _gmtime(seconds(seconds_))
        time.ctime = lambda seconds_=None, /: _ctime(seconds(seconds_))
        time.asctime = lambda fields_=None, /: _asctime(fields(fields_))
        time.strftime = lambda format, fields_=None, /: _strftime(format, fields(fields_))
        os.urandom = self._source.bytes
        imports.meet("datetime", lambda: self._begin_dates(wall))
        imports.meet("random", lambda: self._begin_random(self._source.bytes))
        seed_packages(self._source.bytes)

    def said(self):
        """What the clocks said since the last call, by clock; None if nothing."""
        return {name: clock.fresh for name, clock in self._clocks if clock.fresh} or None

    def called(self):
        """The next call was made."""
        for _, clock in self._clocks:
            clock.call()

    def _begin_dates(self, wall):
        datetime = sys.modules["datetime"]
        if wire.native is None:
            return

        def now(cls, tz=None):
            said = wall()
            return cls.fromtimestamp(said // _SECOND, tz).replace(microsecond=said // 1000 % 1_000_000)

        def utcnow(cls):
            said = wall()
            return cls.utcfromtimestamp(said // _SECOND).replace(microsecond=said // 1000 % 1_000_000)

        wire.native.replace(datetime.datetime, "now", classmethod(now))
        wire.native.replace(datetime.datetime, "utcnow", classmethod(utcnow))

    def _begin_random(self, draw):
        random = sys.modules["random"]
        random._urandom = draw
        random.seed(int.from_bytes(draw(32), "big"))
        if wire.native is None:
            return
        import _random

        # Generators that the program makes begin here, too.
        original = _random.Random.seed

        def seed(self, a=None, /):
            original(self, int.from_bytes(draw(32), "big") if a is None else a)

        wire.native.replace(_random.Random, "seed", seed)
