def greet(name, greeting="Hello"):
    return f"{greeting}, {name}!"

await system_toolkit.send_message(greet("Ada", greeting="Good day"))
# ---
def total(*numbers, start=0, **named):
    return start + sum(numbers) + sum(named.values())

print(total(1, 2, *[3, 4], start=10, extra=5, **{"more": 6}))
# ---
def make_counter(step):
    value = 0

    def increase():
        nonlocal value
        value += step
        return value

    return increase

by_two = make_counter(2)
by_two()
print(by_two())
# ---
import functools

def logged(function):
    @functools.wraps(function)
    async def wrapper(*args, **kwargs):
        print("calling", function.__name__)
        return await function(*args, **kwargs)
    return wrapper

@logged
async def newest(number):
    return await git_toolkit.log(limit=number)

print(len(await newest(2)))
# ---
import functools

def retry(times):
    def decorate(function):
        @functools.wraps(function)
        async def wrapper(*args, **kwargs):
            for attempt in range(times):
                try:
                    return await function(*args, **kwargs)
                except ToolError as error:
                    last = error
            raise last
        return wrapper
    return decorate

@retry(times=3)
async def state_of(name):
    return await host_toolkit.service(name)

print((await state_of("nginx")).active)
# ---
import functools as tools

@tools.lru_cache(maxsize=None)
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

print(fibonacci(20), tools.reduce(lambda left, right: left + right, [1, 2, 3]))
# ---
from functools import lru_cache, partial

@lru_cache
def square(number):
    return number * number

double_then = partial(map, lambda value: value * 2)
print(square(4), list(double_then([1, 2])))
# ---
def chunks(items, size):
    for start in range(0, len(items), size):
        yield items[start:start + size]

for chunk in chunks(await git_toolkit.log(limit=5), 2):
    print([commit.subject for commit in chunk])
# ---
def walk(tree, depth=0):
    yield depth, tree["name"]
    for child in tree.get("children", []):
        yield from walk(child, depth + 1)

tree = {"name": "a", "children": [{"name": "b"}, {"name": "c", "children": [{"name": "d"}]}]}
for depth, name in walk(tree):
    print("  " * depth + name)
# ---
async def services_of(names):
    for name in names:
        yield name, await host_toolkit.service(name)

active = [name async for name, state in services_of(["nginx", "redis"]) if state.active]
print(active)
# ---
def stream(names):
    return (await host_toolkit.service(name) for name in names)

async for state in stream(["nginx"]):
    print(state.active)
# ---
def averager():
    total, number = 0.0, 0
    average = None
    while True:
        value = yield average
        total += value
        number += 1
        average = total / number

average = averager()
next(average)
print(average.send(10), average.send(20))
# ---
compose = lambda *functions: lambda value: [value := function(value) for function in functions][-1]
print(compose(str.strip, str.upper)("  x "))
# ---
def apply(function, /, *args, **kwargs):
    return function(*args, **kwargs)

def report_line(name, *, width=10):
    return f"{name:<{width}}|"

print(apply(report_line, "disk", width=6))
# ---
def outer():
    def inner(value):
        if value == 0:
            return []
        return [value] + inner(value - 1)
    return inner(3)

print(outer())
# ---
def classify(value: int | str | None, *, strict: bool = False) -> str:
    """Names the kind of a value."""
    if value is None:
        return "nothing"
    kind: str = type(value).__name__
    return kind if strict else kind[:1]

print(classify(3), classify("x", strict=True), classify(None))
# ---
counter = 0

def bump():
    global counter
    counter += 1
    return counter

print([bump() for _ in range(3)])
# ---
async def read_all():
    global git_toolkit
    return await git_toolkit.branches()

print(await read_all())
# ---
def fallback(primary, secondary=lambda: "none"):
    return primary() or secondary()

print(fallback(lambda: "", lambda: "second"))
# ---
handlers = {}

def handles(name):
    def register(function):
        handlers[name] = function
        return function
    return register

@handles("disk")
async def about_disk():
    return len(await ops_toolkit.disks())

@handles("port")
async def about_port():
    return len((await ops_toolkit.ports()).ports)

for name, handler in sorted(handlers.items()):
    print(name, await handler())
# ---
def first_match(items, predicate, default=None):
    return next((item for item in items if predicate(item)), default)

disk = first_match(await ops_toolkit.disks(), lambda one: one.used_percent > 50)
print(disk.mount if disk else "no disk")
# ---
async def gather_named(**calls):
    import asyncio
    results = await asyncio.gather(*calls.values())
    return dict(zip(calls, results))

both = await gather_named(cpu=host_toolkit.cpu(), memory=host_toolkit.memory())
print(sorted(both))
# ---
def curry(function, *held):
    def call(*rest):
        return function(*held, *rest)
    return call

print(curry(max, 3)(1, 7))
# ---
def input(prompt=""):
    return "answer to " + prompt

print(input("a question"))
# ---
def help():
    print("usage: give a name")

help()
# ---
def sum(rows):
    result = 0
    for row in rows:
        result += row
    return result

print(sum([1, 2]))
# ---
def list(path):
    return [path]

print(list("a"))
del list
print(list("ab"))
# ---
def ensure(value, message="missing"):
    if not value:
        raise LookupError(message)
    return value

try:
    ensure("", "no name")
except LookupError as error:
    print(f"{error!s:>10}")
# ---
def parse(line):
    key, _, value = line.partition("=")
    return key.strip(), value.strip()

pairs = dict(map(parse, ["a = 1", "b=2"]))
print(pairs)
# ---
import contextlib

@contextlib.contextmanager
def step(name):
    print("begin", name)
    try:
        yield name.upper()
    finally:
        print("end", name)

with step("one") as one, step("two") as two:
    print(one, two)
# ---
import contextlib

@contextlib.asynccontextmanager
async def watched(name):
    before = await host_toolkit.service(name)
    yield before
    after = await host_toolkit.service(name)
    print(before.active, after.active)

async with watched("nginx") as state:
    print(state.name)
# ---
def sync_helper(name):
    return host_toolkit.service(name).result().active

print([sync_helper(name) for name in ("nginx", "redis")])
# ---
def later(name):
    return host_toolkit.service(name)

print((await later("nginx")).name)
# ---
def variadic(first, second=2, *rest, key=None, **others):
    return (first, second, rest, key, others)

print(variadic(1), variadic(1, 3, 4, key="k", z=0))
