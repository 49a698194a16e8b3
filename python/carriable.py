"""Which values can be carried, what they hold, and the reason where they cannot.

It does not know how a value is written; see `codec`.
"""

import collections
import functools
import sys
import types
from itertools import chain

from _fimble import late_types, objects
from _fimble.records import Record

DEPTH = 300
# Classes within classes.
_NESTED = 5


class NotCarried(Exception):
    """The value cannot be carried. The text is the reason."""


class TooLarge(NotCarried):
    """The value is larger than the cap."""


class Names:
    """What a program's own classes and functions are called, by identity. A class within a class is `Outer.Inner`.

    `used` is the set of the names that were asked for and found, without what follows a dot."""

    def __init__(self):
        self._names = {}
        self._kept = []
        self.used = set()

    def add(self, value, name, depth=0):
        """`value` is the session's `name`; an older one of that name stays known."""
        if id(value) not in self._names:
            self._kept.append(value)
        self._names[id(value)] = name
        if depth < _NESTED and objects.class_of(value, type):
            qualname = objects.class_path(value)[1]
            for inner, attribute in objects.class_attributes(value).items():
                if objects.class_of(attribute, type) and objects.class_path(attribute)[1] == f"{qualname}.{inner}":
                    self.add(attribute, f"{name}.{inner}", depth + 1)

    def get(self, value):
        """The session's name for a class or function, or None."""
        name = self._names.get(id(value))
        if name is not None:
            self.used.add(name.partition(".")[0])
        return name


LEAVES = objects.ids((type(None), bool, int, float, str))
# Names of classes, by their module. See `late_types`.
LATE = {
    "ipaddress": ("IPv4Address", "IPv6Address", "IPv4Network", "IPv6Network", "IPv4Interface", "IPv6Interface"),
    "fractions": ("Fraction",), "uuid": ("UUID",), "zoneinfo": ("ZoneInfo",), "decimal": ("Decimal",), "re": ("Pattern",),
    "datetime": ("datetime", "date", "time", "timedelta", "timezone"),
    "pathlib": ("PurePosixPath", "PosixPath", "PureWindowsPath"),
}  # fmt: skip
_CHILDLESS = set(objects.ids((
    bytes, bytearray, complex, type(Ellipsis), type(NotImplemented), types.FunctionType, types.BuiltinFunctionType, range,
)))  # fmt: skip
MAPPINGS = objects.ids((dict, Record, collections.OrderedDict, collections.Counter, collections.defaultdict))
_PLAIN_KEYS = set(objects.ids((bytes, complex, range)))
# Of those classes, the ones whose hash may run code of a program, or that are no keys.
_NO_PLAIN_KEYS = {"zoneinfo": LATE["zoneinfo"], "re": LATE["re"], "datetime": ("datetime", "timezone")}


def late_kinds(module):
    """The classes of an imported module of `LATE`."""
    return [getattr(module, name) for name in LATE[module.__name__]]


def _plain_keys(module):
    others = _NO_PLAIN_KEYS.get(module.__name__, ())
    return [getattr(module, name) for name in LATE[module.__name__] if name not in others]


for _name in LATE:
    late_types.when(_name, lambda module: _CHILDLESS.update(objects.ids(late_kinds(module))))
    late_types.when(_name, lambda module: _PLAIN_KEYS.update(objects.ids(_plain_keys(module))))
_ENUMS = []
late_types.when("enum", lambda enum: _ENUMS.append(enum.Enum))
_WITH_ATTRIBUTES = objects.ids((collections.OrderedDict, collections.Counter, functools.partial))
SEQUENCES = objects.ids((list, tuple, set, frozenset, collections.deque))
# What values of packages hold, and the bytes that their own content takes, as functions by the id of the type. The files
# that know a package add them.
PACKAGED = {}


def too_large(cap):
    """The reason for a value of more than `cap` bytes."""
    return TooLarge(f"it is larger than {cap // 1024:,} KiB; keep only what is needed of it")


def children_of(value, kind, names):
    """What a value that is no list or dict holds, as a sized collection. Raises NotCarried."""
    if id(kind) in SEQUENCES:
        return value
    if id(kind) in _WITH_ATTRIBUTES and objects.state(value):
        raise NotCarried("it has attributes of its own; derive a class for them")
    if id(kind) in MAPPINGS:
        items = list(chain.from_iterable(items_of(value, kind)))
        if kind is collections.defaultdict and value.default_factory is not None:
            items.append(value.default_factory)
        return items
    if id(kind) in _CHILDLESS:
        return ()
    if kind is types.SimpleNamespace:
        return list(object.__getattribute__(value, "__dict__").values())
    if kind is slice:
        return (value.start, value.stop, value.step)
    if kind is functools.partial:
        return (value.func, value.args, value.keywords)
    if objects.class_of(value, type) or names.get(value):
        return ()
    if is_enum(kind):
        return ()
    if objects.class_of(value, BaseException):
        return [error_arguments(value), *objects.state(value).values()]
    known_class(kind, names)
    base = objects.payload_base(kind)
    if base is dict:
        payload = chain.from_iterable(items_of(value, kind))
    else:
        payload = () if base is object else (payload_of(value, base),)
    return [*payload, *objects.state(value).values()]


def packaged(look, *given):
    """What `look` gives, for code of packages: it may be of any version, and a program may have changed it. Raises NotCarried."""
    try:
        return look(*given)
    except (NotCarried, MemoryError, RecursionError):
        raise
    except Exception as error:
        raise NotCarried(f"it cannot be looked at: {type(error).__name__}: {str(error)[:100]}") from None


def is_enum(kind):
    """True for the class of an enum's members."""
    return any(objects.has_ancestor(kind, base) for base in _ENUMS)


def error_arguments(error):
    """An exception's arguments."""
    return BaseException.args.__get__(error)


def items_of(value, kind):
    """The pairs of a mapping, in its own order."""
    if objects.has_ancestor(kind, collections.OrderedDict) and all(map(_hashes_safely, dict.keys(value))):
        return collections.OrderedDict.items(value)
    return dict.items(value)


def _hashes_safely(key, depth=0):
    """True if the key's hash runs no code of a program: an OrderedDict hashes its keys to tell their order."""
    kind = type(key)
    if kind is tuple or kind is frozenset:
        return depth < 20 and all(_hashes_safely(part, depth + 1) for part in key)
    return id(kind) in LEAVES or id(kind) in _PLAIN_KEYS


def payload_of(value, base):
    """What the builtin part of an instance holds, as an exact builtin. Not for dicts: a new one would hash the keys."""
    if base in (set, frozenset):
        # Takes the hashes over from a set.
        return base(value)
    if base in (list, tuple):
        return base(base.__iter__(value))
    if base in (int, float, complex):
        return base.__pos__(value)
    if base is str:
        return str.__str__(value)
    if base in (bytes, bytearray):
        return base.__getitem__(value, slice(None))
    return error_arguments(value)


_REASONS = {
    types.GeneratorType: "is used up once; turn it into a list",
    types.AsyncGeneratorType: "belongs to this program; keep its items in a list",
    types.CoroutineType: "belongs to this program; await it",
    types.ModuleType: "that no import makes again",
    memoryview: "cannot be carried; keep bytes",
    type({}.keys()): "cannot be carried; turn it into a list",
    type({}.values()): "cannot be carried; turn it into a list",
    type({}.items()): "cannot be carried; turn it into a list",
    map: "is used up once; turn it into a list",
    filter: "is used up once; turn it into a list",
    zip: "is used up once; turn it into a list",
    enumerate: "is used up once; turn it into a list",
    types.MethodType: "cannot be carried; keep the object itself",
}
# By the id of the type; other files add theirs.
HINTS = {id(kind): reason for kind, reason in _REASONS.items()}
late_types.when("re", lambda re: HINTS.update({id(re.Match): "cannot be carried; keep its groups"}))


def unknown_reason(kind):
    """Why a value of that class cannot be carried, after `a <class>`."""
    if id(kind) in HINTS:
        return HINTS[id(kind)]
    module, _ = objects.class_path(kind)
    if module.startswith(("_asyncio", "asyncio")):
        return "belongs to this program; await it and keep the result"
    if module in ("_io", "io"):
        return "is open only in this program; keep its content"
    if module in ("_thread", "threading"):
        return "belongs to this program"
    return "cannot be carried; keep its data as dicts, lists and text"


def known_class(kind, names):
    """What the codec calls a class: a session's name, or `module:qualname`. Raises NotCarried."""
    name = names.get(kind)
    if name is not None:
        if not is_enum(kind) and not objects.can_be_blank(kind):
            raise NotCarried(f"its class {name} cannot be made without running its code; keep its data")
        return name
    module, qualname = objects.class_path(kind)
    if module == "__main__":
        raise NotCarried(f"its class {objects.class_name(kind)} is not defined at top level")
    # Groups are made with their parts, which are their arguments.
    whole = objects.can_be_blank(kind) or kind is ExceptionGroup or kind is BaseExceptionGroup
    if id(kind) in HINTS or objects.payload_base(kind) is object and not is_enum(kind) or not whole:
        raise NotCarried(f"a {objects.class_name(kind)} {unknown_reason(kind)}")
    return global_path(kind, module, qualname)


def global_path(value, module, qualname):
    """`module:qualname` if that is where `value` is found, without importing anything. Raises NotCarried."""
    found = sys.modules.get(module)
    if type(found) is types.ModuleType:
        found = found.__dict__
        for part in qualname.split("."):
            if type(found) is not dict and not objects.class_of(found, type):
                found = None
                break
            found = (found if type(found) is dict else objects.class_attributes(found)).get(part)
        if found is value:
            return f"{module}:{qualname}"
    raise NotCarried(f"{qualname[:60]} is not defined at top level")


