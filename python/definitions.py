"""Which top-level statement made which function, class or import, and its source.

Statements are looked at after they ran: a name is a definition's if it holds the object that the statement left there.
It does not know how values are carried.
"""

import abc
import builtins
import collections
import io
import sys
import types
from functools import cache

from _fimble import objects
from _fimble.carriable import NotCarried
from _fimble.codec import encode
from _fimble.late_types import Module, bind

ast, symtable = Module("ast"), Module("symtable")
# Calls whose result is a class or a type, and that may be made again from their source.
_MAKERS = objects.ids((collections.namedtuple, types.new_class))
# Of modules that take long to import: a program that uses these has imported them.
_LATE_MAKERS = {
    "typing": ("NamedTuple", "TypedDict", "NewType", "TypeVar", "ParamSpec"), "dataclasses": ("make_dataclass",),
    "enum": ("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"),
}  # fmt: skip
_ALIASES = objects.ids((types.GenericAlias, types.UnionType))
_LATE_ALIASES = {"typing": ("_GenericAlias", "_UnionGenericAlias", "_CallableGenericAlias")}
_BUILTINS = frozenset(vars(builtins))

# `abc` counts in its own when a class is made.
_MACHINERY = objects.ids((type(abc.ABC.__dict__["_abc_impl"]),))

# What may change without becoming another object; a class or a default value that holds one is looked at more closely.
_CONTAINERS = objects.ids((list, dict, set, collections.deque, collections.OrderedDict, collections.Counter, collections.defaultdict))
_MARK = 64 * 1024


@cache
def _definitions():
    return ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef


@cache
def _scopes():
    return *_definitions(), ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp


@cache
def _binding():
    alias = getattr(ast, "TypeAlias", None)
    return {*_definitions(), ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign, *([alias] if alias else [])}


class Definition:
    """The source that made an object. `shown` is its first line for a reader, `marks` is what it held at first."""

    __slots__ = ("value", "source", "line", "shown", "marks")

    def __init__(self, value, source, line, shown, marks):
        self.value, self.source, self.line, self.shown, self.marks = value, source, line, shown, marks


class Definitions:
    """What the statements of one program bound."""

    def __init__(self, source, names):
        self._text = source
        self._lines = None
        self._names = names
        self._future, self._file_name = "", ""
        self.made = {}
        self.imports = {}
        self._seen, self._stores, self._mentions = [], {}, {}

    def expect(self, statements):
        """Imports what functions and classes among the statements need: after them it might not be possible."""
        if any(one.bindings is None for one in statements):
            bind(ast)
            bind(symtable)

    def observe(self, statement, namespace):
        """Takes note of what the statement bound; also for one that failed half-way."""
        self._seen.append(statement)
        self._file_name = statement.code.co_filename
        if statement.bindings is not None and not self._may_define(statement.bindings, namespace):
            return
        node = statement.node
        kind = type(node)
        if kind is ast.Expr or kind is ast.AugAssign:
            return
        if kind in _binding():
            self._bound(node, namespace)
            return
        for inner in _module_scope(node):
            if type(inner) in _binding():
                self._bound(inner, namespace)

    def _may_define(self, bindings, namespace):
        """Takes note of the imports among `bindings`, unless one of the others made a definition.

        They are tuples: (name, how, first, second), see `_way`, or (module, "import", level, pairs of name and `as`)."""
        for name, way, first, second in bindings:
            if way != "import" and self._fits(name, way, first, second, namespace):
                return True
        for module, way, level, names in bindings:
            if way == "import":
                self._imported(module, level, names)
        return False

    def _bound(self, node, namespace):
        kind = type(node)
        if kind is ast.Import or kind is ast.ImportFrom:
            module = node.module if kind is ast.ImportFrom else None
            if module == "__future__":
                self._future += ast.unparse(node) + "\n"
            else:
                names = [(alias.name, alias.asname) for alias in node.names]
                self._imported(module, node.level if module else 0, names)
        elif kind is ast.Assign:
            for target in node.targets:
                if type(target) is ast.Name:
                    self._assigned(target.id, node, node.value, namespace)
                elif type(target) is ast.Tuple and type(node.value) is ast.Tuple:
                    # `a, b = lambda: 1, lambda: 2`
                    for one, made in zip(target.elts, node.value.elts):
                        if type(one) is ast.Name:
                            self._assigned(one.id, node, made, namespace)
        elif kind is ast.AnnAssign:
            if type(node.target) is ast.Name and node.value is not None:
                self._assigned(node.target.id, node, node.value, namespace)
        elif kind in _definitions():
            self._defined(node.name, node, namespace)
        else:
            self._take(node.name.id, node, namespace.get(node.name.id))

    def line_of(self, name):
        """The last line that wrote the name, else the last statement that names it, else 0."""
        if self._seen:
            for statement in self._seen:
                self._mentions.update(dict.fromkeys(statement.code.co_names, statement.line))
                if statement.stores is None:
                    self._store(statement.node)
                else:
                    self._stores.update(statement.stores)
            self._seen = []
        return self._stores.get(name) or self._mentions.get(name) or 0

    def _store(self, node):
        kind = type(node)
        if kind is ast.Assign and all(type(target) is ast.Name for target in node.targets):
            # The usual case, without a walk.
            for target in node.targets:
                self._stores[target.id] = node.lineno
            return
        for inner in _module_scope(node):
            kind = type(inner)
            if kind is ast.Name:
                if type(inner.ctx) is not ast.Load:
                    self._stores[inner.id] = inner.lineno
            elif kind is ast.Subscript or kind is ast.Attribute:
                self._changed(inner)
            elif kind in _definitions():
                self._stores[inner.name] = inner.lineno
            elif kind is ast.Import or kind is ast.ImportFrom:
                for alias in inner.names:
                    self._stores[alias.asname or alias.name.partition(".")[0]] = inner.lineno

    def _changed(self, node):
        # `a[1] = 2` and `a.b = 2` write `a`; so may `a.method(…)`, which later lines that only read it must not hide.
        changes = type(node.ctx) is not ast.Load or type(node) is ast.Attribute
        while type(node) is ast.Subscript or type(node) is ast.Attribute:
            node = node.value
        if changes and type(node) is ast.Name:
            self._stores[node.id] = node.lineno

    def _defined(self, name, node, namespace):
        value = namespace.get(name)
        if value is not None and not self._is_elsewhere(value, node):
            self._take(name, node, value)

    def _is_elsewhere(self, value, node):
        """True if another branch of an `if` or `try` made the object that has this node's name."""
        if objects.class_of(value, type):
            made = objects.class_attributes(value).items()
        else:
            made = [("<lambda>" if type(node) is ast.Assign or type(node) is ast.AnnAssign else node.name, value)]
        lines = [line for name, one in made if (line := self._line_in(one, name))]
        first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])
        return bool(lines) and not any(first <= line <= (node.end_lineno or first) for line in lines)

    def _line_in(self, function, name):
        """The line of this program on which the function of that name within all decorators was made, or 0."""
        for _ in range(50):
            if type(function) is not types.FunctionType:
                return 0
            inner = function.__dict__.get("__wrapped__")
            if inner is None:
                break
            function = inner
        code = function.__code__
        return code.co_firstlineno if code.co_filename == self._file_name and code.co_name == name else 0

    def _assigned(self, name, node, made, namespace):
        value = namespace.get(name)
        if type(made) is ast.Lambda:
            fits = type(value) is types.FunctionType and not self._is_elsewhere(value, node)
        else:
            fits = self._fits(name, *_way(made), namespace)
        targets = node.targets if type(node) is ast.Assign else [node.target]
        if fits and (len(targets) > 1 or type(targets[0]) is not ast.Name):
            # The second name of one object is an alias of the first.
            if type(made) is ast.Name or self._names.get(value) is not None:
                return
            node = ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], made, lineno=node.lineno), node)
            self._take(name, node, value, ast.unparse(node) + "\n")
        elif fits:
            self._take(name, node, value)

    def _fits(self, name, way, first, second, namespace):
        """True if the name now holds what counts as a definition, made in that way."""
        value = namespace.get(name)
        if way == "call":
            called = _called(first, second, namespace)
            return called is not None and (id(called) in _MAKERS or _is_late(called, _LATE_MAKERS))
        if way == "name":
            return self._names.get(value) not in (None, name)
        return way == "alias" and (id(type(value)) in _ALIASES or _is_late(type(value), _LATE_ALIASES))

    def _take(self, name, node, value, source=None):
        known = self.made.get(name)
        if value is None or known is not None and known.value is value:
            return
        if self._lines is None:
            # Where the compiler counts lines: `str.splitlines` knows more.
            self._lines = io.StringIO(self._text, newline="").readlines()
        source = self._future + (source or self._source(node))
        line = self._lines[node.lineno - 1].strip() if node.lineno <= len(self._lines) else name
        if self._names.get(value) is None:
            self._names.add(value, name)
        self.made[name] = Definition(value, source, node.lineno, line, marks(value, self._names))

    def _imported(self, module, level, names):
        for name, called in names:
            bound = called or (name if module else name.partition(".")[0])
            text = f"import {name}" + (f" as {called}" if called else "")
            found = self.imports.setdefault(bound, [])
            if module is not None:
                found.clear()
                text = f"from {'.' * level}{module} {text}"
            entry = (text, module, name)
            if entry not in found:
                found.append(entry)

    def _source(self, node):
        start = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])
        lines = self._lines[start - 1 : node.end_lineno]
        if not lines:
            return ast.unparse(node)
        before = lines[0].encode()[: node.col_offset] if start == node.lineno else b""
        lines[-1] = lines[-1].encode()[: node.end_col_offset].decode("utf-8", "ignore")
        if before.strip():
            # Not the first of its line.
            return ast.unparse(node)
        text = "".join(lines) + "\n"
        # Indented lines stay as they are: taking the indentation away would change text within strings.
        return text if not node.col_offset else f"if True:\n{text}"


def marks(value, names):
    """What a function or class holds besides its code: a dict of names to the object, and its text if that may change."""
    if type(value) is types.FunctionType:
        held = dict(value.__dict__)
        for default in value.__defaults__ or ():
            if id(type(default)) in _CONTAINERS:
                held["its default values"] = value.__defaults__
    elif objects.class_of(value, type):
        held = objects.class_attributes(value)
    else:
        return {}
    # `_name_` is what `enum` calls its own.
    own = {name: one for name, one in held.items() if name[:2] != "__" and not (name[0] == "_" and name[-1] == "_")}
    return {name: (one, _text(one, names)) for name, one in own.items() if id(type(one)) not in _MACHINERY}


def _text(value, names):
    if id(type(value)) not in _CONTAINERS and type(value) is not tuple:
        return None
    try:
        return encode(value, names, _MARK)
    except NotCarried:
        return None


def changed(value, before, names):
    """What the program set on a function or class, or changed in it, since `before`: names, sorted."""
    after = marks(value, names)
    return sorted(
        name
        for name in {*before, *after}
        if name not in after or name not in before or after[name][0] is not before[name][0] or after[name][1] != before[name][1]
    )


def import_source(name, value, imports, previous):
    """The source of the import that bound `name` to `value`, or None. `previous` is that of an earlier round."""
    found = imports.get(name)
    if found:
        text, module, attribute = found[-1]
        if module is not None:
            holder = sys.modules.get(module)
            own = holder.__dict__ if type(holder) is types.ModuleType else {}
            if own.get(attribute) is value or sys.modules.get(f"{module}.{attribute}") is value:
                return text
        elif type(value) is types.ModuleType:
            lines = [line for line, *_ in found if " as " not in line] or [text]
            if previous and " as " not in previous and not previous.startswith("from"):
                # `import xml.dom` and `import xml.sax` bind the same name, and both count.
                lines = [*previous.splitlines(), *lines]
            return "\n".join(dict.fromkeys(lines))
    if type(value) is types.ModuleType:
        path = value.__dict__.get("__name__")
        if type(path) is str and sys.modules.get(path) is value and path != "__main__":
            return f"import {path}" if path == name else f"import {path} as {name}"
    return None


def references(source):
    """The global names that a definition uses, sorted, builtins left out."""
    try:
        tables = [symtable.symtable(source, "<definition>", "exec")]
    except (SyntaxError, ValueError, RecursionError):
        return []
    top, names, own = tables[0], set(), set()
    while tables:
        table = tables.pop()
        for symbol in table.get_symbols():
            if table is top:
                if symbol.is_referenced():
                    names.add(symbol.get_name())
                if symbol.is_assigned() or symbol.is_namespace():
                    own.add(symbol.get_name())
            elif symbol.is_global() and not symbol.get_name().startswith("__"):
                names.add(symbol.get_name())
        tables.extend(table.get_children())
    return sorted(name for name in names - own if name not in _BUILTINS and not name.startswith("."))


def _is_late(value, names):
    """True if one of the modules is loaded and has `value` under one of those names."""
    for module, own in names.items():
        loaded = sys.modules.get(module)
        if type(loaded) is types.ModuleType and any(loaded.__dict__.get(name) is value for name in own):
            return True
    return False


def _way(made):
    """How the right side of an assignment makes its value: "call" with the names of `first(…)` or `first.second(…)`, "name",
    "alias", or "" for what defines nothing."""
    kind = type(made)
    if kind is ast.Call:
        function = made.func
        if type(function) is ast.Name:
            return "call", function.id, None
        if type(function) is ast.Attribute and type(function.value) is ast.Name:
            return "call", function.value.id, function.attr
    elif kind is ast.Name:
        return "name", None, None
    elif kind is ast.Subscript or kind is ast.BinOp:
        return "alias", None, None
    return "", None, None


def _called(first, second, namespace):
    """The object that a call's function names, without running anything."""
    found = namespace.get(first)
    if second is None:
        return found
    module = found if found is not None else sys.modules.get(first)
    return module.__dict__.get(second) if type(module) is types.ModuleType else None


def _module_scope(node):
    """The node and all below it that run in the module's own scope."""
    stack = [node]
    while stack:
        inner = stack.pop()
        yield inner
        if isinstance(inner, _scopes()):
            continue
        stack.extend(reversed(list(ast.iter_child_nodes(inner))))
