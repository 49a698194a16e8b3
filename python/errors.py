"""What a failed call raises: one class for each kind of the crate `fimble-toolkit`.

It does not know where an error came from.
"""


class _Failure:
    """What every failed call tells: `kind`, `message`, `hint`, `toolkit`, `operation`. The text is message and hint."""

    kind = "failed"
    message = ""
    hint = None
    toolkit = ""
    operation = ""

    def __init__(self, message="", hint=None, toolkit="", operation="", kind=None):
        super().__init__(message)
        self.message, self.hint, self.toolkit, self.operation = message, hint, toolkit, operation
        if kind is not None:
            self.kind = kind

    def __str__(self):
        return f"{self.message} (hint: {self.hint})" if self.hint else f"{self.message}"


class ToolError(_Failure, Exception):
    """A call failed."""


class UnknownOperation(ToolError):
    """No such toolkit or operation."""

    kind = "unknown_operation"


class InvalidArgument(ToolError, ValueError):
    """A missing, surplus or wrong argument."""

    kind = "invalid_argument"


class NotFound(ToolError, FileNotFoundError, LookupError):
    """The thing asked for is not there. Programs catch it as the error that Python itself would raise."""

    kind = "not_found"


class ToolTimeout(ToolError, TimeoutError):
    """The call's deadline passed."""

    kind = "timeout"


class Unavailable(ToolError, ConnectionError):
    """The system behind the toolkit could not be reached."""

    kind = "unavailable"


class Forbidden(ToolError, PermissionError):
    """The system behind the toolkit refused, or what was asked for is outside of what the toolkit may reach."""

    kind = "forbidden"


class Failed(ToolError):
    """The operation ran and failed."""

    kind = "failed"


class Denied(_Failure, BaseException):
    """Policy, a hook or the user refused. No `Exception`: a program that goes on after any error must not go on after this."""

    kind = "denied"


CLASSES = (ToolError, UnknownOperation, InvalidArgument, NotFound, ToolTimeout, Unavailable, Forbidden, Failed, Denied)
_BY_KIND = {one.kind: one for one in CLASSES if one is not ToolError}


def from_frame(message, toolkit, operation):
    """The exception that an ERROR frame stands for."""
    kind = message.get("kind")
    return _BY_KIND.get(kind, ToolError)(
        message.get("message") or "the call failed", message.get("hint"), toolkit, operation, kind
    )
