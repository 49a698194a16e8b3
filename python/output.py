"""What a program prints: standard output and standard error, as PRINT frames.

It does not know what else is on the channel; whoever sends something flushes first.
"""

import io
import time

from _fimble import limits, wire

_now = time.monotonic
_PIECE = 32 * 1024
# A line is sent at once, unless a program writes more than this many a second: then they are sent together.
_FRAMES_PER_SECOND = 1000.0
_BURST = 50.0
# A program that goes on printing this many times what is kept is stopped; the host would do so too.
_FACTOR = 64


class Output(io.TextIOBase):
    """A text stream that sends what is written."""

    encoding = "utf-8"
    errors = "replace"
    newlines = None
    name = "<output>"
    mode = "w"

    def __init__(self, channel, limit):
        self._channel = channel
        # False once the program is at its end: what is said about it is no fault of its own.
        self.limited = True
        self._mark = f"\n[output cut at {limit // 1024:,} KiB]\n" if limit >= 1024 else "\n[output cut]\n"
        self._left = max(limit - len(self._mark), 0)
        self._patience = _FACTOR * limit
        self._parts, self._size = [], 0
        self._tokens, self._refilled = _BURST, _now()
        self._bytes = None

    @property
    def buffer(self):
        """The same stream for bytes."""
        if self._bytes is None:
            self._bytes = _Bytes(self)
        return self._bytes

    def write(self, text, /):
        if type(text) is not str:
            if not isinstance(text, str):
                raise TypeError(f"write() argument must be str, not {type(text).__name__}")
            text = str.__str__(text)
        count = len(text)
        if self._left <= 0 or not text:
            self._patience -= count
            if self._patience < 0 and self.limited:
                raise limits.OutputLimit()
            return count
        self._parts.append(text if count <= self._left else text[: self._left])
        self._size += count
        if self._size >= _PIECE or self._size >= self._left:
            self.flush()
        elif "\n" in text and self._may_send():
            self.flush()
        return count

    def _may_send(self):
        now = _now()
        self._tokens = min(_BURST, self._tokens + (now - self._refilled) * _FRAMES_PER_SECOND)
        self._refilled = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def flush(self):
        if not self._size:
            return
        self._send(self._channel.send)

    def hold(self):
        """Like `flush`, but the frame may wait for the next one."""
        if self._size:
            self._send(self._channel.hold)

    def _send(self, send):
        parts, self._parts, self._size = self._parts, [], 0
        text = "".join(parts)
        # The limit is in bytes, the count so far in characters: only what is not ASCII needs the second look.
        size = len(text) if text.isascii() else len(wire.to_bytes(text))
        if size >= self._left:
            text = wire.to_bytes(text)[: self._left].decode("utf-8", "ignore") + self._mark
            self._left = 0
        else:
            self._left -= size
        for start in range(0, len(text), _PIECE):
            send(wire.PRINT, {"text": text[start : start + _PIECE]})

    def writable(self):
        return True

    def isatty(self):
        return False

    def close(self):
        """Stays open: what is printed later must not be lost."""

    def fileno(self):
        raise io.UnsupportedOperation("the program's output has no file descriptor")


class _Bytes(io.RawIOBase):
    def __init__(self, output):
        self._output = output

    def writable(self):
        return True

    def write(self, content, /):
        self._output.write(bytes(content).decode("utf-8", "replace"))
        return len(content)

    def flush(self):
        self._output.flush()


class Input(io.TextIOBase):
    """Standard input: there is none."""

    def readable(self):
        return True

    def read(self, _size=-1, /):
        return ""

    def readline(self, _size=-1, /):
        return ""


def no_input(prompt="", /):
    """What `input` is."""
    print(prompt, end="")
    raise EOFError("a program has no input; take the value from a variable, or ask the user with a message")
