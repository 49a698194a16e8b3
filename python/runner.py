"""Runs one program: receives it, restores what it starts with, runs its statements, sends what became of it.

The host loads the files in the order of `MODULES` as modules of a package `_fimble`, calls `prepare()` once in the
zygote, and `main(descriptor)` in each child, which ends with the exit code it returns. Nothing here is a boundary: the
program shares the process, and the host believes only whole frames.
"""

import gc
import mmap
import os
import sys
import types
import warnings

from _fimble import imports, late_types, limits, packages, preview, statements, tracebacks, wire
from _fimble.calls import Calls
from _fimble.capture import TOO_LARGE, Capture, Captured
from _fimble.carriable import Names
from _fimble.definitions import Definitions
from _fimble.namespace import RECURSION, begin, import_named, program_builtins, restore
from _fimble.output import Input, Output
from _fimble.pages import paging_of
from _fimble.repeat import Repeat, seed_packages

MODULES = (
    "wire", "limits", "errors", "records", "objects", "late_types", "carriable", "codec", "decoding", "preview", "arrays", "frames", "output", "pending",
    "arguments", "pages", "calls", "proxies", "packages", "missing", "definitions", "namespace", "imports", "statements", "tracebacks", "capture", "repeat", "runner",
)  # fmt: skip
# Loaded at their first use, by `late`. The host leaves their code in `LATE_CODE`.
LATE = ("loops",)
LATE_CODE = {}

WARM = (
    "abc argparse array ast asyncio base64 binascii bisect calendar cmath codecs collections collections.abc contextlib copy csv "
    "dataclasses datetime decimal difflib email.utils enum fnmatch fractions functools glob graphlib gzip heapq hmac html html.parser "
    "inspect io ipaddress itertools json keyword linecache locale logging math numbers operator os pathlib pprint queue random re "
    "sched secrets shlex shutil signal statistics string struct symtable tempfile textwrap threading time timeit token tokenize "
    "traceback types typing unicodedata urllib.parse uuid warnings weakref xml.etree.ElementTree zipfile zlib zoneinfo"
).split()

_dup, _close, _closerange, _register = os.dup, os.close, os.closerange, os.register_at_fork
# What a program may have open.
_DESCRIPTORS = wire.native.OPEN_FILES if wire.native is not None else 64
_VALUE = 4_000
_NO_MEMORY = "the program's memory had no room to write it down; keep less, or hold less besides it"
# Bytes of a final frame for what is no variable.
_ROOM = 256 * 1024
# Bytes that are given back when a program has used up its memory, so that its end can be told. They are never touched.
_RESERVE = 8 * 1024 * 1024
# Not empty once `warming` is through.
_warm = []
# What the next rounds of a child begin with, made before it was forked: a page that it does not write is not copied.
_prepared = []
# They make locks usable again that another thread may have held; the process that is forked has one thread.
_NO_OTHER_THREADS = ("threading", "logging", "concurrent.futures.thread")
# A program that comes within so many milliseconds was waited for.
_SOON = 2


def warming():
    """A generator that imports what programs use, a module a step, and plays a round, so that a child finds it all warm.

    Once, in the process that the children are forked from; a program needs none of it to be right."""
    register = os.register_at_fork
    for name in WARM:
        os.register_at_fork = _register_at_fork
        try:
            __import__(name)
        except ImportError:
            # A build without it: the program reads the same ImportError.
            continue
        finally:
            os.register_at_fork = register
        yield
    for name in LATE:
        late(name)
        yield
    late_types.bind_all()
    _warm.append(True)
    rehearse()
    builtins = program_builtins()
    # One to rehearse with, one for the program.
    _prepared.extend(Round(builtins) for _ in range(2))


def _register_at_fork(**functions):
    if sys._getframe(1).f_globals.get("__name__") not in _NO_OTHER_THREADS:
        _register(**functions)


def prepare():
    """All of `warming` at once."""
    for _ in warming():
        pass


def late(name):
    """One of the modules of `LATE`."""
    full = f"_fimble.{name}"
    if full not in sys.modules:
        module = types.ModuleType(full)
        exec(LATE_CODE[name], module.__dict__)
        sys.modules[full] = module
    return sys.modules[full]


def main(descriptor):
    """Plays one round over the socket and ends the process with 0; returns another exit code if it cannot."""
    guard = limits.Guard()
    channel = wire.Channel(descriptor, guard)
    guard.too_late = lambda: channel.send(wire.STOPPING, {})
    guard.listen()
    round = _round()
    try:
        channel.send(wire.READY, {})
        if _warm and not channel.readable(_SOON):
            # Nobody waits for it yet: it plays one to nobody, so that the real one finds all pages its own. A child from before
            # the warming would have to import for that, and is for somebody who waits.
            rehearse()
        kind, run = channel.receive()
        if kind != wire.RUN or run.get("version") != wire.VERSION:
            return 2
        round.play(run, channel, guard)
    except wire.HostGone:
        return 3
    return 0


def _round():
    return _prepared.pop() if _prepared else Round(program_builtins())


class Round:
    """One program from its RUN frame to its DONE frame."""

    def __init__(self, builtins):
        """Makes ready what does not depend on the program. `builtins` are its own."""
        self._names, self._sources = Names(), tracebacks.Sources()
        self._builtins = builtins
        self._restored, self._namespace = {}, {}
        self._statements, self._done, self._at = [], 0, 0
        self._driver = None
        self._reserve = mmap.mmap(-1, _RESERVE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)

    def play(self, run, channel, guard):
        """Runs all of what the RUN frame says. Raises only HostGone."""
        self._channel, self._guard = channel, guard
        imports.begin()
        self._builtins.report = tracebacks.reporter(self._sources)
        self._run, self._limits, self._file_name = run, run["limits"], run["file_name"]
        self._channel.frame_bytes = self._limits["frame_bytes"]
        self._channel.spin_us = self._limits["spin_us"]
        self._output = Output(self._channel, self._limits["output_bytes"])
        self._calls = Calls(self._channel, self._output, self._guard, self._limits["calls"], self._file_name, run["source"])
        self._calls.paging = paging_of(run)
        self._definitions = Definitions(run["source"], self._names)
        sys.modules["builtins"] = self._builtins
        sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = self._output
        sys.stdin = sys.__stdin__ = Input()
        warnings.showwarning = self._warned
        imports.meet("threading", self._hear_threads)
        self._namespace = begin(run["proxies"], self._calls, self._builtins)
        ending = self._perform()
        captured = self._look_back()
        self._say(ending, captured)

    def _perform(self):
        """Restores, runs, and finishes; returns the ending."""
        try:
            self._guard.armed = True
            ending = self._go()
            self._finish_calls(ending)
            self._guard.armed = False
            limits.end_handlers()
        except limits.Limit as limit:
            # Between the end of the program and this line.
            self._guard.armed = False
            limits.end_handlers()
            ending = self._limit(limit.limit, limit.sentence, limit)
        if ending["kind"] == "limit":
            self._calls.abandon()
        return ending

    def _go(self):
        run = self._run
        try:
            self._sources.add(self._file_name, run["source"])
            texts = [run["source"], *(one["content"] for one in run["variables"] if one["kind"] != "value")]
            import_named(self._builtins, texts)
            if run.get("seed"):
                repeat = Repeat(run["seed"], run["readings"])
                repeat.begin()
                self._calls.repeat = repeat
            else:
                seed_packages(os.urandom)
            self._restored = restore(run["variables"], self._names, self._sources, self._namespace)
            self._statements = statements.parse(run["source"], self._file_name)
            self._definitions.expect(self._statements)
            self._driver = statements.Driver(lambda driver: late("loops").Program(driver, self._warn))
            if any("asyncio" in text for text in texts):
                self._driver.meet_loop().wake()
            elif "asyncio" in sys.modules:
                self._driver.meet_loop()
            else:
                # It may still reach it by another name, or through a package.
                imports.when_imported("asyncio", self._driver.meet_loop)
            value = self._run_statements()
            shown = None if value is None else preview.display(value, _VALUE)
            return {"kind": "returned", "value": shown}
        except BaseException as error:
            try:
                return self._ending_of(error)
            except MemoryError:
                # Even what there is to say of it did not fit.
                _forget(error)
                return {"kind": "limit", "limit": "memory", "message": limits.MEMORY_SENTENCE}

    def _run_statements(self):
        value, total = None, len(self._statements)
        for number, statement in enumerate(self._statements, 1):
            self._at = number
            value = None
            if self._driver.loop is None and "asyncio" in sys.modules:
                # A thread of the program imported it.
                self._driver.meet_loop()
            try:
                value = self._driver.run(statement, self._namespace)
            finally:
                self._definitions.observe(statement, self._namespace)
            self._done = number
            if number < total:
                self._output.hold()
                self._channel.send(wire.STATEMENT, {"number": number, "of": total})
            else:
                self._output.hold()
                self._channel.hold(wire.STATEMENT, {"number": number, "of": total})
        return value

    def _ending_of(self, error):
        """What the exception means for the round."""
        limits.end_handlers()
        self._reserve = None
        _make_room()
        if isinstance(error, wire.HostGone):
            raise error
        for one in _chain(error):
            if isinstance(one, limits.Limit):
                return self._limit(one.limit, one.sentence, error)
        if isinstance(error, MemoryError) or _is_starved(error):
            ending = self._limit("memory", limits.MEMORY_SENTENCE, error)
            _forget(error)
            return ending
        if isinstance(error, SystemExit):
            if error.code is not None and not isinstance(error.code, int):
                self._output.write(f"{error.code}\n")
            return {"kind": "returned", "value": None}
        for one in _chain(error):
            packages.explain(one)
        line = tracebacks.place(error, self._file_name)
        if not self._at:
            line = getattr(error, "lineno", None) or 0
        return {
            "kind": "raised",
            "traceback": tracebacks.describe(error, self._sources),
            "exception": type(error).__name__,
            "statement": self._at,
            "line": line,
        }

    def _limit(self, limit, sentence, error):
        if limit != "memory":
            self._channel.send(wire.STOPPING, {})
        # Within an event loop the traceback has none of the program's own lines.
        line = tracebacks.place(error, self._file_name) or (self._statements[self._at - 1].line if self._at else 0)
        where = f" (at line {line}, statement {self._at} of {len(self._statements)})" if line else ""
        return {"kind": "limit", "limit": limit, "message": sentence + where}

    def _finish_calls(self, ending):
        """Lets nothing of the program go on after it; says what it cut off or what failed unseen."""
        if ending["kind"] == "limit":
            return
        for sentence in self._last(self._driver.finish if self._driver else list):
            self._warn(sentence)
        for reply in self._last(self._calls.complete):
            error, where = reply.error, f" (line {reply.site[0]})" if reply.site[0] else ""
            self._warn(f"{reply.target}.{reply.method}{where} failed and nothing waited for it: {type(error).__name__}: {error}")

    def _last(self, step):
        """What a step after the program gives. What the program left may raise whatever it likes."""
        try:
            return step()
        except (limits.Limit, wire.HostGone):
            raise
        except BaseException as error:
            self._warn(f"what still ran at the end failed: {type(error).__name__}: {error}")
            return ()

    def _look_back(self):
        """Captures, whatever the program did to its process."""
        gc.disable()
        self._output.limited = False
        sys.settrace(None)
        sys.setprofile(None)
        sys.setrecursionlimit(RECURSION)
        if self._driver is not None:
            self._driver.close()
        _make_room()
        capture = Capture(
            self._namespace, self._restored, self._definitions, self._names, self._run["proxies"],
            self._limits["variable_bytes"], self._limits["variables_bytes"],
        )  # fmt: skip
        try:
            captured = capture.run()
            for sentence in captured.warnings:
                self._warn(sentence)
            return captured
        except Exception as error:
            captured = capture.captured
            captured.not_carried.append(["*", f"the namespace could not be looked at: {type(error).__name__}: {error}"])
            return captured

    def _say(self, ending, captured):
        self._output.hold()
        room, fits, reason = self._channel.frame_bytes - min(_ROOM, self._channel.frame_bytes // 4), True, TOO_LARGE
        while room:
            try:
                if not fits:
                    captured.shrink(room, self._restored, reason)
                    room //= 2
                self._channel.send(wire.DONE, self._final(ending, captured))
                break
            except (wire.FrameTooLarge, MemoryError) as error:
                reason = TOO_LARGE if type(error) is wire.FrameTooLarge else _NO_MEMORY
                if not fits and room < 1024:
                    captured = Captured()
                fits = False
            except (ValueError, TypeError):
                captured = Captured()
        self._channel.leave()

    def _final(self, ending, captured):
        return {
            "ending": ending,
            "written": captured.written,
            "removed": captured.removed,
            "not_carried": captured.not_carried,
            "statements_done": self._done,
            "statements": len(self._statements),
        }

    def _warn(self, sentence):
        self._output.write(f"warning: {sentence}\n")

    def _hear_threads(self):
        sys.modules["threading"].excepthook = self._thread_failed

    def _thread_failed(self, failed, /):
        if failed.exc_type is not SystemExit and failed.exc_value is not None:
            name = failed.thread.name if failed.thread is not None else "?"
            self._output.write(f"the thread {name} failed\n{tracebacks.describe(failed.exc_value, self._sources)}\n")

    def _warned(self, message, category, filename, lineno, file=None, line=None):
        where = f" (line {lineno})" if filename == self._file_name else ""
        self._warn(f"{message}{where}")


def _chain(error):
    """The exception and those it came of."""
    seen = []
    while error is not None and not any(one is error for one in seen) and len(seen) < 50:
        seen.append(error)
        error = error.__cause__ or error.__context__
    return seen


def _is_starved(error):
    """True for what CPython raises where it had no memory left for a MemoryError (a deep recursion, as a rule)."""
    return type(error) is SystemError and error.args == ("error return without exception set",)


def _make_room():
    """Lets modules be imported, for the last words of a program that left no descriptor. They are all there but in the very
    first child."""
    imports.forget()
    try:
        _close(_dup(0))
    except OSError:
        _closerange(_DESCRIPTORS // 2, _DESCRIPTORS)


def _forget(error):
    """Lets go of what the failed frames hold, so that there is memory for the rest."""
    for one in _chain(error):
        one.__traceback__ = None
    gc.collect()


class _Stage:
    """A channel to nobody that answers every call."""

    def __init__(self):
        self.frame_bytes = 1 << 20
        self.frames = []
        self.descriptor = -1

    def send(self, kind, message):
        wire.dumps(message)
        self.frames.append((kind, message))

    hold = send

    def put(self, kind, body):
        self.frames.append((kind, wire.loads(body)))

    def leave(self):
        """Nothing to leave."""

    def pull(self):
        number = self.frames[-1][1]["id"]
        return [(wire.RETURN, wire.dumps({"id": number, "result": [{"name": "web", "up": True}]}))]


_REHEARSAL = """\
import json
total = 0
for service in await stage.services(limit=3):
    total += len(service.name)
names = sorted({service["name"] for service in seen})
def shout(text):
    return text.upper()
point = {"x": 1.5, "when": since}
seen.append({"name": shout("db")})
print(f"{total} in {names}", json.dumps(point, default=str))
total
"""


def rehearse():
    """Plays a round without a host and leaves no trace of it."""
    kept = sys.stdout, sys.stderr, sys.stdin, sys.__stdout__, sys.__stderr__, sys.__stdin__
    modules = {name: sys.modules[name] for name in ("builtins", "__main__")}
    show, limit = warnings.showwarning, sys.getrecursionlimit()
    stage = _Stage()
    collecting = gc.isenabled()
    try:
        _round().play({
            "source": _REHEARSAL, "file_name": "<rehearsal>", "proxies": ["stage"],
            "variables": [
                {"name": "seen", "kind": "value", "content": '[{"name": "web"}]'},
                {"name": "since", "kind": "value", "content": '{"$":"datetime","v":"2024-01-02T03:04:05"}'},
                {"name": "half", "kind": "definition", "content": "def half(x):\n    return x / 2\n"},
                {"name": "math", "kind": "import", "content": "import math"},
            ],
            "limits": {"output_bytes": 4096, "variable_bytes": 4096, "variables_bytes": 4096, "frame_bytes": 1 << 20, "calls": 5, "spin_us": 0},
        }, stage, limits.Guard())  # fmt: skip
    finally:
        sys.stdout, sys.stderr, sys.stdin, sys.__stdout__, sys.__stderr__, sys.__stdin__ = kept
        sys.modules.update(modules)
        warnings.showwarning = show
        sys.setrecursionlimit(limit)
        if collecting:
            gc.enable()
        for name in ("<rehearsal>", "<half>"):
            tracebacks.linecache.cache.pop(name, None)
    return stage.frames
