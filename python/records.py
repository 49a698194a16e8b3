"""Objects in results: dicts whose fields also read as attributes, because programs write both.

A method of `dict` wins over a field of its name: `record["items"]` is the field, `record.items()` the method.
"""

from itertools import islice


class MissingField(KeyError, AttributeError):
    """A field that is not there; caught as either of the two."""

    def __str__(self):
        return str(self.args[0]) if self.args else ""


class Record(dict):
    """A dict whose fields also read as attributes. Nothing else about it differs from a dict."""

    __slots__ = ()

    def __getattr__(self, name, /):
        if name[:2] == "__":
            raise AttributeError(name)
        return self[name]

    def __setattr__(self, name, value, /):
        self[name] = value

    def __delattr__(self, name, /):
        if name not in self:
            raise MissingField(explain(self, name))
        del self[name]

    def __missing__(self, key, /):
        raise MissingField(explain(self, key))

    def __dir__(self):
        return [*super().__dir__(), *(key for key in self if type(key) is str and key.isidentifier())]

    def copy(self):
        """A shallow copy."""
        return Record(self)

    def __or__(self, other, /):
        merged = dict.__or__(self, other)
        return merged if merged is NotImplemented else Record(merged)

    def __ror__(self, other, /):
        merged = dict.__ror__(self, other)
        return merged if merged is NotImplemented else Record(merged)


def explain(record, name):
    """The sentence for a field that is not there: the nearest one, and those there are."""
    fields = [str(key) for key in islice(dict.keys(record), 40)]
    if not fields:
        return f"no field {name!r}: the record is empty"
    lists = [key for key in islice(dict.keys(record), 40) if type(dict.get(record, key)) is list]
    if type(name) is int and len(lists) == 1 and type(lists[0]) is str and lists[0].isidentifier():
        return f"this is a record and no list: its list is `.{lists[0]}`, the fields are: {', '.join(fields)}"
    there = ", ".join(fields) + (", …" if len(record) > len(fields) else "")
    from difflib import get_close_matches

    near = get_close_matches(str(name), fields, 1, 0.6) if type(name) is str else []
    guess = f", did you mean {near[0]!r}?" if near else ";"
    return f"no field {name!r}{guess} the fields are: {there}"


def to_records(value):
    """The same JSON value with every dict a `Record`."""
    kind = type(value)
    if kind is dict:
        return Record((key, to_records(item)) for key, item in value.items())
    if kind is list:
        return [to_records(item) for item in value]
    return value
