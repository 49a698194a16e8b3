"""The toolkits as the program sees them: objects whose methods are calls to the host.

It does not know which operations there are: the host says so when one is called.
"""

from _fimble import pages
from _fimble.carriable import HINTS
from _fimble.pending import Pending, page


class Operation:
    """One operation of a toolkit. Calling it sends the call at once."""

    __slots__ = ("__calls", "__toolkit", "__name__")

    def __init__(self, calls, toolkit, name, /):
        self.__calls, self.__toolkit, self.__name__ = calls, toolkit, name

    def __call__(self, /, *positional, **keyword):
        calls, toolkit, name = self.__calls, self.__toolkit, self.__name__
        paging = calls.paging.get((toolkit, name)) if calls.paging else None
        if paging is not None:
            return page(calls, pages.request(toolkit, name, positional, keyword, paging))
        return Pending(calls, calls.make(toolkit, name, positional, keyword))

    def __await__(self):
        raise TypeError(f"{self.__toolkit}.{self.__name__} is not called; write {self.__toolkit}.{self.__name__}(…)")

    def __repr__(self):
        return f"<operation {self.__toolkit}.{self.__name__}>"


class Toolkit:
    """A toolkit: every attribute is an operation."""

    __slots__ = ("__calls", "__name")

    def __init__(self, calls, name, /):
        self.__calls, self.__name = calls, name

    def __getattr__(self, name, /):
        if name[:2] == "__":
            raise AttributeError(f"{self.__name} has no attribute {name!r}")
        return Operation(self.__calls, self.__name, name)

    def __call__(self, /, *_positional, **_keyword):
        raise TypeError(f"{self.__name} is a toolkit; call one of its operations, e.g. {self.__name}.operation(…)")

    def __repr__(self):
        return f"<toolkit {self.__name}>"


HINTS[id(Operation)] = HINTS[id(Toolkit)] = "is always there under the toolkit's name and cannot be kept elsewhere"
