"""Types of modules that take long to import: nothing is of such a type before somebody has imported its module.

It does not know what is done with them.
"""

import sys
import types

_waiting = {}


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
