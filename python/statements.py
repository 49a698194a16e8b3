"""A program as its top-level statements, and how one of them runs.

Coroutines are driven by hand here: every reply is then read in place. With `asyncio` in sight, `loops` has a driver with
an event loop, so that `asyncio.create_task` works everywhere and `asyncio.run` too. It does not know what a statement
leaves behind.
"""

import ast
import types

from _fimble.pending import Pending

_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
# The flag of a code object that makes a coroutine, `CO_COROUTINE` of `inspect`, which takes long to import.
COROUTINE = 0x80


class Statement:
    """One top-level statement: its node, its code, and whether it has a value."""

    __slots__ = ("node", "code", "has_value")

    def __init__(self, node, code, has_value):
        self.node, self.code, self.has_value = node, code, has_value


def parse(source, file_name):
    """The statements. Raises SyntaxError, ValueError, RecursionError or MemoryError for what does not compile."""
    tree = compile(source, file_name, "exec", ast.PyCF_ONLY_AST | _FLAGS, dont_inherit=True)
    statements, flags = [], _FLAGS
    for node in tree.body:
        if type(node) is ast.ImportFrom and node.module == "__future__":
            # Holds for all that follows, as if it were one file.
            for alias in node.names:
                flags |= getattr(getattr(__import__("__future__"), alias.name, None), "compiler_flag", 0)
        has_value = type(node) is ast.Expr
        unit = ast.Expression(node.value) if has_value else ast.Module([node], [])
        code = compile(unit, file_name, "eval" if has_value else "exec", flags, dont_inherit=True)
        statements.append(Statement(node, code, has_value))
    return statements


class Driver:
    """Runs statements by hand, without an event loop."""

    def run(self, statement, namespace):
        """Runs the statement to its end and returns its value, None if it has none."""
        value = eval(statement.code, namespace)
        if statement.code.co_flags & COROUTINE:
            value = self.drive(value)
        if not statement.has_value:
            return None
        # Written without `await` and not kept: nothing else could ever wait for it.
        if type(value) is Pending:
            return value.result()
        if type(value) is types.CoroutineType:
            return self.drive(value)
        return value

    def drive(self, coroutine):
        """Runs a coroutine to its end."""
        try:
            coroutine.send(None)
        except StopIteration as stop:
            return stop.value
        coroutine.close()
        raise RuntimeError("it waits for something that nothing can bring about")

    def finish(self):
        """Ends what still runs; returns how it was called."""
        return []

    def close(self):
        """Leaves nothing set."""
