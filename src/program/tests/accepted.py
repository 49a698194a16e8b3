commits = await git_toolkit.log(limit=5)
for commit in commits:
    print(commit["sha"], commit.subject)
# ---
await system_toolkit.send_message("Hello")
# ---
branches = await git_toolkit.branches()
await system_toolkit.send_message(f"There are {len(branches)} branches: {', '.join(branches)}")
# ---
import json
print(json.dumps({"a": [1, 2, {"b": None}]}, indent=2))
# ---
from collections import Counter, defaultdict
counts = Counter(commit.author for commit in await git_toolkit.log(100))
for author, number in counts.most_common(3):
    print(f"{author}: {number}")
# ---
import asyncio
cpu, memory = await asyncio.gather(host_toolkit.cpu(), host_toolkit.memory())
print(cpu, memory)
# ---
import asyncio
tasks = [host_toolkit.service(name) for name in ("nginx", "redis")]
results = await asyncio.gather(*tasks, return_exceptions=True)
# ---
import asyncio
task = asyncio.create_task(host_toolkit.cpu())
memory = await host_toolkit.memory()
cpu = await task
# ---
import asyncio
async with asyncio.TaskGroup() as group:
    one = group.create_task(host_toolkit.cpu())
    two = group.create_task(host_toolkit.memory())
print(one.result(), two.result())
# ---
import asyncio
pending = []
for name in ["a", "b"]:
    pending.append(host_toolkit.service(name))
for each in asyncio.as_completed(pending):
    print(await each)
# ---
import asyncio
disks = await asyncio.wait_for(host_toolkit.disks(), timeout=5)
# ---
promise = host_toolkit.cpu()
memory = await host_toolkit.memory()
print(await promise, memory)
# ---
async def check(name):
    state = await host_toolkit.service(name)
    return state["active"]

print(await check("nginx"))
# ---
def mean(values):
    return sum(values) / len(values) if values else 0.0

print(mean([1, 2, 3]))
# ---
class Counter:
    def __init__(self):
        self.total = 0

    def add(self, number):
        self.total += number
        return self

print(Counter().add(2).total)
# ---
from dataclasses import dataclass, field

@dataclass
class Row:
    name: str
    values: list[int] = field(default_factory=list)

rows = [Row("a", [1]), Row("b")]
# ---
try:
    state = await host_toolkit.service("nginx")
except NotFound as error:
    print("no such service", error)
else:
    print(state)
finally:
    print("done")
# ---
try:
    text = await files_toolkit.read("README.md")
except Exception as error:
    await system_toolkit.send_message(f"I could not read it: {error}")
# ---
with open("/tmp/x", "w") as file:
    file.write("x")
# ---
answer = await system_toolkit.ask_user("Which one?", choices=["a", "b"])
if answer == "a":
    await host_toolkit.restart("a")
elif answer == "b":
    await host_toolkit.restart(name="b", wait_s=1)
else:
    print("nothing")
# ---
while True:
    state = await host_toolkit.service("nginx")
    if state.active:
        break
    await system_toolkit.sleep(1)
# ---
for number in range(3):
    if number == 1:
        continue
    print(number)
else:
    print("end")
# ---
matrix = [[row * column for column in range(3)] for row in range(3)]
flat = [cell for row in matrix for cell in row if cell]
# ---
pairs = {name: len(name) for name in ["a", "bb"]}
names = {name.upper() for name in pairs}
total = sum(length for length in pairs.values())
# ---
first, *rest = [1, 2, 3]
(a, b), c = (1, 2), 3
a, b = b, a
# ---
if (size := len(rows)) > 10:
    print(size)
# ---
match await git_toolkit.status():
    case {"branch": branch, **rest}:
        print(branch, rest)
    case [first, *others]:
        print(first, others)
    case str() as text if text:
        print(text)
    case _:
        print("unknown")
# ---
text = """Report
  of today
"""
await system_toolkit.send_message(text)
# ---
query = '''
SELECT *
FROM t
'''
print(query.strip())
# ---
message = (
    "one "
    "two "
    f"three {1 + 1}"
)
print(message)
# ---
total = 1 + \
    2
print(total)
# ---
import re
pattern = re.compile(r"(\d+)\s+(\w+)")
print([match.group(1) for line in ["1 a"] if (match := pattern.match(line))])
# ---
from datetime import datetime, timedelta, timezone
since = datetime.now(timezone.utc) - timedelta(days=7)
print(since.isoformat())
# ---
import datetime
print(datetime.datetime.now().strftime("%Y-%m-%d"))
# ---
rows = sorted(await host_toolkit.processes(sort="memory", limit=5), key=lambda row: row["memory"], reverse=True)
print("\n".join(f"{row['name']:<20}{row['memory']:>10.1f}" for row in rows))
# ---
big = [disk for disk in await host_toolkit.disks() if disk["used_percent"] > 80]
# ---
found = await files_toolkit.search("TODO", paths=["src", "tests"])
print(f"{len(found)} matches" if found else "none")
# ---
found = await files_toolkit.search(pattern=r"fn \w+")
print({match["path"] for match in found})
# ---
arguments = {"limit": 3}
commits = await git_toolkit.log(**arguments)
# ---
position = ["README.md", 1, 20]
print(await files_toolkit.read(*position))
# ---
print(await files_toolkit.read("README.md", 1, end=None))
# ---
path = "src"
listed = await files_toolkit.list(path)
print(listed[0]["name"] if listed else None)
# ---
services.append({"name": "nginx"})
print(count(services))
# ---
print(await fetch("x"))
# ---
del rows
# ---
total = 0
def add(number):
    global total
    total += number
add(2)
# ---
def outer():
    state = 0
    def inner():
        nonlocal state
        state += 1
        return state
    return inner
print(outer()())
# ---
def numbers():
    yield 1
    yield from [2, 3]
print(list(numbers()))
# ---
async def lines(path):
    for line in (await files_toolkit.read(path)).splitlines():
        yield line

async for line in lines("README.md"):
    print(line)
# ---
sizes = [len(line) async for line in aiter([])] if False else []
# ---
assert isinstance(services, list), "services must be a list"
# ---
# raises ValueError
raise ValueError("not now")
# ---
x: int = 1
y: "list[str]" = []
# ---
print(*[1, 2], sep=", ", end="\n")
# ---
operations = {"log": git_toolkit.log, "branches": git_toolkit.branches}
print(await operations["branches"]())
# ---
toolkit = git_toolkit
print(await toolkit.branches())
# ---
def describe(git_toolkit):
    return git_toolkit
# ---
print((await git_toolkit.log(limit=1))[0]["sha"])
# ---
subject = (await git_toolkit.show("HEAD")).subject
# ---
lookup = lambda key, default=None: {"a": 1}.get(key, default)
print(lookup("a"))
# ---
# first look, then act
status = await git_toolkit.status()  # branch and files

# then tell
print(status)
# ---
import math, statistics as stats
print(math.floor(stats.mean([1, 2])), stats.pstdev([1, 2]))
# ---
from pathlib import PurePosixPath
print(PurePosixPath("/a/b").name)
# ---
import contextlib
with contextlib.suppress(KeyError):
    {}["a"]
# ---
import itertools
for key, group in itertools.groupby(sorted(["b", "a", "a"])):
    print(key, len(list(group)))
# ---
value = rows[0] if rows else None
value
# ---
print(f"{'nested ' + str(1)!r:>{10}}")
# ---
now = await system_toolkit.now()
await system_toolkit.send_message("It is " + now + ".")
# ---
data = b"\x00\x01"
print(data.hex(), 1_000, 0x1f, 1e3, 2j)
# ---
@lambda function: function
def decorated(a, /, b, *args, c=1, **kwargs):
    "Say."
    return a, b, args, c, kwargs
# ---
try:
    await host_toolkit.restart("nginx")
except (ToolError, TimeoutError) as error:
    print(type(error).__name__, error)
