#: try, except, else, finally
def attempt(f):
    try:
        value = f()
    except (ValueError, KeyError) as error:
        return f"caught {type(error).__name__}: {error}"
    except Exception:
        return "other"
    else:
        return f"fine {value}"
    finally:
        print("finally", end=" ")
print(attempt(lambda: 1), attempt(lambda: int("x")), attempt(lambda: {}["k"]), attempt(lambda: 1 / 0), sep="\n")
#: exceptions of its own
class AppError(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code
class NotFound(AppError):
    def __init__(self, what):
        super().__init__(404, f"{what} not found")
    def __str__(self):
        return f"[{self.code}] {super().__str__()}"
try:
    raise NotFound("page")
except AppError as error:
    print(error, error.code, error.args, isinstance(error, NotFound), repr(error))
#: chained exceptions
try:
    try:
        {}["missing"]
    except KeyError as error:
        raise RuntimeError("lookup failed") from error
except RuntimeError as error:
    print(repr(error.__cause__), error.__suppress_context__)
try:
    try:
        1 / 0
    except ZeroDivisionError:
        raise ValueError("while handling") from None
except ValueError as error:
    print(error.__cause__, repr(error.__context__))
#: groups of exceptions
def work():
    raise ExceptionGroup("many", [ValueError("a"), TypeError("b"), ExceptionGroup("inner", [ValueError("c"), OSError(2, "d")])])
try:
    work()
except* ValueError as group:
    print("values", [str(e) for e in group.exceptions], group.message)
except* TypeError as group:
    print("types", group.exceptions)
except* OSError as group:
    print("os", group.exceptions[0].exceptions[0].errno)
group = ExceptionGroup("g", [ValueError(1), KeyError(2)])
print(group.subgroup(KeyError), group.split(ValueError))
#: notes
try:
    try:
        int("abc")
    except ValueError as error:
        error.add_note("while reading the first line")
        raise
except ValueError as error:
    print(error, error.__notes__)
#: assertions
def mean(values):
    assert values, "no values"
    return sum(values) / len(values)
try:
    mean([])
except AssertionError as error:
    print("assertion:", error)
print(mean([1, 2]), __debug__)
#: messages of common mistakes
import math
items, number = [1], 1
mistakes = [lambda: undefined, lambda: "a" + 1, lambda: None.x, lambda: items[1.5], lambda: len(5), lambda: "abc".nothing(), lambda: int([]),
            lambda: math.sqrt(-1), lambda: {}[()], lambda: number(), lambda: next(iter([])), lambda: [].index(1), lambda: sorted([1, "a"]), lambda: float("x"),
            lambda: chr(-1), lambda: "x".join([1]), lambda: max([]), lambda: open("/nowhere/at/all"), lambda: 5 in 5, lambda: bytes([300]), lambda: setattr(5, "x", 1)]
for mistake in mistakes:
    try:
        mistake()
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
#: context managers
class Managed:
    def __init__(self, name, swallow=False):
        self.name, self.swallow = name, swallow
    def __enter__(self):
        print("enter", self.name)
        return self
    def __exit__(self, kind, value, trace):
        print("exit", self.name, kind and kind.__name__)
        return self.swallow
with Managed("a") as a, Managed("b", swallow=True) as b:
    raise ValueError("swallowed by b")
with (Managed("c"), Managed("d")):
    print("inside")
#: contextlib
import contextlib
@contextlib.contextmanager
def tag(name):
    print(f"<{name}>")
    try:
        yield name.upper()
    except KeyError as error:
        print("handled", error)
    finally:
        print(f"</{name}>")
with tag("p") as inner:
    print(inner)
    raise KeyError("k")
with contextlib.suppress(ZeroDivisionError):
    1 / 0
with contextlib.ExitStack() as stack:
    for n in range(3):
        stack.callback(print, "callback", n)
    stack.enter_context(tag("stacked"))
@tag("decorated")
def f():
    print("body")
f()
with contextlib.closing(type("X", (), {"close": lambda self: print("closed")})()), contextlib.nullcontext(5) as five:
    print(five)
#: finally and return
def f():
    try:
        return "try"
    finally:
        print("cleaning")
def g():
    for n in range(3):
        try:
            if n == 1:
                continue
            print("n", n)
        finally:
            print("after", n)
    return "end"
print(f(), g())
#: traces read by the program
import sys
import traceback
def inner():
    raise ValueError("deep")
def outer():
    inner()
try:
    outer()
except ValueError:
    kind, value, trace = sys.exc_info()
    print(kind.__name__, [(f.name, f.line) for f in traceback.extract_tb(trace)][1:])
    print(traceback.format_exception_only(kind, value), trace.tb_next.tb_frame.f_code.co_name)
    print(traceback.format_exc().splitlines()[-1])
#: warnings
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    warnings.warn("old", DeprecationWarning)
    warnings.warn("careful")
print([(w.category.__name__, str(w.message)) for w in caught])
with warnings.catch_warnings():
    warnings.simplefilter("error")
    try:
        warnings.warn("now an error")
    except UserWarning as error:
        print(error)
#: logging
import io
import logging
stream = io.StringIO()
logger = logging.getLogger("app.part")
handler = logging.StreamHandler(stream)
handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
logger.addHandler(handler)
logger.setLevel(logging.INFO)
logger.info("hello %s", "ada")
logger.debug("hidden")
try:
    1 / 0
except ZeroDivisionError:
    logger.exception("failed")
print(stream.getvalue().splitlines()[:3], stream.getvalue().splitlines()[-1], logger.isEnabledFor(10))
#: leaving early
import sys
print("before")
if True:
    sys.exit(0)
print("never")
#: retries
import itertools
failures = itertools.count()
def flaky():
    if next(failures) < 2:
        raise ConnectionError("try again")
    return "ok"
def retry(f, times):
    for attempt in range(1, times + 1):
        try:
            return f()
        except ConnectionError as error:
            print(f"attempt {attempt}: {error}")
    raise TimeoutError("gave up")
print(retry(flaky, 5))
