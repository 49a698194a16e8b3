"""Limits as exceptions: signals of the host become one in the program, so that its variables and output are kept.

It does not know how much these limits are; the host measures, and kills a program that goes on. Limits of the kernel on
files, threads and processes are errors of the call that meets them; `hint` says in words which one it was.
"""

import _signal
import errno

from _fimble.wire import native


class Limit(KeyboardInterrupt):
    """A limit ended the program.

    A KeyboardInterrupt, because `asyncio` lets that one through its event loop, and `except Exception` does too."""

    limit = "?"
    sentence = "a limit was reached"


class TimeLimit(Limit):
    """The wall time is over."""

    limit = "wall"
    sentence = "the time limit passed; do less in one program, or wait for less"


class CpuLimit(Limit):
    """The CPU time is over."""

    limit = "cpu"
    sentence = "the CPU time limit passed; compute less in one program, or use a faster way"


class CallLimit(Limit):
    """The calls of a round are used up."""

    limit = "calls"
    sentence = "the program made more calls than one program may; ask for more with each call"


class OutputLimit(Limit):
    """Far more was printed than is kept."""

    limit = "output"
    sentence = "the program printed far more than is kept; print a summary"


MEMORY_SENTENCE = "the memory limit was reached; keep less at the same time, e.g. go through the data piece by piece"


_FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
_NO_PROCESS, _NO_NETWORK = "a program cannot start a process; call a toolkit", "a program has no network; call a toolkit"
# Errors of `socket` and `urllib.error`, by name: to import them takes long.
_NETWORK = frozenset(("gaierror", "herror", "URLError"))
_PROCESSES = frozenset(("subprocess", "multiprocessing", "pty"))
_STARTS = frozenset("fork forkpty posix_spawn posix_spawnp system popen execv execve execvp execvpe execl execlp spawnv spawnl".split())
_arguments_of = BaseException.__dict__["args"].__get__
_errno_of = OSError.__dict__["errno"].__get__


def hint(error):
    """Which limit of the jail raised the error, and what to do instead; "" if none did.

    `error` is any exception; the sentence is for the model."""
    mro = type.__dict__["__mro__"].__get__(type(error))
    if OSError in mro:
        number = _errno_of(error)
        if number == errno.EMFILE:
            return f"a program may have {_bound('RLIMIT_NOFILE')} files open at the same time; close each one, e.g. with `with`"
        if number in _FULL:
            # The host takes the soft one away while there is too much.
            megabytes = _bound("RLIMIT_FSIZE", 1) >> 20
            files = f" and {native.SCRATCH_FILES:,} files" if native is not None else ""
            return f"the scratch folder holds {megabytes} MiB{files}; remove what is not needed, or keep data in variables"
        if number in (errno.EPERM, errno.EACCES, errno.EAGAIN):
            return _forbidden(error)
        if type(error).__name__ in _NETWORK:
            return _NO_NETWORK
        if number in (errno.ENOENT, errno.ENOSYS) and _raiser(error)[0].partition(".")[0] in _PROCESSES:
            return _NO_PROCESS
    elif RuntimeError in mro and _arguments_of(error)[:1] == ("can't start new thread",):
        return "no more threads can be started; use a pool of a few, or `asyncio.gather` for calls"
    return ""


def _forbidden(error):
    module, names = _raiser(error)
    if module.partition(".")[0] in _PROCESSES or module in ("__main__", "os") and not _STARTS.isdisjoint(names):
        return _NO_PROCESS
    return _NO_NETWORK if module == "socket" else ""


def _raiser(error):
    """The module of the innermost frame, and the names that its code uses."""
    module, names, step = "", (), error.__traceback__
    while step is not None:
        module, names = step.tb_frame.f_globals.get("__name__"), step.tb_frame.f_code.co_names
        step = step.tb_next
    return (module if type(module) is str else ""), names


def _bound(name, hard=0):
    import resource

    return resource.getrlimit(getattr(resource, name))[hard]


_OWN_SIGNALS = (_signal.SIGUSR1, _signal.SIGXCPU)
_OTHER_SIGNALS = sorted(set(_signal.valid_signals()) - {*_OWN_SIGNALS, _signal.SIGKILL, _signal.SIGSTOP})


def end_handlers():
    """The program's own handlers of signals end with it. For the main thread."""
    for number in _OTHER_SIGNALS:
        handler = _signal.getsignal(number)
        if callable(handler) and handler is not _signal.default_int_handler:
            _signal.signal(number, _signal.SIG_IGN)


class Guard:
    """Says when a limit may be raised: only while the program runs, and never within a `with guard:` block."""

    def __init__(self):
        self.armed = False
        # Called without arguments for a limit that comes after the program; never within a `with guard:` block.
        self.too_late = lambda: None
        self._depth = 0
        self._waiting = None

    def __enter__(self):
        self._depth += 1

    def __exit__(self, *_):
        self._depth -= 1
        if self._waiting is not None and not self._depth and self.armed:
            waiting, self._waiting = self._waiting, None
            raise waiting()

    def limit(self, kind):
        """Raises `kind` now, or as soon as it may be."""
        if self._depth:
            self._waiting = kind
            return
        if self.armed:
            raise kind()
        self.too_late()

    def listen(self):
        """Makes the host's signals into limits. For the main thread."""
        _signal.signal(_signal.SIGUSR1, lambda _number, _frame: self.limit(TimeLimit))
        _signal.signal(_signal.SIGXCPU, lambda _number, _frame: self.limit(CpuLimit))
