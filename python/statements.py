"""A program as its top-level statements, and how one of them runs.

Coroutines are driven by hand here: every reply is then read in place. Once a program reached `asyncio`, `loops` has an
event loop for it, so that `asyncio.create_task` works everywhere and `asyncio.run` too. It does not know what a
statement leaves behind.
"""

import contextvars
import types
import warnings

from _fimble.late_types import Module
from _fimble.pending import Pending
from _fimble.wire import native

ast = Module("ast")
# What would take long to import: `PyCF_ALLOW_TOP_LEVEL_AWAIT` and `PyCF_ONLY_AST` of `ast`, and of `inspect` the flag of a
# code object that makes a coroutine, `CO_COROUTINE`.
FLAGS, ONLY_TREE = 0x2000, 0x400
COROUTINE = 0x80


class Statement:
    """One top-level statement: its code, whether it has a value, its line, and what `definitions` knows of it already.

    `bindings` are tuples of what it may have defined, or None if its `node` has to be asked; `stores` is a dict of the names it
    writes to their lines, or None."""

    __slots__ = ("code", "has_value", "line", "bindings", "stores", "_text", "_node")

    def __init__(self, code, has_value, line, node=None, bindings=None, stores=None, text=""):
        self.code, self.has_value, self.line = code, has_value, line
        self.bindings, self.stores, self._node, self._text = bindings, stores, node, text

    @property
    def node(self):
        """Its tree."""
        if self._node is None:
            with warnings.catch_warnings():
                # They were given when its code was made.
                warnings.simplefilter("ignore")
                self._node = _tree(self._text, self.code.co_filename, FLAGS).body[0]
        return self._node


def _tree(source, file_name, flags):
    return compile(source, file_name, "exec", ONLY_TREE | flags, dont_inherit=True)


def parse(source, file_name):
    """The statements. Raises SyntaxError, ValueError, RecursionError or MemoryError for what does not compile."""
    pieces = native.statements(source) if native is not None else None
    if pieces is not None:
        show, warned = warnings.showwarning, []
        warnings.showwarning = lambda *warning: warned.append(warning)
        try:
            statements = [_from_text(file_name, *piece) for piece in pieces]
        except Exception:
            # The whole knows best what is wrong with it.
            statements = None
        finally:
            warnings.showwarning = show
        if statements is not None:
            for warning in warned:
                show(*warning)
            return statements
    tree = _tree(source, file_name, FLAGS)
    statements, flags = [], FLAGS
    for node in tree.body:
        if type(node) is ast.ImportFrom and node.module == "__future__":
            # Holds for all that follows, as if it were one file.
            for alias in node.names:
                flags |= getattr(getattr(__import__("__future__"), alias.name, None), "compiler_flag", 0)
        statements.append(_from_node(file_name, node, flags))
    return statements


def _from_text(file_name, text, line, has_value, bindings, stores):
    if bindings is None:
        node = _tree(text, file_name, FLAGS).body[0]
        return Statement(_code(file_name, node, FLAGS), has_value, line, node, bindings, stores)
    code = compile(text, file_name, "eval" if has_value else "exec", FLAGS, dont_inherit=True)
    return Statement(code, has_value, line, None, bindings, stores, text)


def _from_node(file_name, node, flags):
    return Statement(_code(file_name, node, flags), type(node) is ast.Expr, node.lineno, node)


def _code(file_name, node, flags):
    if type(node) is ast.Expr:
        return compile(ast.Expression(node.value), file_name, "eval", flags, dont_inherit=True)
    return compile(ast.Module([node], []), file_name, "exec", flags, dont_inherit=True)


class Driver:
    """Runs statements, all in one context. Coroutines are driven by hand until an event loop is awake.

    `make_loop` takes this driver and returns a `loops.Program`. It may be called at any time, by `meet_loop`."""

    def __init__(self, make_loop):
        self._make_loop, self.loop = make_loop, None
        # True while a coroutine is driven by hand.
        self.by_hand = False
        self.context = contextvars.copy_context()

    def meet_loop(self):
        """The program's event loop, made now if it has none. For the main thread."""
        if self.loop is None:
            self.loop = self._make_loop(self)
        return self.loop

    def run(self, statement, namespace):
        """Runs the statement to its end and returns its value, None if it has none."""
        value = self.context.run(eval, statement.code, namespace)
        if statement.code.co_flags & COROUTINE:
            value = self._drive(value)
        if not statement.has_value:
            return None
        # Written without `await` and not kept: nothing else could ever wait for it.
        if type(value) is Pending or type(value) is types.CoroutineType:
            return self._drive(value)
        return value

    def _drive(self, coroutine):
        if self.loop is not None and self.loop.awake:
            return self.loop.drive(coroutine)
        self.by_hand = True
        try:
            waits_for = self.context.run(coroutine.send, None)
        except StopIteration as stop:
            return stop.value
        finally:
            self.by_hand = False
            if self.loop is not None:
                self.loop.leave()
        return self.meet_loop().go_on(coroutine, waits_for)

    def finish(self):
        """Ends what still runs; returns sentences about it."""
        return self.loop.finish() if self.loop is not None else []

    def close(self):
        """Leaves nothing set."""
        if self.loop is not None:
            self.loop.close()
