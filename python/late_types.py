"""Modules that take long to import, for the process that somebody waits for to start: nothing is of a type of theirs before
somebody has imported them.

It does not know what is done with them.
"""

import sys
import types

_waiting = {}
_modules = []


class Module:
    """A module that is imported at its first use, as it is then: what a program changes in it later changes nothing here."""

    def __init__(self, name):
        self.__dict__["_Module__name"] = name
        _modules.append(self)

    def __getattr__(self, name):
        found = bind(self)
        try:
            return found[name]
        except KeyError:
            raise AttributeError(name) from None


def bind(module):
    """Imports a `Module` now; returns its names."""
    space = module.__dict__
    if "__name__" in space:
        return space
    imported = __import__("importlib").import_module(space["_Module__name"])
    space.update(imported.__dict__)
    return space


def bind_all():
    """Imports all of them, for the processes that are forked from this one."""
    for module in _modules:
        bind(module)
    learn()


def when(module, take):
    """Calls `take(module)` with the module of that name: now if it is there, else in the first `learn` after its import."""
    _waiting.setdefault(module, []).append(take)
    learn()


def learn():
    """Looks for modules that were imported since."""
    for name in [name for name in _waiting if _is_there(sys.modules.get(name))]:
        for take in _waiting.pop(name):
            try:
                take(sys.modules[name])
            except Exception:
                # A module of the program's own, which took the name.
                continue


def _is_there(module):
    """True for a module that is imported to its end."""
    if type(module) is not types.ModuleType:
        return False
    return getattr(module.__dict__.get("__spec__"), "_initializing", False) is not True


def is_one(value, module, name):
    """True if the value is an instance of that class of that module."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(value, kind)
