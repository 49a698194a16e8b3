for number in range(10):
    if number % 2:
        continue
    if number > 6:
        break
else:
    print("never broken")
print(number)
# ---
attempt = 0
while attempt < 3:
    attempt += 1
    state = await host_toolkit.service("nginx")
    if state["active"]:
        break
else:
    await system_toolkit.send_message("nginx is down")
# ---
try:
    value = int("x")
except (ValueError, TypeError) as error:
    value = None
    print(type(error).__name__)
else:
    print("fine")
finally:
    print("done", value)
# ---
def close(resource):
    resource["open"] = False

resource = {"open": True}
try:
    text = await files_toolkit.read("README.md")
finally:
    close(resource)
print(resource, len(text))
# ---
try:
    try:
        await files_toolkit.read("absent.txt")
    except NotFound as error:
        raise RuntimeError("nothing to read") from error
except RuntimeError as error:
    print(error, "because", error.__cause__)
# ---
try:
    raise ExceptionGroup("several", [ValueError("a"), KeyError("b")])
except* ValueError as group:
    print(len(group.exceptions))
except* KeyError:
    print("a key")
# ---
match (await ops_toolkit.disks())[0]:
    case {"mount": "/", "used_percent": float() | int() as used} if used > 90:
        print("root is nearly full", used)
    case {"mount": mount, **rest}:
        print(mount, rest)
# ---
command = ["copy", "a", "b"]
match command:
    case ["copy", source, target]:
        print(source, "to", target)
    case ["delete", *files]:
        print(files)
    case [single] | (single, _, _, _):
        print(single)
    case _:
        print("unknown")
# ---
from dataclasses import dataclass

@dataclass
class Move:
    x: int
    y: int

match Move(0, 3):
    case Move(x=0, y=y):
        print("up", y)
    case Move(x, y):
        print(x, y)
# ---
match 3:
    case 0 | 1:
        kind = "small"
    case int(n) if n < 10:
        kind = f"medium {n}"
    case None:
        kind = "nothing"
print(kind)
# ---
if (commits := await git_toolkit.log(limit=1)) and (newest := commits[0]):
    print(newest.sha)
# ---
lines = iter(["a", "b", ""])
while line := next(lines):
    print(line)
# ---
import asyncio

async def slow():
    await asyncio.sleep(0)
    return 1

try:
    async with asyncio.timeout(5):
        print(await slow())
except TimeoutError:
    print("too slow")
# ---
x = y = z = 0
x += 1
y -= 1
z |= 4
print(x, y, z, x if x > y else y)
# ---
assert await git_toolkit.branches(), "there are no branches"
if not (1 < 2 <= 2 != 3):
    raise SystemExit("arithmetic is broken")
# ---
a, *middle, (b, [c, *d]) = 1, 2, 3, (4, [5, 6, 7])
print(a, middle, b, c, d)
# ---
values = [3, 1, 2]
values[0], values[-1] = values[-1], values[0]
values[1:1] = [9, 9]
del values[0]
print(values, values[::-1])
# ---
for index, (name, size) in enumerate(zip(["a", "b"], [1, 2]), start=1):
    print(index, name, size)
# ---
found = None
for disk in await ops_toolkit.disks():
    if disk.used_percent > 80:
        found = disk
        break
print(found.mount if found is not None else "none over 80 %")
# ---
with open("/tmp/fimble-corpus.txt", "w") as output, open("/dev/null") as nothing:
    print("a line", file=output)
    output.write(nothing.read())
with open("/tmp/fimble-corpus.txt") as text:
    print(text.read().strip())
# ---
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    warnings.warn("not shown")
# ---
def search(rows, wanted):
    for row in rows:
        for cell in row:
            if cell == wanted:
                return row
        else:
            continue
    return None

print(search([[1, 2], [3, 4]], 3))
# ---
numbers = [1, 2, 3]
while numbers:
    number = numbers.pop()
    if number == 2:
        continue
    print(number)
# ---
try:
    import tomllib
except ImportError:
    tomllib = None
print(tomllib is not None)
# ---
try:
    import requests
except ImportError:
    requests = None
print("without requests" if requests is None else "with requests")
# ---
try:
    import psutil
except ModuleNotFoundError:
    cpu = await host_toolkit.cpu()
else:
    cpu = psutil.cpu_percent()
print(cpu is not None)
# ---
class Stop(Exception):
    pass

try:
    for row in range(3):
        for column in range(3):
            if row * column == 2:
                raise Stop
except Stop:
    print(row, column)
# ---
flags = 0b0101
print(flags & 1, flags | 2, flags ^ 4, ~flags, flags << 1, flags >> 1, 7 // 2, 7 % 3, 2 ** 5, -7 // 2)
# ---
state = await host_toolkit.service("redis")
message = "up" if state.active else "down" if state.name else "unknown"
await system_toolkit.send_message(f"redis is {message}")
# ---
for attempt in range(3):
    try:
        result = await host_toolkit.restart("nginx", wait_s=0.5)
    except Timeout:
        await system_toolkit.sleep(0)
    except (Denied, Unavailable) as error:
        print(error)
        break
    else:
        break
# ---
try:
    pass
finally:
    print("always")
# ---
result = None
for name in ("nginx", "redis"):
    match await host_toolkit.service(name):
        case {"active": False, "name": result}:
            break
        case _:
            pass
print(result)
# ---
import sys
if len(sys.argv) > 100:
    sys.exit("too many arguments")
print("fine")
# ---
async def until_active(name, tries=2):
    while tries:
        if (await host_toolkit.service(name)).active:
            return True
        tries -= 1
    return False

print(await until_active("nginx") and not await until_active("redis"))
