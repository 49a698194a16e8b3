"""Text of `codec` as values again.

It may run code of the session's classes only where a set or dict needs their hash.
"""

import collections
import functools
import importlib
import types
from binascii import a2b_base64

from _fimble import objects
from _fimble.late_types import Module
from _fimble.records import Record, to_records
from _fimble.wire import loads

_module = importlib.import_module
datetime, decimal, enum, pathlib, re = map(Module, ("datetime", "decimal", "enum", "pathlib", "re"))


def package(name):
    """The package, imported. Raises Lost if it is not there."""
    try:
        return _module(name)
    except ImportError as error:
        missing = error.name or name
        raise Lost(f"it needs the package `{missing}`, which is not among `interpreter.packages`") from None


class Lost(Exception):
    """The text says that the value could not be carried; the text of the error is the reason."""


class _Later:
    """Stands for a value that is still being made."""

    __slots__ = ("number",)

    def __init__(self, number):
        self.number = number


def decode(text, lookup):
    """The value. `lookup(name)` gives the session's class or function of that name, or raises KeyError.

    Raises Lost, and any exception for text that `encode` did not write."""
    tree = loads(text)
    if '"$"' not in text:
        return tree
    if type(tree) is dict and tree.get("$") == "records":
        return to_records(tree["v"])
    reader = _Reader(lookup, _numbered(tree) if '"ref"' in text else {})
    value = reader.read(tree)
    reader.finish()
    return value


def _numbered(tree):
    """The trees that references mean, by number."""
    found, stack = {}, [tree]
    while stack:
        tree = stack.pop()
        if type(tree) is dict:
            if "n" in tree and tree.get("$") not in (None, "ref"):
                found.setdefault(tree["n"] if type(tree["n"]) is int else None, tree)
            stack.extend(tree.values())
        elif type(tree) is list:
            stack.extend(tree)
    return found


class _Reader:
    def __init__(self, lookup, numbered):
        self._lookup, self._numbered = lookup, numbered
        self._made = {}
        self._open = []
        self._begun = set()

    def finish(self):
        """Fills in what was not there yet."""
        for container, key, number in self._open:
            if type(container) is _Attributes:
                objects.set_state(container.owner, key, self._made[number])
            else:
                container[key] = self._made[number]

    def read(self, tree):
        kind = type(tree)
        if kind is list:
            return self._into_list([], tree)
        if kind is not dict:
            return tree
        tag = tree.get("$")
        if tag is None:
            return self._into_dict({}, tree)
        if tag == "ref":
            number = tree["n"]
            if number in self._made:
                return self._made[number]
            # The items of a set are written in another order than they were met.
            return _Later(number) if number in self._begun else self.read(self._numbered[number])
        number = tree.get("n")
        if number is not None:
            if number in self._made:
                return self._made[number]
            self._begun.add(number)
        empty = EMPTY.get(tag)
        if empty is not None:
            value = empty(self, tree)
            if number is not None:
                self._made[number] = value
            fill = FILLERS.get(tag)
            if fill is not None:
                fill(self, value, tree)
            else:
                self._fill(tag, value, tree["v"])
            return value
        if tag == "object":
            return self._object(tree["v"], number)
        value = READERS[tag](self, tree["v"], tree)
        if number is not None:
            self._made[number] = value
        return value

    def _into_list(self, target, trees):
        for tree in trees:
            value = self.read(tree)
            if type(value) is _Later:
                self._open.append((target, len(target), value.number))
            target.append(value)
        return target

    def into_places(self, target, trees):
        """Sets the items of something of that length."""
        for index, tree in enumerate(trees):
            value = self.read(tree)
            if type(value) is _Later:
                self._open.append((target, index, value.number))
            else:
                target[index] = value

    def _into_dict(self, target, trees):
        for key, tree in trees.items():
            value = self.read(tree)
            if type(value) is _Later:
                self._open.append((target, key, value.number))
            target[key] = value
        return target

    def _pairs(self, target, trees):
        if type(trees) is dict:
            self._into_dict(target, trees)
            return
        for index in range(0, len(trees), 2):
            key, value = self.read(trees[index]), self.read(trees[index + 1])
            if type(value) is _Later:
                self._open.append((target, key, value.number))
            target[key] = value

    def _fill(self, tag, value, trees):
        if tag in ("list", "deque"):
            self._into_list(value, trees)
        elif tag == "set":
            value.update(map(self.read, trees))
        elif tag == "namespace":
            self._pairs(value.__dict__, trees)
        else:
            self._pairs(value, trees)

    def many(self, trees):
        """The values of a list of trees, for what cannot be filled later."""
        values = [self.read(tree) for tree in trees]
        if any(type(value) is _Later for value in values):
            raise ValueError("a cycle through something that cannot be changed")
        return values

    def class_called(self, path):
        """The class that the codec calls so."""
        return self.name(path) if ":" not in path else find_global(path)

    def _object(self, parts, number):
        kind = self.class_called(parts[0])
        base = objects.payload_base(kind)
        payload = None
        if base in (tuple, frozenset, str, bytes, int, float, complex):
            value = base.__new__(kind, self.read(parts[2])) if len(parts) > 2 else base.__new__(kind)
        else:
            value = base.__new__(kind)
        if number is not None:
            self._made[number] = value
        if len(parts) > 2:
            payload = self.read(parts[2])
        if base is dict:
            put = collections.OrderedDict.__setitem__ if objects.has_ancestor(kind, collections.OrderedDict) else dict.__setitem__
            for key, item in payload.items():
                put(value, key, item)
        elif base in (list, bytearray):
            base.extend(value, payload)
        elif base is set:
            set.update(value, payload)
        elif base is BaseException or base is OSError:
            value.args = payload
        self._attributes(value, parts[1])
        return value

    def error(self, parts, tree):
        """An exception of the standard library or of a toolkit."""
        kind = self.class_called(parts[0])
        arguments = self.read(parts[1])
        value = kind.__new__(kind, *arguments)
        value.args = arguments
        if objects.has_ancestor(kind, UnicodeError):
            # These keep their arguments in C as well.
            kind.__init__(value, *arguments)
        self._attributes(value, parts[2])
        return value

    def _attributes(self, value, trees):
        attributes, start = {}, len(self._open)
        self._pairs(attributes, trees)
        self._open[start:] = [entry for entry in self._open[start:] if entry[0] is not attributes]
        for name, item in attributes.items():
            if type(item) is _Later:
                self._open.append((_Attributes(value), name, item.number))
            else:
                objects.set_state(value, name, item)

    def name(self, path, *_):
        """A class or function of the session."""
        name, *inner = path.split(".")
        value = self._lookup(name)
        for name in inner:
            value = objects.class_attributes(value)[name]
        return value


class _Attributes:
    __slots__ = ("owner",)

    def __init__(self, owner):
        self.owner = owner


def find_global(path):
    """The object at `module:qualname`."""
    module, _, qualname = path.partition(":")
    value = _module(module)
    for part in qualname.split("."):
        value = getattr(value, part)
    return value


def _deque(reader, tree):
    return collections.deque((), tree["m"])


def _defaultdict(reader, tree):
    return collections.defaultdict(reader.read(tree["f"]))


def _moment(name):
    def read(reader, text, tree):
        value = getattr(datetime, name).fromisoformat(text)
        if "z" in tree or "f" in tree:
            zone = reader.read(tree["z"]) if "z" in tree else None
            value = value.replace(tzinfo=zone, fold=tree.get("f", 0))
        return value

    return read


def _enum(reader, parts, _):
    kind = reader.class_called(parts[0])
    if type(parts[1]) is str:
        return enum.EnumMeta.__getitem__(kind, parts[1])
    return enum.EnumMeta.__call__(kind, parts[1])


def _partial(reader, parts, _):
    function, positional, keyword = reader.many(parts)
    return functools.partial(function, *positional, **keyword)


def _lost(_reader, reason, _):
    raise Lost(reason)


# The empty container of a tag, `(reader, tree)`; and what fills it, `(reader, value, tree)`, where `_fill` does not know how.
# The files that know a package add theirs, here and to `READERS`.
FILLERS = {}
EMPTY = {
    "list": lambda reader, tree: [],
    "dict": lambda reader, tree: {},
    "record": lambda reader, tree: Record(),
    "set": lambda reader, tree: set(),
    "ordereddict": lambda reader, tree: collections.OrderedDict(),
    "counter": lambda reader, tree: collections.Counter(),
    "namespace": lambda reader, tree: types.SimpleNamespace(),
    "defaultdict": _defaultdict,
    "deque": _deque,
}

# The value of a tag, `(reader, payload, tree)`.
READERS = {
    "int": lambda reader, text, _: int(text, 16),
    "float": lambda reader, text, _: float(text),
    "str": lambda reader, points, _: "".join(map(chr, points)),
    "bytes": lambda reader, text, _: a2b_base64(text),
    "bytearray": lambda reader, text, _: bytearray(a2b_base64(text)),
    "complex": lambda reader, parts, _: complex(*reader.many(parts)),
    "const": lambda reader, text, _: {"...": Ellipsis, "NotImplemented": NotImplemented}[text],
    # A tuple may hold what is still being made, as long as nobody looks: `many` refuses.
    "tuple": lambda reader, trees, _: tuple(reader.many(trees)),
    "frozenset": lambda reader, trees, _: frozenset(reader.many(trees)),
    "range": lambda reader, parts, _: range(*reader.many(parts)),
    "slice": lambda reader, parts, _: slice(*reader.many(parts)),
    "datetime": _moment("datetime"),
    "time": _moment("time"),
    "date": lambda reader, text, _: datetime.date.fromisoformat(text),
    "timedelta": lambda reader, parts, _: datetime.timedelta(*parts),
    "timezone": lambda reader, parts, _: datetime.timezone(*reader.many(parts)),
    "zoneinfo": lambda reader, key, _: _module("zoneinfo").ZoneInfo(key),
    "decimal": lambda reader, text, _: decimal.Decimal(text),
    "fraction": lambda reader, parts, _: _module("fractions").Fraction(*reader.many(parts)),
    "uuid": lambda reader, text, _: _module("uuid").UUID(hex=text),
    "path": lambda reader, parts, _: getattr(pathlib, parts[0])(parts[1]),
    "ip": lambda reader, parts, _: getattr(_module("ipaddress"), parts[0])(parts[1]),
    "pattern": lambda reader, parts, _: re.compile(reader.read(parts[0]), parts[1]),
    "enum": _enum,
    "partial": _partial,
    "error": _Reader.error,
    "name": _Reader.name,
    "global": lambda reader, path, _: find_global(path),
    "lost": _lost,
}
