"""What a program leaves behind: the variables it wrote, those it removed, and those that cannot be carried.

It looks at the namespace after the program, with the garbage collector off, and runs no code of the program's classes.
A value that came in and was not touched is not written again.
"""

import io
import types

from _fimble import objects
from _fimble.carriable import NotCarried, TooLarge, global_path
from _fimble.codec import encode
from _fimble.definitions import changed, import_source, references
from _fimble.missing import Missing
from _fimble.pending import Pending, reply_of
from _fimble.preview import cut, preview, type_name
from _fimble.proxies import Operation, Toolkit
from _fimble.records import Record
from _fimble.wire import dumps, native, to_bytes

_IMMUTABLE = objects.ids((type(None), bool, int, float, str, bytes, complex, range))
_FILES = objects.ids((io.TextIOWrapper, io.BufferedReader, io.BufferedWriter))
_LONGEST_NAME = 200
_MOST_REASONS = 200
# The host takes a last word of more names for a forgery: `WRITTEN` in `src/interpreter/done.rs`.
MOST_NAMES = 20_000
_MOST_WARNINGS = 10
# Of all definitions together, so that the last word stays below `VALUES` in `src/interpreter/message.rs`.
_MOST_REFERENCES = 400_000
TOO_LARGE = "the variables of this round are too large together; keep less"
_TOO_MANY = f"a round keeps at most {MOST_NAMES:,} names; put values into a list or dict"
_FUNCTIONS = objects.ids((types.FunctionType, types.BuiltinFunctionType))


class Captured:
    """Three lists for the DONE frame: `written` (dicts), `removed` (names), `not_carried` (pairs of name and reason); and
    `warnings`, sentences about what a carried name loses."""

    def __init__(self):
        self.written, self.removed, self.not_carried, self.warnings = [], [], [], []
        self._untold = 0

    def refuse(self, name, reason, was_there):
        """The name holds what cannot be carried. What the store has under it is no longer true if it `was_there`."""
        if len(self.not_carried) < _MOST_REASONS:
            self.not_carried.append([name, cut(reason, 300)])
        else:
            self._untold += 1
            self.not_carried[_MOST_REASONS:] = [["*", f"and so are {self._untold:,} more names"]]
        if was_there:
            self.removed.append(name)

    def shrink(self, size, restored, reason):
        """Refuses the largest variables, for that reason, until the others take no more than `size` bytes of a frame."""
        sizes = [(_size(entry), index) for index, entry in enumerate(self.written)]
        total, dropped = sum(one for one, _ in sizes), set()
        for one, index in sorted(sizes, reverse=True):
            if total <= size:
                break
            total -= one
            dropped.add(index)
        for index in sorted(dropped):
            name = self.written[index]["name"]
            self.refuse(name, reason, name in restored)
        self.written = [entry for index, entry in enumerate(self.written) if index not in dropped]


def _size(entry):
    """Bytes of an entry in a frame."""
    try:
        return len(to_bytes(dumps(entry))) + 1
    except MemoryError:
        return 2 * len(entry["content"])


class Capture:
    """One look at a namespace."""

    def __init__(self, namespace, restored, definitions, names, proxies, variable_bytes, variables_bytes):
        self._namespace, self._restored, self._definitions = namespace, restored, definitions
        self._names, self._proxies = names, frozenset(proxies)
        self._variable_bytes, self._left = variable_bytes, variables_bytes
        self._used, self._references = set(), _MOST_REFERENCES
        self.captured = Captured()

    def run(self):
        """Looks at every name once."""
        hidden = {}
        for name, value in self._unsettled():
            if type(name) is not str or name in self._proxies or not name.isidentifier() or len(name) > _LONGEST_NAME:
                continue
            if name[0] == "_":
                if name[:2] != "__" and name != "_":
                    hidden[name] = value
                continue
            self._look_safely(name, value)
        # Names with an underscore are the program's own, unless something that is carried needs them.
        while needed := [name for name in hidden if name in self._used or name in self._restored]:
            for name in needed:
                self._look_safely(name, hidden.pop(name))
        for name in self._restored:
            if name not in self._namespace:
                self.captured.removed.append(name)
        return self.captured

    def _unsettled(self):
        """The names and values that are not certainly as they came in."""
        if native is None:
            return list(self._namespace.items())
        return native.unsettled(self._namespace, self._restored, Record, self._variable_bytes)

    def _look_safely(self, name, value):
        try:
            self._look(name, value)
        except Exception as error:
            # A name that cannot be looked at costs no other one, and does not keep what it was.
            self._refuse(name, f"it could not be looked at: {type(error).__name__}: {error}")

    def _look(self, name, value):
        if type(value) is Pending:
            reply = reply_of(value)
            if not reply.done or reply.cancelled or reply.error is not None:
                self._refuse(name, "its call failed" if reply.done else "its call was not waited for")
                return
            value = reply.value
        kind = type(value)
        if objects.class_path(kind) == ("__future__", "_Feature"):
            # Its import holds for the program alone.
            return
        restored = self._restored.get(name)
        same = restored is not None and restored.value is value
        if kind is Missing or kind is Toolkit or kind is Operation or same and self._is_settled(restored, kind):
            if restored is not None and restored.kind == "definition":
                self._warn_of_changes(name, value, restored.marks)
                self._used.update(references(restored.content) if self._hides() else ())
            return
        if restored is None and len(self.captured.written) >= MOST_NAMES:
            self._refuse(name, _TOO_MANY)
            return
        try:
            plain = self._plain(name, value)
            if plain is not None:
                kind, line, used, (content, of_type, shown) = "value", 0, [], plain
            else:
                kind, content, shown, line, used = self._contents(name, value, restored)
            if restored is not None and restored.kind == kind and restored.content == content:
                return
            if plain is None:
                of_type = type_name(value) if kind == "value" else _definition_type(value)
                shown = preview(value) if kind == "value" else cut(shown, 120)
        except TooLarge as reason:
            self._refuse(name, str(reason) if self._left >= self._variable_bytes else TOO_LARGE)
            return
        except NotCarried as reason:
            if not _is_closed(value):
                self._refuse(name, str(reason))
            return
        except (MemoryError, RecursionError) as error:
            self._refuse(name, f"{type(error).__name__} while it was looked at")
            return
        # A rough size is enough: the host counts exactly.
        if len(content) > self._left:
            self._refuse(name, TOO_LARGE)
            return
        if len(self.captured.written) >= MOST_NAMES:
            self._refuse(name, _TOO_MANY)
            return
        self._left -= len(content)
        entry = {"name": name, "kind": kind, "content": content, "type_name": of_type, "preview": shown}
        entry["line"] = line or self._definitions.line_of(name)
        entry["references"] = used[: self._references]
        self._references -= len(entry["references"])
        self.captured.written.append(entry)

    def _hides(self):
        return any(name[:1] == "_" and name[:2] != "__" for name in self._namespace if type(name) is str)

    @staticmethod
    def _is_settled(restored, kind):
        return restored.kind != "value" or id(kind) in _IMMUTABLE

    def _refuse(self, name, reason):
        self.captured.refuse(name, reason, name in self._restored)

    def _plain(self, name, value):
        """Text, type and preview of what is plain and no definition, in the host's own way; else None."""
        definitions = self._definitions
        if native is None or name in definitions.made or name in definitions.imports:
            return None
        return native.describe(value, Record, min(self._variable_bytes, self._left))

    def _contents(self, name, value, restored):
        """Kind, content, what is shown of a definition, its line if known, and the names it uses."""
        definitions = self._definitions
        made = definitions.made.get(name)
        if made is not None and made.value is value:
            self._warn_of_changes(name, value, made.marks)
            return "definition", made.source, made.shown, made.line, self._using(made.source)
        previous = restored.content if restored is not None and restored.kind == "import" else None
        text = import_source(name, value, definitions.imports, previous)
        if text is None and (id(type(value)) in _FUNCTIONS or objects.class_of(value, type)):
            text = self._alias(name, value)
            if text.startswith(name + " ="):
                return "definition", text, text, 0, self._using(text)
        if text is not None:
            return "import", text, text, 0, []
        self._names.used = set()
        text = encode(value, self._names, min(self._variable_bytes, self._left))
        self._used.update(self._names.used)
        return "value", text, "", 0, sorted(self._names.used)

    def _warn_of_changes(self, name, value, marks):
        lost = changed(value, marks, self._names) if type(value) is not Missing else ()
        if lost and len(self.captured.warnings) < _MOST_WARNINGS:
            what = ", ".join(f"`{name}.{one}`" if one.isidentifier() else one for one in lost[:5])
            sentence = f"only the source of `{name}` is kept for the next program, not {what} as it is now; keep it in a variable"
            self.captured.warnings.append(cut(sentence, 400))

    def _using(self, source):
        used = references(source)
        self._used.update(used)
        return used

    def _alias(self, name, value):
        own = self._names.get(value)
        if own is not None and own != name:
            outer, *inner = own.split(".")
            found = self._namespace.get(outer)
            for one in inner:
                found = objects.class_attributes(found).get(one) if objects.class_of(found, type) else None
            if found is value:
                return f"{name} = {own}"
        if id(type(value)) in _FUNCTIONS:
            module, path = value.__module__, value.__qualname__
        else:
            module, path = objects.class_path(value)
        if type(module) is not str or module == "__main__" or "." in path:
            raise NotCarried("it was made inside a function or by a call; define it at top level with def or class")
        global_path(value, module, path)
        return f"from {module} import {path}" + (f" as {name}" if path != name else "")


def _definition_type(value):
    kind = type(value)
    if kind is types.ModuleType:
        return "module"
    if kind is types.FunctionType:
        # CO_COROUTINE and CO_ASYNC_GENERATOR.
        return "async function" if value.__code__.co_flags & 0x280 else "function"
    return type_name(value)


def _is_closed(value):
    """True for a file that `with` has closed: nobody expects it to be there later."""
    kind = type(value)
    return id(kind) in _FILES and kind.closed.__get__(value) is True
