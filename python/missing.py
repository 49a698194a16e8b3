"""What stands for a variable that could not be restored: using it says why.

It does not know how variables are restored.
"""


class NotRestored(NameError):
    """A variable of an earlier round is not there. The text says which, and why."""


class Missing:
    """Raises `NotRestored` whatever is done with it."""

    __slots__ = ("__sentence",)

    def __init__(self, name, reason, /):
        object.__setattr__(self, "_Missing__sentence", f"`{name}` could not be brought over from an earlier round: {reason}")

    def __getattr__(self, name, /):
        if name[:2] == "__":
            raise AttributeError(name)
        raise NotRestored(sentence(self))

    def __repr__(self):
        return f"<{sentence(self)}>"

    __hash__ = object.__hash__


def sentence(missing):
    """Why it is missing."""
    return object.__getattribute__(missing, "_Missing__sentence")


def _refuse(self, *_positional, **_keyword):
    raise NotRestored(sentence(self))


for _name in (
    "call getitem setitem delitem contains len iter bool eq ne lt le gt ge add radd sub rsub mul rmul truediv rtruediv "
    "floordiv rfloordiv mod rmod pow rpow and rand or ror xor rxor neg pos abs invert int float complex index format str "
    "bytes enter exit aenter aexit aiter anext next await setattr delattr reduce_ex"
).split():
    setattr(Missing, f"__{_name}__", _refuse)
