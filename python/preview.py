"""Values in words for the reader: a type like `list[dict]`, and a bounded `repr`.

Nothing here runs a line of the values' classes, but for `display`, which says so.
"""

import collections
import types
from itertools import islice

from _fimble import late_types, objects
from _fimble.carriable import error_arguments, is_enum, items_of, late_kinds
from _fimble.records import Record

_SAMPLE = 100
_TRUSTED_REPR = set(objects.ids((
    type(None), bool, float, complex, range, type(Ellipsis), type(NotImplemented),
)))  # fmt: skip
for _name in ("datetime", "decimal", "fractions", "ipaddress", "pathlib", "uuid"):
    late_types.when(_name, lambda module: _TRUSTED_REPR.update(objects.ids(late_kinds(module))))
_ROWS = objects.ids((list, set, frozenset, collections.deque))
_TABLES = objects.ids((dict, collections.defaultdict, collections.OrderedDict))
_OPEN = {
    list: ("[", "]"), tuple: ("(", ")"), set: ("{", "}"), frozenset: ("frozenset({", "})"),
    collections.deque: ("deque([", "])"),
}  # fmt: skip
_MAPPINGS = {
    dict: ("{", "}"), Record: ("{", "}"), collections.OrderedDict: ("OrderedDict({", "})"),
    collections.Counter: ("Counter({", "})"), collections.defaultdict: ("defaultdict({", "})"),
}  # fmt: skip


# For values of packages, by the id of the type, functions that run no code of a program's classes: what is written in the
# value's place, a text or a list of items; and its type for a reader, an expression of Python. The files that know a package
# add them.
SHOWN, TYPE_NAMES = {}, {}

_OPEN_IDS, _MAPPING_IDS = objects.ids(_OPEN), objects.ids(_MAPPINGS)


def type_name(value):
    """The type for a reader, e.g. `list[dict]`, `dict[str, int]`, `int`."""
    kind = type(value)
    if kind is type(None):
        return "None"
    if kind is Record:
        return "dict"
    try:
        if id(kind) in _ROWS:
            inner = _union(islice(value, _SAMPLE))
            return f"{kind.__name__}[{inner}]" if inner else kind.__name__
        if kind is tuple:
            if 0 < len(value) <= 4:
                return f"tuple[{', '.join(_short_name(type(item)) for item in value)}]"
            inner = _union(islice(value, _SAMPLE))
            return f"tuple[{inner}, ...]" if inner else "tuple"
        if id(kind) in _TABLES:
            pairs = list(islice(dict.items(value), _SAMPLE))
            keys, items = _union(key for key, _ in pairs), _union(item for _, item in pairs)
            return f"{kind.__name__}[{keys}, {items}]" if keys and items else kind.__name__
        if id(kind) in TYPE_NAMES:
            return TYPE_NAMES[id(kind)](value)
    except Exception:  # Another thread changes it, or a package is not as it was.
        pass
    if objects.class_of(value, type):
        return "class"
    return _short_name(kind)


def _short_name(kind):
    if kind is type(None):
        return "None"
    return "dict" if kind is Record else objects.class_name(kind)


def _union(values):
    names = dict.fromkeys(_short_name(type(value)) for value in values)
    return " | ".join(names) if len(names) <= 3 else ""


def preview(value, limit=80):
    """A `repr` of at most `limit` characters, made without the values' own."""
    return _Writer(limit, _unknown).text(value)


def display(value, limit):
    """The same, but values of other classes show themselves: it runs their `__repr__`."""
    return _Writer(limit, _own_repr).text(value)


def cut(text, limit):
    """The text in at most `limit` characters."""
    return text if len(text) <= limit else text[: max(limit - 1, 0)] + "…"


def cut_middle(text, limit):
    """The text in about `limit` characters, with its beginning and its end."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]} … {len(text) - 2 * half:,} characters … {text[-half:]}"


def _unknown(value, writer):
    kind = type(value)
    name = objects.class_name(kind)
    if id(kind) in SHOWN:
        try:
            return SHOWN[id(kind)](value)
        except Exception:  # A package is not as it was.
            return f"<{name}>"
    if is_enum(kind):
        return f"{name}.{objects.state(value).get('_name_')}"
    if objects.class_of(value, BaseException):
        return f"{name}{preview(error_arguments(value), writer.left)}"
    if kind is types.FunctionType or kind is types.BuiltinFunctionType:
        return f"<function {cut(value.__name__, 60)}>"
    if objects.class_of(value, type):
        return f"<class {objects.class_name(value)}>"
    if kind is types.ModuleType:
        module = object.__getattribute__(value, "__dict__").get("__name__")
        return f"<module {module if type(module) is str else '?'}>"
    if objects.payload_base(kind) is object:
        attributes = objects.state(value) if kind is not types.SimpleNamespace else value.__dict__
        if attributes:
            return name, "(", ")", attributes
    elif objects.payload_base(kind) is tuple:
        return f"{name}{preview(tuple(tuple.__iter__(value)), writer.left)}"
    return f"<{name}>"


def _own_repr(value, writer):
    kind = type(value)
    if is_enum(kind) or kind is types.FunctionType or kind is types.SimpleNamespace:
        return _unknown(value, writer)
    return repr(value)


class _Writer:
    """Writes until `limit` characters are there, then stops looking."""

    def __init__(self, limit, other):
        self._limit, self._other = limit, other
        self._parts, self.left = [], limit
        self._within = set()

    def text(self, value):
        late_types.learn()
        try:
            self._write(value, 0)
        except RuntimeError:  # Another thread changes it, or it is too deep.
            self._put("…")
        return cut("".join(self._parts), self._limit)

    def _put(self, text):
        self._parts.append(text)
        self.left -= len(text)

    def _write(self, value, depth):
        kind = type(value)
        if kind is str or kind is bytes or kind is bytearray:
            self._put(repr(value if len(value) <= self.left else value[: max(self.left, 0) + 1]))
        elif kind is int:
            self._put(repr(value) if value.bit_length() < 4096 else f"<int of {value.bit_length():,} bits>")
        elif id(kind) in _TRUSTED_REPR:
            self._put(repr(value))
        elif depth > 20 or id(value) in self._within:
            self._put("…")
        elif id(kind) in _OPEN_IDS:
            self._items(value, *self._brackets(value, kind), depth)
        elif id(kind) in _MAPPING_IDS:
            self._pairs(value, *_MAPPINGS[kind], depth)
        else:
            shown = self._other(value, self)
            if type(shown) is str:
                self._put(shown)
            elif type(shown) is list:
                self._items(shown, "[", "]", depth)
            else:
                name, opened, closed, attributes = shown
                self._put(name)
                self._attributes(value, attributes, opened, closed, depth)

    def _brackets(self, value, kind):
        if kind is tuple and len(value) == 1:
            return "(", ",)"
        if not value and (kind is set or kind is frozenset):
            return f"{kind.__name__}(", ")"
        return _OPEN[kind]

    def _items(self, value, opened, closed, depth):
        self._put(opened)
        self._within.add(id(value))
        for index, item in enumerate(value):
            if index:
                self._put(", ")
            if self.left <= 0:
                break
            self._write(item, depth + 1)
        self._within.discard(id(value))
        self._put(closed)

    def _pairs(self, value, opened, closed, depth):
        self._put(opened)
        self._within.add(id(value))
        for index, (key, item) in enumerate(items_of(value, type(value))):
            if index:
                self._put(", ")
            if self.left <= 0:
                break
            self._write(key, depth + 1)
            self._put(": ")
            self._write(item, depth + 1)
        self._within.discard(id(value))
        self._put(closed)

    def _attributes(self, value, attributes, opened, closed, depth):
        self._put(opened)
        self._within.add(id(value))
        for index, (name, item) in enumerate(attributes.items()):
            if index:
                self._put(", ")
            if self.left <= 0:
                break
            self._put(f"{name}=")
            self._write(item, depth + 1)
        self._within.discard(id(value))
        self._put(closed)
