"""Looks at objects without running a line of their classes: only C-level descriptors, taken at import.

It does not know how values are written.
"""

import types
from collections import defaultdict

_type_dict = type.__dict__["__dict__"].__get__
_type_mro = type.__dict__["__mro__"].__get__
_type_name = type.__dict__["__name__"].__get__
_type_qualname = type.__dict__["__qualname__"].__get__
_type_module = type.__dict__["__module__"].__get__
_Member = types.MemberDescriptorType
_GetSet = types.GetSetDescriptorType



def ids(kinds):
    """The ids of types. Tests for exact types go by id: a metaclass may have its own `__eq__` and `__hash__`."""
    return frozenset(map(id, kinds))


# What exceptions keep besides their arguments and attributes, and a mapping besides its items. `AttributeError.obj` is not
# among it: it may be anything.
_BESIDES = {
    id(kind): {name: kind.__dict__[name] for name in names.split()}
    for kind, names in (
        (BaseException, "__cause__"), (OSError, "errno strerror filename filename2"), (ImportError, "name path"), (NameError, "name"),
        (AttributeError, "name"), (StopIteration, "value"), (SystemExit, "code"), (defaultdict, "default_factory"),
        (SyntaxError, "msg filename lineno offset text end_lineno end_offset"),
    )
}  # fmt: skip

# The types whose instances have a payload besides their attributes, and that a session's class may derive from.
PAYLOADS = (dict, list, tuple, set, frozenset, str, bytes, bytearray, int, float, complex, OSError, BaseException)
_PAYLOAD_IDS = ids(PAYLOADS)


def class_name(kind):
    """The class's name, cut."""
    return _type_name(kind)[:60]


def class_path(kind):
    """`(module, qualname)` of a class."""
    try:
        module = _type_module(kind)
    except Exception:  # A class whose body set `__module__` to something odd.
        module = None
    return (module if type(module) is str else "?"), _type_qualname(kind)


def class_of(value, kind):
    """True if `value` is an instance of `kind` for certain: by its real type, whatever `__class__` says."""
    return has_ancestor(type(value), kind)


def has_ancestor(kind, ancestor):
    """True if the class derives from `ancestor`, or is it."""
    return any(one is ancestor for one in _type_mro(kind))


def class_attributes(kind):
    """The class's own namespace, read-only."""
    return _type_dict(kind)


def payload_base(kind):
    """The builtin type that holds the payload of the class's instances, or `object`."""
    return next((ancestor for ancestor in _type_mro(kind) if id(ancestor) in _PAYLOAD_IDS), object)


def can_be_blank(kind):
    """True if an instance can be made from its state alone, without its class's code and without hidden C state."""
    known = _blank.get(id(kind))
    if known is None:
        # The class is kept, so that its id stays its own.
        known = _blank[id(kind)] = (_try_blank(kind), kind)
    return known[0]


_blank = {}


def _try_blank(kind):
    # A class with a finalizer owns something that its state cannot bring back; and it would run here.
    if any("__del__" in _type_dict(ancestor) for ancestor in _type_mro(kind)):
        return False
    try:
        payload_base(kind).__new__(kind)
    except Exception:
        return False
    return True


def state(value):
    """The instance's attributes as a new dict: its `__dict__`, its slots, and what an exception keeps besides."""
    attributes = {}
    for ancestor in _type_mro(type(value)):
        own = _type_dict(ancestor)
        if ancestor is object:
            continue
        # Only names that `__slots__` gives: other C members are no state of the program's making.
        if "__slots__" in own:
            for name, descriptor in own.items():
                if type(descriptor) is _Member and name not in attributes:
                    try:
                        attributes[name] = descriptor.__get__(value)
                    except AttributeError:
                        continue
        for name, descriptor in _BESIDES.get(id(ancestor), {}).items():
            found = descriptor.__get__(value)
            if found is not None and name not in attributes:
                attributes[name] = found
        instance = own.get("__dict__")
        if type(instance) is _GetSet:
            # A name of another type could run its own `__eq__` here, and no program writes one by accident.
            # `typing` says there which alias of a generic class was called.
            own = dict.items(instance.__get__(value))
            attributes.update((name, item) for name, item in own if type(name) is str and name != "__orig_class__")
    return attributes


def set_state(value, name, item):
    """Gives an instance one attribute that `state` had, past its class's properties and `__setattr__`."""
    space = None
    for ancestor in _type_mro(type(value)):
        own = _type_dict(ancestor)
        descriptor = own.get(name)
        if type(descriptor) is _Member and "__slots__" in own or name in _BESIDES.get(id(ancestor), ()):
            descriptor.__set__(value, item)
            return
        instance = own.get("__dict__")
        if space is None and type(instance) is _GetSet:
            space = instance.__get__(value)
    if type(space) is dict:
        space[name] = item
    else:
        object.__setattr__(value, name, item)
