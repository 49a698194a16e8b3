"""Loads the child's files as the host does, and plays scripted hosts against forked children.

It knows the frames and nothing else of what runs in the child.
"""

import importlib.util
import json
import os
import select
import signal
import socket
import struct
import sys
import time
import types
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "python"
LIMITS = {
    "output_bytes": 256 * 1024,
    "variable_bytes": 8 * 1024 * 1024,
    "variables_bytes": 64 * 1024 * 1024,
    "frame_bytes": 64 * 1024 * 1024,
    "calls": 1000,
    "spin_us": 50,
}
RUN, RETURN, ERROR, READY, PRINT, STATEMENT, CALL, CANCEL, DONE = 1, 2, 3, 16, 17, 18, 19, 20, 21


def load(warm=True):
    """The package `_fimble`, loaded once, file by file in the order that `runner.py` says; `warm` as most children are."""
    if "_fimble.runner" in sys.modules:
        return sys.modules["_fimble"]
    package = sys.modules["_fimble"] = types.ModuleType("_fimble")
    package.__path__ = []
    text = (SOURCES / "runner.py").read_text()
    order = eval(text.split("MODULES = ", 1)[1].split(")", 1)[0] + ")")
    for name in order:
        path = SOURCES / f"{name}.py"
        module = types.ModuleType(f"_fimble.{name}")
        sys.modules[module.__name__] = module
        exec(compile(path.read_text(), f"/fimble/{name}.py", "exec", dont_inherit=True), module.__dict__)
        setattr(package, name, module)
    for name in package.runner.LATE:
        path = SOURCES / f"{name}.py"
        package.runner.LATE_CODE[name] = compile(path.read_text(), f"/fimble/{name}.py", "exec", dont_inherit=True)
    sys.setrecursionlimit(package.namespace.RECURSION)
    if warm:
        package.runner.prepare()
    return package


class Played:
    """What one round said: the DONE frame's fields as attributes, `output`, `calls`, `frames`, the exit `code`, and the
    `cpu` seconds of the child."""

    def __init__(self, frames, code, cpu):
        self.frames, self.code, self.cpu = frames, code, cpu
        self.output = "".join(body["text"] for kind, body in frames if kind == PRINT)
        self.calls = [body for kind, body in frames if kind == CALL]
        self.cancelled = [body["id"] for kind, body in frames if kind == CANCEL]
        self.done = next((body for kind, body in frames if kind == DONE), None)

    @property
    def ending(self):
        return self.done["ending"]

    @property
    def written(self):
        return {entry["name"]: entry for entry in self.done["written"]}

    @property
    def contents(self):
        return {entry["name"]: entry["content"] for entry in self.done["written"]}


def play(source, variables=(), answer=None, proxies=("kit",), limits=None, signals=(), deadline=30.0, file_name="<program>", repeat=None, paging=None):
    """Forks a child and plays one round. `answer(call)` gives the result of a call, raises `Refusal`, or returns a
    `Later` to answer after others; `signals` are (seconds, number) after RUN; `repeat` has its `seed` and `readings`, `paging` what
    the frame says of operations with pages."""
    load()
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            ours.close()
            sys.setrecursionlimit(1000)
            code = sys.modules["_fimble.runner"].main(theirs.fileno())
        finally:
            os._exit(code)
    theirs.close()
    host = Host(ours, pid, answer)
    try:
        host.read_until(READY, deadline)
        host.send(
            RUN,
            {
                "version": 1,
                "source": source,
                "file_name": file_name,
                "variables": [dict(zip(("name", "kind", "content"), one)) for one in variables],
                "proxies": list(proxies),
                "limits": {**LIMITS, **(limits or {})},
                **(repeat or {}),
                **({} if paging is None else {"paging": paging}),
            },
        )
        for seconds, number in signals:
            host.read_for(seconds)
            os.kill(pid, number)
        host.read_until(DONE, deadline)
    finally:
        ours.close()
        if host.failed:
            os.kill(pid, signal.SIGKILL)
        _, status, usage = os.wait4(pid, 0)
    return Played(host.frames, os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime)


class Refusal(Exception):
    """The call fails with that kind, message and hint."""

    def __init__(self, kind, message, hint=None):
        super().__init__(message)
        self.frame = {"kind": kind, "message": message, "hint": hint}


class Later:
    """The call is answered with `value` when a later call was answered, or never."""

    def __init__(self, value=None, never=False):
        self.value, self.never = value, never


class Host:
    """The scripted host's end."""

    def __init__(self, connection, pid, answer):
        self.connection, self.pid, self.answer = connection, pid, answer or (lambda call: None)
        self.frames, self.buffer, self.waiting = [], bytearray(), []
        self.failed = True
        self.outgoing = bytearray()
        connection.setblocking(False)

    def send(self, kind, body):
        """Sends what fits now; the rest goes while reading, as a host must never wait for one direction only."""
        text = json.dumps(body).encode()
        self.outgoing += struct.pack("<IB", len(text), kind) + text
        self._write()

    def _write(self):
        try:
            del self.outgoing[: self.connection.send(self.outgoing)]
        except BlockingIOError:
            pass
        except OSError:
            self.outgoing = bytearray()

    def read_for(self, seconds):
        """Serves the child for that long, or until it is done."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not any(kind == DONE for kind, _ in self.frames):
            if not self._serve(left):
                return

    def read_until(self, kind, deadline):
        """Serves the child until it sends that kind. The child's death ends it too."""
        end = time.monotonic() + deadline
        while not any(one == kind for one, _ in self.frames):
            left = end - time.monotonic()
            if left <= 0:
                os.kill(self.pid, signal.SIGKILL)
                raise TimeoutError(f"no frame {kind}; so far {self.frames[-5:]}")
            if not self._serve(left):
                break
        self.failed = False

    def _serve(self, seconds):
        writing = [self.connection] if self.outgoing else []
        ready, writable, _ = select.select([self.connection], writing, [], seconds)
        if writable:
            self._write()
        if not ready:
            return True
        piece = self.connection.recv(1 << 20)
        if not piece:
            return False
        self.buffer += piece
        while len(self.buffer) >= 5:
            length, kind = struct.unpack_from("<IB", self.buffer)
            if len(self.buffer) < 5 + length:
                break
            body = json.loads(self.buffer[5 : 5 + length])
            del self.buffer[: 5 + length]
            self.frames.append((kind, body))
            if kind == CALL:
                self._answer(body)
        return True

    def _answer(self, call):
        try:
            value = self.answer(call)
        except Refusal as refusal:
            self.send(ERROR, {"id": call["id"], **refusal.frame})
            return
        if isinstance(value, Later):
            if not value.never:
                self.waiting.append((call["id"], value.value))
            return
        self.send(RETURN, {"id": call["id"], "result": value})
        waiting, self.waiting = self.waiting, []
        for number, late in waiting:
            self.send(RETURN, {"id": number, "result": late})
