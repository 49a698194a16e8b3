"""How an operation's results follow one another, page after page, as the host says it in the RUN frame.

It does not know how a reply arrives, nor how a program goes through the items.
"""

from _fimble import arguments


class Paging:
    """Of one operation: the argument that takes a page's token, and where a result has the token of the next page and its items."""

    __slots__ = ("argument", "position", "token", "items")

    def __init__(self, argument, position, token, items, /):
        self.argument, self.position, self.token, self.items = argument, position, token, items


class Request:
    """A call of such an operation, with arguments that no program can change between two pages."""

    __slots__ = ("target", "method", "positional", "keyword", "paging")

    def __init__(self, target, method, positional, keyword, paging, /):
        self.target, self.method, self.paging = target, method, paging
        self.positional, self.keyword = positional, keyword

    def items_of(self, page):
        """An iterator over the items of a page. Many servers leave an empty list out. Raises TypeError for what is no list."""
        path = self.paging.items
        items = _at(page, path) if isinstance(page, dict) else page
        if items is not None and not isinstance(items, list):
            where = f"`{'.'.join(path)}`" if path else "the result"
            raise TypeError(f"{self.target}.{self.method}: {where} is no list of items but a {type(items).__name__}")
        return iter(items or ())

    def after(self, page):
        """The same call for the page after it; None after the last one, and where a page leads to itself."""
        paging, token = self.paging, _at(page, self.paging.token)
        if token is None or token == "" or token == self._token():
            return None
        positional, keyword = self.positional, {**self.keyword, paging.argument: token}
        if self._is_positional():
            positional = (*positional[: paging.position], token, *positional[paging.position + 1 :])
            keyword = self.keyword
        return Request(self.target, self.method, positional, keyword, paging)

    def _is_positional(self):
        return len(self.positional) > self.paging.position

    def _token(self):
        # What asked for this page.
        paging = self.paging
        return self.positional[paging.position] if self._is_positional() else self.keyword.get(paging.argument)


def paging_of(run):
    """What a RUN frame says: a `Paging` for each toolkit and operation."""
    return {
        (one["target"], one["method"]): Paging(one["argument"], one["position"], one["token"], one["items"])
        for one in run.get("paging", ())
    }


def request(target, method, positional, keyword, paging):
    """The request of a call. Raises TypeError for an argument that has no JSON form."""
    positional, keyword = arguments.plain(target, method, positional, keyword)
    return Request(target, method, tuple(positional), keyword, paging)


def _at(value, path):
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
