"""What a program finds when it begins: its builtins, its toolkits, and the variables of earlier rounds.

The program gets builtins of its own, so that what it does to them changes nothing here.
"""

import builtins
import sys
import types

from _fimble import errors
from _fimble.decoding import Lost, decode
from _fimble.definitions import marks
from _fimble.missing import Missing, NotRestored
from _fimble.output import no_input
from _fimble.proxies import Toolkit
from _fimble.records import MissingField, Record
from _fimble.wire import native

# There without an import, because programs forget it.
MODULES = (
    "asyncio base64 bisect collections copy csv dataclasses datetime decimal difflib enum fractions functools heapq io "
    "itertools json math operator os random re statistics string sys textwrap time traceback types typing uuid"
).split()

# For looking at nested values; the program has the usual limit.
RECURSION = 20_000


class Restored:
    """A variable as it came in: its object, the kind and content it was made of, and what a definition held then."""

    __slots__ = ("value", "kind", "content", "marks")

    def __init__(self, value, kind, content, marks=None):
        self.value, self.kind, self.content, self.marks = value, kind, content, marks


def leave(code=None, /):
    """What `exit` and `quit` are."""
    raise SystemExit(code)


def program_builtins():
    """A copy of the builtins with what every program has."""
    own = types.ModuleType("builtins", builtins.__doc__)
    own.__dict__.update(builtins.__dict__)
    space = own.__dict__
    for name in MODULES:
        module = sys.modules.get(name)
        if module is not None:
            space.setdefault(name, module)
    for one in (*errors.CLASSES, Record):
        space[one.__name__] = one
    space.update(exit=leave, quit=leave, input=no_input)
    return own


def import_named(own, texts):
    """Imports what `texts` name of the modules that are always there, if nobody has done so yet."""
    space = own.__dict__
    for name in MODULES:
        if name not in space and any(name in text for text in texts):
            try:
                space[name] = __import__(name)
            except ImportError:
                # A build without it: the program reads the same ImportError.
                continue


for _one in (*errors.CLASSES, Record, MissingField, NotRestored):
    # How tracebacks call them.
    _one.__module__ = "builtins"


def restore(variables, names, sources, namespace):
    """Brings the variables into the namespace, in their order. Returns a dict of `Restored` by name.

    What fails is tried again after the others, and is a `Missing` then; this never fails."""
    restored, failed = {}, []
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(RECURSION)
    ready = native.values(variables) if native is not None else [None] * len(variables)
    for variable, made in zip(variables, ready):
        if made is not None:
            name = variable["name"]
            value = namespace[name] = made[0]
            restored[name] = Restored(value, "value", variable["content"])
        elif not _bring(variable, names, sources, namespace, restored):
            failed.append(variable)
    for variable in failed:
        _bring(variable, names, sources, namespace, restored, last=True)
    sys.setrecursionlimit(usual)
    return restored


def _bring(variable, names, sources, namespace, restored, last=False):
    name, kind, content = variable["name"], variable["kind"], variable["content"]
    try:
        if kind == "value":
            value = namespace[name] = decode(content, namespace.__getitem__)
        else:
            if kind == "definition":
                sources.add(f"<{name}>", content)
            exec(compile(content, f"<{name}>", "exec", dont_inherit=True), namespace)
            value = namespace[name]
            if kind == "definition" and names.get(value) is None:
                names.add(value, name)
    except Lost as lost:
        value = namespace[name] = Missing(name, str(lost))
    except Exception as error:
        if not last:
            return False
        value = namespace[name] = Missing(name, f"{type(error).__name__}: {error}"[:300])
    restored[name] = Restored(value, kind, content, marks(value, names) if kind == "definition" else None)
    return True


def begin(proxies, calls, own_builtins):
    """A new namespace with the toolkits in it: that of the module `__main__`, where `pickle` and `typing` look for names."""
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    namespace = main.__dict__
    namespace["__builtins__"] = own_builtins
    for name in proxies:
        namespace[name] = Toolkit(calls, name)
    return namespace
