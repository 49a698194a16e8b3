"""Frames between the child and the host: a little-endian u32 length of the body, one byte of kind, and JSON.

The numbers are those of `src/interpreter/frame.rs`. It knows bytes and JSON; it does not know what a call, a variable
or a program is. Everything it needs is bound at import, so that a program that changes `os` or `json` later changes
nothing here.
"""

import _thread
import os
import select
import struct
from time import perf_counter
from _json import encode_basestring, make_encoder
from _signal import SIG_BLOCK, SIG_SETMASK, SIGUSR1, SIGXCPU, valid_signals
from _signal import pthread_sigmask as _pthread_sigmask

try:
    # The host's own reader and writer.
    from _fimble import native
except ImportError:
    native = None

VERSION = 1

RUN = 1
RETURN = 2
ERROR = 3

READY = 16
PRINT = 17
STATEMENT = 18
CALL = 19
CANCEL = 20
DONE = 21
STOPPING = 23

# Before RUN told the real cap.
FIRST_FRAME_BYTES = 64 * 1024 * 1024
_HEADER = struct.Struct("<IB")
_PIECE = 256 * 1024

_read, _write, _exit = os.read, os.write, os._exit
# Those that the host sends wait by themselves, see `limits.Guard`.
_HANDLED = valid_signals() - {SIGUSR1, SIGXCPU}
# `comes(descriptor, microseconds)`: true once a read would not block, false after that time, without sleeping.
_comes = native.comes if native is not None else lambda *_: False


class HostGone(Exception):
    """The host closed its end, or this end was closed by the program."""


class FrameTooLarge(Exception):
    """A frame would be larger than the host takes. `size` and `cap` are bytes."""

    def __init__(self, size, cap):
        super().__init__(f"{size:,} bytes are more than the {cap:,} that fit into one message")
        self.size, self.cap = size, cap


def _no_default(value):
    raise TypeError(f"{type(value)!r} is no JSON")


def _encoder():
    write = make_encoder(None, _no_default, encode_basestring, None, ":", ",", False, False, False)
    join = "".join
    return lambda value: join(write(value, 0))


# `dumps(value)`: compact JSON text of plain values, not escaped to ASCII. NaN and infinities are a ValueError.
dumps = _encoder()


def decoder(record=None):
    """A function from JSON, `str` or UTF-8 `bytes`, to a value. Objects become instances of `record`, or dicts.

    With a `record`, `{"$": "bytes", "v": "Base64"}` becomes bytes, unless it is no Base64."""
    if native is not None:
        read = native.loads
        return lambda text: read(text, record)
    from binascii import a2b_base64
    from json.decoder import JSONDecoder

    def make(fields):
        if len(fields) == 2 and fields.get("$") == "bytes" and "v" in fields:
            try:
                return a2b_base64(fields["v"], strict_mode=True)
            except (ValueError, TypeError):
                pass
        return record(fields)

    scan = JSONDecoder(object_hook=None if record is None else make).scan_once

    def loads(text):
        try:
            return scan(text if type(text) is str else str(text, "utf-8"), 0)[0]
        except StopIteration as stop:
            raise ValueError(f"no JSON at {stop.value}") from None

    return loads


loads = decoder()


def to_bytes(text):
    """UTF-8. Surrogate pairs become their character, lone surrogates become U+FFFD: the host's strings cannot hold them."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


class Channel:
    """The child's end of the socket. Sends are whole even when a signal or another thread comes between."""

    def __init__(self, descriptor, guard):
        self.descriptor = descriptor
        self.frame_bytes = FIRST_FRAME_BYTES
        self.closed = False
        # How long it looks for what comes at once, before it sleeps. See `src/interpreter/spin.rs`.
        self.spin_us = 0
        self._is_quick = False
        self._guard = guard
        self._lock = _thread.RLock()
        self._held = bytearray()
        self._received = bytearray()
        self._poll = None

    def send(self, kind, message):
        """Sends one frame, after those that were held back.

        Raises FrameTooLarge with nothing sent, ValueError and TypeError for what is no JSON, HostGone."""
        self._put(kind, message, hold=False)

    def hold(self, kind, message):
        """Keeps a frame back until the next `send`, to spare a system call."""
        self._put(kind, message, hold=True)

    def _put(self, kind, message, hold):
        body = to_bytes(dumps(message))
        with self._guard:
            self.put(kind, body, hold)

    def put(self, kind, body, hold=False):
        """Sends the frame of a body that is JSON already. To be called within `with guard:`, and raises what `send` does."""
        if len(body) > self.frame_bytes:
            raise FrameTooLarge(len(body), self.frame_bytes)
        frame = _HEADER.pack(len(body), kind) + body
        with self._lock:
            if self.closed:
                return
            if hold:
                self._held += frame
                return
            if self._held:
                self._held += frame
                frame, self._held = self._held, bytearray()
            self._write_all(frame)

    def _write_all(self, frame):
        try:
            written = _write(self.descriptor, frame)
            if written < len(frame):
                rest = memoryview(frame)[written:]
                # What a handler raises must not leave half a frame.
                before = _pthread_sigmask(SIG_BLOCK, _HANDLED)
                try:
                    while rest:
                        rest = rest[_write(self.descriptor, rest) :]
                finally:
                    _pthread_sigmask(SIG_SETMASK, before)
        except OSError as error:
            if error.errno is None:
                raise
            self.closed = True
            raise HostGone(str(error)) from None

    def leave(self):
        """Ends the process, without undoing anything: all is said. Nothing can be sent after the last frame."""
        _exit(0)

    def readable(self, milliseconds=0):
        """True if a read would not block, at once or within that time."""
        if self._poll is None:
            self._poll = select.poll()
            self._poll.register(self.descriptor, select.POLLIN)
        return bool(self._poll.poll(milliseconds))

    def pull(self):
        """Reads once, blocking until there are bytes, and returns the whole frames there are: `(kind, body)`."""
        buffer = self._received
        missing = _HEADER.size
        if len(buffer) >= missing:
            missing += _HEADER.unpack_from(buffer)[0] - len(buffer)
        begun = 0.0
        if self.spin_us:
            self._is_quick = self._is_quick and _comes(self.descriptor, self.spin_us)
            begun = 0.0 if self._is_quick else perf_counter()
        try:
            piece = _read(self.descriptor, min(max(missing, 65536), _PIECE))
        except OSError as error:
            if error.errno is None:
                # A signal handler of the program raised it, e.g. TimeoutError.
                raise
            raise HostGone(str(error)) from None
        if begun:
            self._is_quick = (perf_counter() - begun) * 1e6 < self.spin_us
        if not piece:
            raise HostGone("end of file")
        if not buffer and len(piece) >= _HEADER.size:
            length, kind = _HEADER.unpack_from(piece)
            if len(piece) == _HEADER.size + length <= self.frame_bytes:
                # One frame, as mostly.
                return [(kind, piece[_HEADER.size :])]
        buffer += piece
        frames, start = [], 0
        while len(buffer) - start >= _HEADER.size:
            length, kind = _HEADER.unpack_from(buffer, start)
            if length > self.frame_bytes:
                raise HostGone(f"a frame of {length} bytes")
            end = start + _HEADER.size + length
            if len(buffer) < end:
                break
            frames.append((kind, bytes(memoryview(buffer)[start + _HEADER.size : end])))
            start = end
        if start:
            del buffer[:start]
        return frames

    def receive(self):
        """The first frame, as `(kind, value)`; for the time before the program runs, when there is no other."""
        frames = []
        while not frames:
            frames = self.pull()
        kind, body = frames[0]
        return kind, loads(body)
