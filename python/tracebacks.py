"""Exceptions in words for the model: only the lines of its own program, the failing one, and the values on it.

It does not know how the program ended otherwise.
"""

import sys
import types

from _fimble import imports, limits, objects, preview
from _fimble.late_types import Module
from _fimble.missing import Missing
from _fimble.pending import Pending
from _fimble.proxies import Operation, Toolkit

linecache, re = Module("linecache"), Module("re")
_WORD = r"[^\W\d]\w*"
_FRAMES = 12
_MESSAGE = 4_000
_NAMES = 8
_HIDDEN = objects.ids((types.ModuleType, types.FunctionType, types.BuiltinFunctionType, Toolkit, Operation, Pending, Missing))


class Sources:
    """The files that are the model's own: the program, and the definitions it was given."""

    def __init__(self):
        self.names = set()
        # Those that `linecache` was not told of.
        self._untold = {}

    def add(self, file_name, source):
        """Makes the source's lines readable for tracebacks and `inspect`."""
        self.names.add(file_name)
        if not self._untold and "linecache" not in sys.modules:
            imports.when_imported("linecache", self.tell)
        self._untold[file_name] = source
        if "linecache" in sys.modules:
            self.tell()

    def tell(self):
        """Tells `linecache` now."""
        for file_name, source in self._untold.items():
            linecache.cache[file_name] = (len(source), None, source.splitlines(True), file_name)
        self._untold.clear()


def describe(error, sources):
    """The traceback as text. Runs the exception's own `__str__`."""
    try:
        from traceback import TracebackException

        sources.tell()
        shown = TracebackException(type(error), error, error.__traceback__, lookup_lines=False, compact=True)
        _strip(shown, sources.names, set())
        lines = [preview.cut_middle(piece, _MESSAGE) for piece in shown.format()]
        text = "".join(lines).rstrip("\n")
    except Exception:
        text = f"{type(error).__name__}: (its message cannot be shown)"
    try:
        values = _values(error, sources.names)
    except Exception:  # A program may leave nothing to import with.
        values = ""
    hint = limits.hint(error)
    text = preview.cut_middle(text, 4 * _MESSAGE)
    return text + (f"\nwhere {values}" if values else "") + (f"\nhint: {hint}" if hint else "")


def _strip(shown, names, seen):
    if shown is None or id(shown) in seen:
        return
    seen.add(id(shown))
    if shown.stack is not None:
        own = [frame for frame in shown.stack if frame.filename in names]
        cut = own if len(own) <= _FRAMES else own[: _FRAMES // 2] + own[-_FRAMES // 2 :]
        shown.stack[:] = cut
    # The place where the class was made says nothing to the reader.
    for other in (shown.__cause__, shown.__context__, *(getattr(shown, "exceptions", None) or ())):
        _strip(other, names, seen)


def place(error, file_name):
    """The innermost line of the file that the exception passed, or 0."""
    line, step = 0, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == file_name:
            line = step.tb_lineno
        step = step.tb_next
    return line


def _values(error, names):
    """`name = value` for what stands on the failing line, bounded."""
    last, step = None, error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename in names:
            last = step
        step = step.tb_next
    if last is None:
        return ""
    frame = last.tb_frame
    line = linecache.getline(frame.f_code.co_filename, last.tb_lineno or 0)
    found = []
    for name in dict.fromkeys(re.findall(_WORD, line)):
        if name[:2] == "__":
            continue
        space = frame.f_locals if name in frame.f_locals else frame.f_globals
        if name not in space or id(type(space[name])) in _HIDDEN or objects.class_of(space[name], type):
            continue
        found.append(f"{name} = {preview.preview(space[name])}")
        if len(found) == _NAMES:
            break
    return ", ".join(found)


def reporter(sources):
    """What `report` is in the program: prints an exception as the host would show it."""

    def report(error=None, /):
        """Prints what went wrong, with the program's own lines."""
        error = error if error is not None else sys.exc_info()[1]
        if not isinstance(error, BaseException):
            print(error)
        else:
            print(describe(error, sources))

    return report
