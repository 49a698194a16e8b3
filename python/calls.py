"""Calls to the host: sent when they are made, answered in any order.

It does not know what a toolkit is, nor how a program uses a reply; see `pending`.
"""

import _thread
import sys
from itertools import islice

from _fimble import arguments, errors, limits, wire
from _fimble.records import Record

_modules, _getframe = sys.modules, sys._getframe
_thread_count = _thread._count
_ident = _thread.get_ident
_result_of = wire.decoder(Record)
_frame_of = wire.native.call if wire.native is not None else lambda *_: None


def _running_loop():
    # A program that never imported it has no loop, and one that sleeps runs nothing.
    events = _modules.get("asyncio.events")
    loop = None if events is None else events._get_running_loop()
    return None if type(loop).__name__ == "SleepingLoop" else loop


class Reply:
    """One call and, later, its answer. `used` says that the program saw the answer."""

    __slots__ = ("id", "target", "method", "site", "done", "used", "cancelled", "value", "error", "futures", "events")

    def __init__(self, number, target, method, site):
        self.id, self.target, self.method, self.site = number, target, method, site
        self.done = self.used = self.cancelled = False
        self.value = self.error = None
        # What waits for it; mostly nothing does.
        self.futures, self.events = (), ()

    def take(self):
        """The value, or raises the error."""
        self.used = True
        if self.error is not None:
            raise self.error
        if self.cancelled:
            from asyncio import CancelledError

            raise CancelledError("the call was cancelled")
        return self.value


class Calls:
    """All calls of one round."""

    def __init__(self, channel, output, guard, limit, file_name, source):
        self._channel, self._output, self._guard = channel, output, guard
        self._limit, self._file_name = limit, file_name
        self._is_ascii = source.isascii()
        self._open, self._unused = {}, {}
        self._ordinals, self._sites = {}, {}
        self._count = 0
        # A signal handler may call while this thread has it.
        self._lock = _thread.RLock()
        self._reading = _thread.allocate_lock()
        self._followers = []
        self._reader = None
        self._watching = None
        # The `Repeat` of a round that can be run again.
        self.repeat = None
        # How results go on, by toolkit and operation; see `pages`.
        self.paging = {}

    def make(self, target, method, positional, keyword):
        """Sends a call and returns its `Reply`. Raises TypeError for an argument that has no JSON form."""
        site = self._site(_getframe(2))
        number, ordinal = self._count + 1, self._ordinals.get(site, 0)
        # Most arguments are plain. Whatever is not is looked at more closely, with no lock held.
        body = _frame_of(number, target, method, positional, keyword, site, ordinal, Record, self._channel.frame_bytes)
        message = _message(target, method, positional, keyword) if body is None else None
        self._output.flush()
        with self._guard, self._lock:
            if self._count >= self._limit:
                raise limits.CallLimit()
            if message is not None or number != self._count + 1 or ordinal != self._ordinals.get(site, 0):
                # Another thread called meanwhile.
                message = message or _message(target, method, positional, keyword)
                number, ordinal = self._count + 1, self._ordinals.get(site, 0)
                message.update(id=number, line=site[0], column=site[1], ordinal=ordinal)
                body = wire.to_bytes(wire.dumps(message))
            readings = self.repeat and self.repeat.said()
            if readings is not None:
                body = body[:-1] + b',"readings":' + wire.to_bytes(wire.dumps(readings)) + b"}"
            reply = Reply(number, target, method, site)
            self._count = number
            self._open[number] = self._unused[number] = reply
            try:
                self._channel.put(wire.CALL, body)
            except wire.FrameTooLarge as error:
                # Nothing was sent.
                del self._open[number], self._unused[number]
                self._count -= 1
                raise errors.InvalidArgument(f"the arguments are too large: {error}", None, target, method) from None
            except BaseException:
                # A signal handler of the program raised it: nobody waits for the call, and it may have been sent.
                del self._open[number], self._unused[number]
                raise
            self._ordinals[site] = ordinal + 1
            if self.repeat is not None:
                self.repeat.called()
        return reply

    def _site(self, frame):
        file_name = self._file_name
        while frame is not None and frame.f_code.co_filename != file_name:
            frame = frame.f_back
        if frame is None:
            return 0, 0
        code, instruction = frame.f_code, frame.f_lasti // 2
        key = (id(code), instruction)
        known = self._sites.get(key)
        if known is None:
            line, _, column, _ = next(islice(code.co_positions(), instruction, None), (None,) * 4)
            # The code is kept, so that its id stays its own.
            known = self._sites[key] = ((line or 0, self._characters(line, column or 0)), code)
        return known[0]

    def _characters(self, line, column):
        if self._is_ascii:
            return column
        import linecache

        text = linecache.getline(self._file_name, line or 0)
        return column if text.isascii() else len(text.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "replace"))

    def wait(self, reply):
        """Reads until the reply is there, in place. Other replies go to their owners."""
        self._output.flush()
        while not reply.done:
            if self._reading.acquire(blocking=False):
                self._reader = _ident()
                try:
                    while not reply.done:
                        self._pull()
                except BaseException:
                    # A signal handler of the program ended the wait.
                    self.cancel(reply)
                    raise
                finally:
                    self._reader = None
                    self._reading.release()
                    if self._followers:
                        self._wake_followers()
            elif self._reader == _ident():
                self.cancel(reply)
                raise RuntimeError("a signal handler cannot wait for a call while it interrupts the wait for another one")
            else:
                self._follow(reply)

    def _follow(self, reply):
        # Another thread reads; it wakes this one for its reply, and when it stops reading.
        import threading

        event = threading.Event()
        with self._lock:
            reply.events = [*reply.events, event]
        self._followers.append(event)
        if not reply.done and self._reading.locked():
            event.wait()
        if event in self._followers:
            self._followers.remove(event)

    def _wake_followers(self):
        for event in self._followers[:]:
            event.set()

    def join(self, reply):
        """Waits for the reply within a coroutine: a generator for `__await__`."""
        loop = _running_loop()
        if loop is None:
            self.wait(reply)
            return
        if self._wait_alone(reply, loop):
            return
        future = loop.create_future()
        with self._lock:
            reply.futures = [*reply.futures, future]
        if reply.done:
            return
        self._watch(loop)
        self._output.flush()
        try:
            yield from future
        except BaseException:
            with self._lock:
                reply.futures = [one for one in reply.futures if one is not future]
            if not reply.futures:
                self.cancel(reply)
            raise

    def _wait_alone(self, reply, loop):
        """Reads in place as long as nothing else could run; True if the reply came."""
        try:
            ready, timers = loop._ready, loop._scheduled
            files = len(loop._selector.get_map())
        except AttributeError:
            return False
        # The loop's own wake-up pipe, and this channel.
        if files > (2 if self._watching is loop else 1):
            return False
        flushed = False
        while not reply.done:
            if ready or timers or _thread_count() or not self._reading.acquire(blocking=False):
                return False
            try:
                if not flushed:
                    self._output.flush()
                    flushed = True
                self._pull()
            finally:
                self._reading.release()
        return True

    def _watch(self, loop):
        if self._watching is loop:
            return
        if self._watching is not None and not self._watching.is_closed():
            self._watching.remove_reader(self._channel.descriptor)
        loop.add_reader(self._channel.descriptor, self._readable)
        self._watching = loop

    def _readable(self):
        # Another thread may have read what woke the loop.
        if self._reading.acquire(blocking=False):
            try:
                if not _thread_count() or self._channel.readable():
                    self._pull()
            finally:
                self._reading.release()
                if self._followers:
                    self._wake_followers()

    def _pull(self):
        for kind, body in self._channel.pull():
            if kind == wire.RETURN:
                message = _result_of(body)
                reply = self._open.pop(message.get("id"), None)
                if reply is not None:
                    reply.value = message.get("result")
                    self._settle(reply)
            elif kind == wire.ERROR:
                message = wire.loads(body)
                reply = self._open.pop(message.get("id"), None)
                if reply is not None:
                    reply.error = errors.from_frame(message, reply.target, reply.method)
                    self._settle(reply)

    def _settle(self, reply):
        reply.done = True
        here = None
        for future in reply.futures:
            if future.done():
                continue
            loop = future.get_loop()
            here = here or _running_loop()
            if loop is here or not _thread_count():
                future.set_result(None)
            else:
                loop.call_soon_threadsafe(lambda future=future: future.done() or future.set_result(None))
        for event in reply.events:
            event.set()

    def cancel(self, reply):
        """Tells the host that nobody waits any more."""
        if not reply.done and not reply.cancelled:
            reply.cancelled = reply.used = reply.done = True
            self._open.pop(reply.id, None)
            self._unused.pop(reply.id, None)
            self._channel.send(wire.CANCEL, {"id": reply.id})

    def release(self, reply):
        """The program saw the answer: nothing more to do for it."""
        self._unused.pop(reply.id, None)

    def complete(self):
        """Waits for the calls that nothing waited for, and returns those that failed."""
        failed = []
        for reply in list(self._unused.values()):
            self.wait(reply)
            if not reply.used and reply.error is not None:
                failed.append(reply)
        return failed

    def abandon(self):
        """Cancels all that is open."""
        for reply in list(self._open.values()):
            self.cancel(reply)


def _message(target, method, positional, keyword):
    """The body of a CALL frame but for its numbers. Raises TypeError for an argument that has no JSON form."""
    positional, keyword = arguments.plain(target, method, positional, keyword)
    return {"target": target, "method": method, "positional": positional, "keyword": keyword}
