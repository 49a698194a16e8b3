"""Arguments of calls as plain JSON. What has no JSON form is a TypeError that names the argument.

Unlike `codec` this is one way, and runs in the program: it may use the values' own methods.
"""

import os
import types
from _collections_abc import Iterable, Mapping
from binascii import b2a_base64

from _fimble.late_types import Module, is_one
from _fimble.pending import Pending

decimal = Module("decimal")
_DEPTH = 100
_PLAIN = {str, bool, type(None)}
_TEXT_KEYS = (("datetime", "date"), ("pathlib", "PurePath"), ("uuid", "UUID"))
# The host takes a call of more values, names of fields included, for a forgery: `VALUES` in `src/interpreter/message.rs`.
MOST = 1_000_000 - 100
_MISSING = "; pass None where one is missing"


class Where:
    """What errors call an argument, and how many values it may still have: `left`, a list of one number for all arguments."""

    __slots__ = ("text", "left")

    def __init__(self, text, left):
        self.text, self.left = text, left

    def __str__(self):
        return self.text

    def spend(self, count):
        """Takes that many values off. Raises TypeError when there are too many."""
        self.left[0] -= count
        if self.left[0] < 0:
            raise TypeError(f"{self.text}: more than {MOST:,} values in one call; pass less at a time")


def plain(target, method, positional, keyword):
    """The arguments of a call as plain JSON: a list and a dict. Raises TypeError for one that has no JSON form."""
    left = [MOST]
    where = lambda what: Where(f"{target}.{method}: argument {what}", left)
    return (
        [to_json(value, where(index)) for index, value in enumerate(positional, 1)],
        {name: to_json(value, where(f"`{name}`")) for name, value in keyword.items()},
    )


def to_json(value, where):
    """`value` as plain JSON; `where` is a `Where`."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    return _convert(value, where, 0)


def _convert(value, where, depth):
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is int:
        if not -(1 << 63) <= value < 1 << 64:
            raise TypeError(f"{where}: a number of more than 64 bits; pass it as text")
        return value
    if kind is float:
        if value - value != 0.0:
            raise TypeError(f"{where}: {value} is no number a toolkit can take{'' if value == value else _MISSING}")
        return value
    if depth > _DEPTH:
        raise TypeError(f"{where}: nested deeper than {_DEPTH} levels, or contains itself")
    if kind is list or kind is tuple:
        where.spend(len(value))
        return [_convert(item, where, depth + 1) for item in value]
    if type(value) is not Pending and isinstance(value, dict):
        where.spend(2 * len(value))
        return {_key(key, where): _convert(item, where, depth + 1) for key, item in value.items()}
    return _other(value, where, depth)


def _key(key, where):
    if type(key) is str:
        return key
    if is_one(key, "enum", "Enum"):
        return _key(key.value, where)
    if isinstance(key, str):
        return str.__str__(key)
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    if isinstance(key, (int, float)) or any(is_one(key, *kind) for kind in _TEXT_KEYS):
        return str(key)
    raise TypeError(f"{where}: keys must be text, not {type(key).__name__}")


def _other(value, where, depth):
    if type(value) is Pending:
        return _convert(value.result(), where, depth)
    if is_one(value, "enum", "Enum"):
        return _convert(value.value, where, depth + 1)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, bool):
        return bool(value)
    if isinstance(value, int):
        return _convert(int.__pos__(value), where, depth)
    if isinstance(value, float):
        return _convert(float.__pos__(value), where, depth)
    if hasattr(value, "_asdict") and isinstance(value, tuple):
        return _convert(value._asdict(), where, depth + 1)
    if hasattr(type(value), "__dataclass_fields__") and not isinstance(value, type):
        import dataclasses

        fields = dataclasses.fields(value)
        return {field.name: _convert(getattr(value, field.name), where, depth + 1) for field in fields}
    if is_one(value, "datetime", "date") or is_one(value, "datetime", "time"):
        text = value.isoformat()
        if text == "NaT":
            raise TypeError(f"{where}: NaT is no time a toolkit can take{_MISSING}")
        return text
    if is_one(value, "datetime", "timedelta"):
        return _number(value.total_seconds())
    if is_one(value, "decimal", "Decimal"):
        # As a number where that loses nothing, else as text.
        number = _number(float(value)) if value.is_finite() else None
        return number if number is not None and decimal.Decimal(repr(number)) == value else str(value)
    if is_one(value, "fractions", "Fraction"):
        return _number(float(value))
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if is_one(value, "uuid", "UUID") or is_one(value, "ipaddress", "_IPAddressBase"):
        return str(value)
    if is_one(value, "re", "Pattern"):
        return value.pattern
    if isinstance(value, types.SimpleNamespace):
        return _convert(vars(value), where, depth + 1)
    return _by_behaviour(value, where, depth)


def _number(number):
    return int(number) if number == int(number) and abs(number) < 1 << 53 else number


def _by_behaviour(value, where, depth):
    if isinstance(value, (bytes, bytearray, memoryview)):
        # As results have them, see `wire.decoder`.
        return {"$": "bytes", "v": b2a_base64(value, newline=False).decode()}
    if is_one(value, "pandas", "DataFrame"):
        return _convert(value.to_dict("records"), where, depth + 1)
    if isinstance(value, Mapping):
        return _convert(dict(value.items()), where, depth + 1)
    if isinstance(value, (set, frozenset)):
        where.spend(len(value))
        items = [_convert(item, where, depth + 1) for item in value]
        # The journal knows a call by its arguments: their order must not change from run to run.
        return sorted(items, key=lambda item: (type(item).__name__, item if isinstance(item, (str, int, float)) else repr(item)))
    if not isinstance(value, type) and hasattr(type(value), "tolist"):
        return _convert(value.tolist(), where, depth + 1)
    if isinstance(value, Iterable) and not isinstance(value, type):
        items = []
        for item in value:
            where.spend(1)
            items.append(_convert(item, where, depth + 1))
        return items
    name = value.__name__ if isinstance(value, type) else type(value).__name__
    if name == "NAType":
        raise TypeError(f"{where}: NA is no value a toolkit can take{_MISSING}")
    raise TypeError(f"{where}: a {name} cannot be passed to a toolkit; pass its data as text, numbers, lists or dicts")
