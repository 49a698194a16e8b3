"""What a call gives back at once: a promise that can be awaited, or used as if it were the result.

Used without `await`, it waits in place and hands the use on to the result. It does not know how replies arrive.
"""

import operator
from _collections_abc import Coroutine

from _fimble.carriable import HINTS

_get = object.__getattribute__


class Pending:
    """The result of a call that is under way.

    `await` it, or call `.result()`; every other use does the latter. Its own names are `result`, `send`, `throw` and
    `close`: fields of that name are read with `[…]`, or after `await`."""

    __slots__ = ("_Pending__calls", "_Pending__reply", "_Pending__steps", "_Pending__request", "__weakref__")

    def __init__(self, calls, reply, request=None, /):
        """`request` makes the call again for the next page; None for an operation without pages."""
        _set_calls(self, calls)
        _set_reply(self, reply)
        _set_steps(self, None)
        _set_request(self, request)

    def __await__(self):
        calls, reply = _calls(self), _reply(self)
        if not reply.done:
            yield from calls.join(reply)
        calls.release(reply)
        return reply.take()

    def result(self, timeout=None, /):
        """The result, waited for in place. `timeout` is there for programs that are used to futures, and ignored."""
        calls, reply = _calls(self), _reply(self)
        if not reply.done:
            calls.wait(reply)
        calls.release(reply)
        return reply.take()

    # With these three, `asyncio.create_task` takes it for a coroutine.
    def send(self, value, /):
        steps = _steps(self)
        if steps is None:
            steps = self.__await__()
            _set_steps(self, steps)
        return steps.send(value)

    def throw(self, *error):
        steps = _steps(self)
        if steps is None:
            steps = self.__await__()
            _set_steps(self, steps)
            _calls(self).cancel(_reply(self))
        return steps.throw(*error)

    def close(self):
        steps = _steps(self)
        if steps is not None:
            steps.close()

    def __aiter__(self):
        return Items(self)

    def __getattr__(self, name, /):
        if name[:2] == "__":
            raise AttributeError(name)
        return getattr(self.result(), name)

    def __setattr__(self, name, value, /):
        setattr(self.result(), name, value)

    def __delattr__(self, name, /):
        delattr(self.result(), name)

    def __call__(self, /, *positional, **keyword):
        return self.result()(*positional, **keyword)

    def __hash__(self):
        return object.__hash__(self)

    def __eq__(self, other, /):
        # `asyncio.gather` keeps its arguments in a dict: the same promise must not wait to see that it is the same.
        return True if other is self else self.result() == resolved(other)

    def __ne__(self, other, /):
        return False if other is self else self.result() != resolved(other)

    def __reduce_ex__(self, protocol, /):
        return self.result().__reduce_ex__(protocol)

    def __copy__(self):
        import copy

        return copy.copy(self.result())

    def __deepcopy__(self, memo, /):
        import copy

        return copy.deepcopy(self.result(), memo)

    def __round__(self, digits=None, /):
        return round(self.result(), digits) if digits is not None else round(self.result())

    def __dir__(self):
        return dir(self.result())


_calls, _set_calls = Pending._Pending__calls.__get__, Pending._Pending__calls.__set__
_reply, _set_reply = Pending._Pending__reply.__get__, Pending._Pending__reply.__set__
_steps, _set_steps = Pending._Pending__steps.__get__, Pending._Pending__steps.__set__
_request, _set_request = Pending._Pending__request.__get__, Pending._Pending__request.__set__


class Items:
    """The items of a result one by one, then those of the pages after it. A page is called for when the items before it are
    used up; whoever stops earlier leaves nothing under way."""

    __slots__ = ("_page", "_items", "_next")

    def __init__(self, pending, /):
        # A promise until all is over; its items once it was waited for.
        self._page, self._items, self._next = pending, None, None

    def __aiter__(self):
        return self

    async def __anext__(self):
        while (pending := self._page) is not None:
            if self._items is None:
                result = await pending
                # Another task may wait for the same page, and come first.
                if self._page is pending and self._items is None:
                    self._open(result, _request(pending))
            for item in self._items or ():
                return item
            if self._page is pending:
                self._turn(_calls(pending))
        raise StopAsyncIteration

    def _open(self, result, request):
        if request is None:
            self._items = iter(result)
        else:
            self._items, self._next = request.items_of(result), request.after(result)

    def _turn(self, calls):
        request, self._page, self._items, self._next = self._next, None, None, None
        if request is not None:
            self._page = page(calls, request)


def page(calls, request):
    """Makes the call of a request; its promise."""
    reply = calls.make(request.target, request.method, request.positional, request.keyword)
    return Pending(calls, reply, request)


def resolved(value):
    """The result, if the value is a promise; else the value."""
    return value.result() if type(value) is Pending else value


def reply_of(pending):
    """The reply behind a promise."""
    return _reply(pending)


def _unary(function):
    return lambda self, /: function(self.result())


def _binary(function):
    return lambda self, other, /: function(self.result(), resolved(other))


def _reflected(function):
    return lambda self, other, /: function(resolved(other), self.result())


_UNARY = {
    "__str__": str, "__repr__": repr, "__bool__": bool, "__len__": len, "__iter__": iter, "__reversed__": reversed,
    "__int__": int, "__float__": float, "__complex__": complex, "__index__": operator.index, "__neg__": operator.neg,
    "__pos__": operator.pos, "__abs__": abs, "__invert__": operator.invert, "__bytes__": bytes,
}  # fmt: skip
_BINARY = {
    "__getitem__": operator.getitem, "__delitem__": operator.delitem, "__contains__": operator.contains,
    "__lt__": operator.lt, "__le__": operator.le, "__gt__": operator.gt, "__ge__": operator.ge, "__format__": format,
}  # fmt: skip
_ARITHMETIC = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv, "mod": operator.mod,
    "floordiv": operator.floordiv, "pow": operator.pow, "and": operator.and_, "or": operator.or_, "xor": operator.xor,
    "lshift": operator.lshift, "rshift": operator.rshift, "matmul": operator.matmul, "divmod": divmod,
}  # fmt: skip

for _name, _function in _UNARY.items():
    setattr(Pending, _name, _unary(_function))
for _name, _function in _BINARY.items():
    setattr(Pending, _name, _binary(_function))
for _name, _function in _ARITHMETIC.items():
    setattr(Pending, f"__{_name}__", _binary(_function))
    setattr(Pending, f"__r{_name}__", _reflected(_function))
Pending.__setitem__ = lambda self, key, value, /: operator.setitem(self.result(), key, value)

Coroutine.register(Pending)
HINTS[id(Pending)] = "was never awaited; await it and keep the result"
HINTS[id(Items)] = "belongs to this program; keep its items in a list"
