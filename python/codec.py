"""Values of the program as JSON text, and back.

The text is a plain JSON tree where the value is one: None, bool, str, finite float, int of 64 bits, list, and dict with
`str` keys other than "$". Everything else is an object `{"$": tag, "v": payload}`:

    int "0x…"   float "nan"   str [code points]   bytes, bytearray "base64"   complex [re, im]   const "..."
    tuple, list, set, frozenset [items]   dict {str keys} or [key, value, key, value, …]   range, slice [start, stop, step]
    record {fields}, and records <JSON in which every object is a Record>   ordereddict, counter [pairs]
    defaultdict [pairs] with "f": its factory   deque [items] with "m": maxlen   namespace {attributes}
    datetime, date, time "ISO" with "z": its zone and "f": fold   timedelta [days, seconds, microseconds]
    timezone [timedelta, name?]   zoneinfo "key"   decimal "text"   fraction [numerator, denominator]   uuid "hex"
    path [class, text]   ip [class, text]   pattern [pattern, flags]   enum [class, value or name]   partial [f, args, kw]
    object [class, state, payload?]   error [class, args, state]   name "session global"   global "module:qualname"
    lost "reason"   and what `arrays` and `frames` say

A class is a session's name, or `module:qualname`. A container that is met more than once carries `"n": number`, and is
`{"$": "ref", "n": number}` where it is met again; so cycles and sharing within one variable are kept.

Encoding never runs a line of the values' classes: types are compared exactly, and state is read by `objects`. It does
not know where values come from or where the text goes.
"""

import collections
import functools
import types
from binascii import b2a_base64
from itertools import chain

from _fimble import late_types, objects
from _fimble.carriable import (
    DEPTH, LEAVES, MAPPINGS, PACKAGED, SEQUENCES, NotCarried, children_of, error_arguments, global_path, is_enum, items_of,
    known_class, late_kinds, packaged, payload_of, too_large,
)
from _fimble.records import Record
from _fimble.wire import dumps, native

def encode(value, names, cap):
    """The value as text of at most `cap` bytes. Raises NotCarried."""
    if native is not None:
        text = native.plain(value, Record, cap)
        if text is not None:
            return text
    late_types.learn()
    survey = _Survey(value, names, cap)
    try:
        if survey.plain:
            text = dumps(value)
        elif survey.records:
            text = '{"$":"records","v":' + dumps(value) + "}"
        else:
            text = dumps(_Builder(names, survey).build(value))
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError:
        text = dumps(_Builder(names, survey, surrogates=True).build(value))
    except (ValueError, TypeError):
        # A nan, or a number that the plain way has no word for: the builder has one.
        try:
            text = dumps(_Builder(names, survey, surrogates=True).build(value))
        except RecursionError:
            raise NotCarried(f"it is nested deeper than {DEPTH} levels") from None
    except RecursionError:
        raise NotCarried(f"it is nested deeper than {DEPTH} levels") from None
    except RuntimeError:
        raise NotCarried("it changed while it was looked at") from None
    if len(text) > cap or not text.isascii() and len(text.encode()) > cap:
        raise too_large(cap)
    return text


class _Survey:
    """One walk over the value, without recursion: is it plain, what is shared, is it small enough. `parts` has what values of
    packages are made of, by their id: to take them apart can cost a copy."""

    def __init__(self, root, names, cap):
        self.plain, self.records, self.shared, self.parts = True, False, set(), {}
        self._large_numbers = False
        self._names, self._budget, self._cap = names, cap, cap
        try:
            self._walk(root)
        except RuntimeError:
            raise NotCarried("it changed while it was looked at") from None
        if self.shared:
            self.plain = self.records = False

    def _spend(self, count):
        self._budget -= count
        if self._budget < 0:
            raise too_large(self._cap)

    def _walk(self, root):
        seen, stack, keep = {}, [(root, 1)], []
        only_records, any_record = True, False
        while stack:
            value, depth = stack.pop()
            kind = type(value)
            if id(kind) in LEAVES:
                self._leaves({id(kind)}, (value,))
                continue
            identity = id(value)
            if identity in seen:
                if not _is_found_by_name(value, kind):
                    self.shared.add(identity)
                continue
            if depth > DEPTH:
                raise NotCarried(f"it is nested deeper than {DEPTH} levels")
            seen[identity] = True
            if kind is list:
                children = value
            elif kind is dict or kind is Record:
                if kind is Record:
                    any_record, self.plain = True, False
                else:
                    only_records = False
                if set(map(id, map(type, value))) <= _TEXT:
                    if "$" in value:
                        self.plain = only_records = False
                    self._spend(sum(map(len, value)) + 4 * len(value))
                    children = value.values() if kind is dict else dict.values(value)
                else:
                    self.plain = only_records = False
                    children = chain.from_iterable(dict.items(value))
            else:
                self.plain = only_records = False
                look = PACKAGED.get(id(kind))
                if look is not None:
                    children, size = packaged(look, value)
                    self._spend(size)
                    self.parts[identity] = children
                else:
                    children = children_of(value, kind, self._names)
                # Children made on the spot must live as long as their ids are compared.
                keep.append(children)
            if type(children) is not chain:
                self._spend(2 * len(children))
                kinds = set(map(id, map(type, children)))
                if kinds <= LEAVES:
                    self._leaves(kinds, children)
                    continue
            deeper = depth + 1
            stack.extend((child, deeper) for child in children)
        self.records = any_record and only_records and not self._large_numbers

    def _leaves(self, kinds, values):
        if id(str) in kinds:
            self._spend(sum(len(value) for value in values if type(value) is str))
        if id(int) in kinds:
            for value in values:
                if type(value) is int and not -(1 << 63) <= value < 1 << 63:
                    self.plain, self._large_numbers = False, True
                    self._spend(value.bit_length() // 4)


class _Builder:
    """Builds the JSON tree. The survey has checked types and depth."""

    def __init__(self, names, survey, surrogates=False):
        self._names, self._shared, self._parts, self._surrogates = names, survey.shared, survey.parts, surrogates
        self._numbers = {}

    def build(self, value):
        kind = type(value)
        if kind is str:
            if self._surrogates and not value.isascii() and _has_surrogates(value):
                return {"$": "str", "v": list(map(ord, value))}
            return value
        if kind is bool or value is None:
            return value
        if kind is int:
            return value if -(1 << 63) <= value < 1 << 63 else {"$": "int", "v": hex(value)}
        if kind is float:
            return value if value - value == 0.0 else {"$": "float", "v": repr(value)}
        number = None
        if id(value) in self._shared:
            number = self._numbers.get(id(value))
            if number is not None:
                return {"$": "ref", "n": number}
            number = self._numbers[id(value)] = len(self._numbers) + 1
        if number is None:
            if kind is list:
                return list(map(self.build, value))
            if kind is dict and self._are_plain(value):
                build = self.build
                return {key: build(item) for key, item in value.items()}
        tagged = self._tagged(value, kind)
        if number is not None:
            tagged["n"] = number
        return tagged

    def _are_plain(self, value):
        if not set(map(id, map(type, value))) <= _TEXT or "$" in value:
            return False
        return not self._surrogates or all(key.isascii() or not _has_surrogates(key) for key in value)

    def _mapping(self, items):
        items = list(items)
        if all(type(key) is str and not (self._surrogates and _has_surrogates(key)) for key, _ in items):
            return {key: self.build(item) for key, item in items}
        return [self.build(part) for item in items for part in item]

    def _tagged(self, value, kind):
        build = self.build
        if id(kind) in SEQUENCES:
            parts = [build(item) for item in value]
            if kind is set or kind is frozenset:
                # The order of a set changes from process to process; its text must not.
                parts.sort(key=dumps)
            if kind is collections.deque:
                return {"$": "deque", "v": parts, "m": value.maxlen}
            return {"$": _TAGS[kind], "v": parts}
        if kind is dict or kind is Record:
            return {"$": "dict" if kind is dict else "record", "v": self._mapping(dict.items(value))}
        if id(kind) in MAPPINGS:
            tagged = {"$": kind.__name__.lower(), "v": [build(part) for item in items_of(value, kind) for part in item]}
            if kind is collections.defaultdict:
                tagged["f"] = build(value.default_factory)
            return tagged
        if kind is bytes or kind is bytearray:
            return {"$": kind.__name__, "v": b2a_base64(value, newline=False).decode()}
        if kind is complex:
            return {"$": "complex", "v": [build(value.real), build(value.imag)]}
        if kind is range or kind is slice:
            return {"$": kind.__name__, "v": [build(value.start), build(value.stop), build(value.step)]}
        if kind is types.SimpleNamespace:
            return {"$": "namespace", "v": self._mapping(object.__getattribute__(value, "__dict__").items())}
        write = WRITERS.get(id(kind))
        if write is not None:
            look = PACKAGED.get(id(kind))
            if look is None:
                return write(value, build)
            parts = self._parts.get(id(value))
            return packaged(write, value, build, packaged(look, value)[0] if parts is None else parts)
        if kind is functools.partial:
            return {"$": "partial", "v": [build(value.func), build(value.args), build(value.keywords)]}
        name = self._names.get(value)
        if name is not None:
            return {"$": "name", "v": name}
        if objects.class_of(value, type):
            return {"$": "global", "v": global_path(value, *objects.class_path(value))}
        if kind is types.FunctionType or kind is types.BuiltinFunctionType:
            return {"$": "global", "v": self._function(value, kind)}
        return self._instance(value, kind)

    def _function(self, value, kind):
        module = value.__module__
        if type(module) is not str or module == "__main__":
            raise NotCarried(f"it holds the function {value.__name__[:60]}, which is not defined at top level")
        return global_path(value, module, value.__qualname__)

    def _instance(self, value, kind):
        name = known_class(kind, self._names)
        attributes = objects.state(value)
        if is_enum(kind):
            return self._member(name, attributes)
        if self._names.get(kind) is None and objects.class_of(value, BaseException):
            return {"$": "error", "v": [name, self.build(error_arguments(value)), self._mapping(attributes.items())]}
        base = objects.payload_base(kind)
        parts = [name, self._mapping(attributes.items())]
        if base is dict:
            mapping = self._mapping(items_of(value, kind))
            parts.append(mapping if type(mapping) is dict and "$" not in mapping else {"$": "dict", "v": mapping})
        elif base is not object:
            parts.append(self.build(payload_of(value, base)))
        return {"$": "object", "v": parts}

    def _member(self, name, attributes):
        member, content = attributes.get("_name_"), attributes.get("_value_")
        if type(member) is str and "|" not in member:
            return {"$": "enum", "v": [name, member]}
        if type(content) is int:
            return {"$": "enum", "v": [name, content]}
        raise NotCarried("an enum member without a name")


def _is_found_by_name(value, kind):
    """True for what is written as a name wherever it is met."""
    return kind is types.FunctionType or kind is types.BuiltinFunctionType or objects.class_of(value, type) or is_enum(kind)


def _has_surrogates(text):
    return any("\ud800" <= character <= "\udfff" for character in text)


_TEXT = objects.ids((str,))
_TAGS = {tuple: "tuple", set: "set", frozenset: "frozenset", list: "list"}


def _own_text(kind):
    return next(one.__dict__["__str__"] for one in kind.__mro__ if "__str__" in one.__dict__)


def _named_text(tag, kind):
    text = _own_text(kind)
    return lambda value, _: {"$": tag, "v": [kind.__name__, text(value)]}


ZONES = set()


def _moment(tag):
    def write(value, build):
        zone = value.tzinfo
        if zone is not None and id(type(zone)) not in ZONES:
            raise NotCarried(f"its time zone is a {objects.class_name(type(zone))}; use datetime.timezone or ZoneInfo")
        bare = {"$": tag, "v": value.replace(tzinfo=None, fold=0).isoformat()}
        if zone is not None:
            bare["z"] = build(zone)
        if value.fold:
            bare["f"] = 1
        return bare

    return write


def _zone(value, _build):
    if type(value.key) is not str:
        raise NotCarried("a ZoneInfo without a key")
    return {"$": "zoneinfo", "v": value.key}


_PLAIN_WRITERS = {
    type(Ellipsis): lambda value, _: {"$": "const", "v": "..."},
    type(NotImplemented): lambda value, _: {"$": "const", "v": "NotImplemented"},
}  # fmt: skip
# How a value is written, `(value, build) -> tree`, by the id of its type. The files that know a package add theirs, which are
# given the parts of `PACKAGED` too: `(value, build, parts) -> tree`.
WRITERS = {id(kind): write for kind, write in _PLAIN_WRITERS.items()}


def _learn_datetime(datetime):
    arguments = datetime.timezone.__getinitargs__
    write = {
        datetime.datetime: _moment("datetime"),
        datetime.time: _moment("time"),
        datetime.date: lambda value, _: {"$": "date", "v": value.isoformat()},
        datetime.timedelta: lambda value, _: {"$": "timedelta", "v": [value.days, value.seconds, value.microseconds]},
        datetime.timezone: lambda value, build: {"$": "timezone", "v": [build(part) for part in arguments(value)]},
    }  # fmt: skip
    WRITERS.update({id(kind): one for kind, one in write.items()})
    ZONES.add(id(datetime.timezone))


def _learn_decimals(decimal):
    WRITERS[id(decimal.Decimal)] = lambda value, _: {"$": "decimal", "v": str(value)}


def _learn_patterns(re):
    WRITERS[id(re.Pattern)] = lambda value, build: {"$": "pattern", "v": [build(value.pattern), value.flags]}


def _learn_fractions(fractions):
    numerator = fractions.Fraction.__dict__["_numerator"].__get__
    denominator = fractions.Fraction.__dict__["_denominator"].__get__
    WRITERS[id(fractions.Fraction)] = lambda value, build: {
        "$": "fraction", "v": [build(numerator(value)), build(denominator(value))],
    }  # fmt: skip


def _learn_uuids(uuid):
    number = uuid.UUID.__dict__["int"].__get__
    WRITERS[id(uuid.UUID)] = lambda value, _: {"$": "uuid", "v": f"{number(value):032x}"}


def _learn_zones(zoneinfo):
    ZONES.add(id(zoneinfo.ZoneInfo))
    WRITERS[id(zoneinfo.ZoneInfo)] = _zone


late_types.when("datetime", _learn_datetime)
late_types.when("decimal", _learn_decimals)
late_types.when("re", _learn_patterns)
late_types.when("fractions", _learn_fractions)
late_types.when("uuid", _learn_uuids)
late_types.when("zoneinfo", _learn_zones)
late_types.when("pathlib", lambda module: WRITERS.update({id(kind): _named_text("path", kind) for kind in late_kinds(module)}))
late_types.when("ipaddress", lambda module: WRITERS.update({id(kind): _named_text("ip", kind) for kind in late_kinds(module)}))
