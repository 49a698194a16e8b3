items = await ops_toolkit.disks()
# ---
operations = ops_toolkit
items = await operations.disks()
# ---
async def look():
    found = await ops_toolkit.disks()
    return found

items = await look()
# ---
import asyncio
items, cpu = await asyncio.gather(ops_toolkit.disks(), host_toolkit.cpu())
# ---
try:
    items = await ops_toolkit.disks()
except ToolError as error:
    await system_toolkit.send_message(f"no disks: {error}")
    items = []
# ---
import asyncio
task = asyncio.create_task(ops_toolkit.disks())
cpu = await host_toolkit.cpu()
items = await task
# ---
class Machine:
    def __init__(self, toolkit):
        self.toolkit = toolkit

    async def disks(self):
        return [disk for disk in await self.toolkit.disks() if disk.mount]

items = await Machine(ops_toolkit).disks()
# ---
if not (items := await ops_toolkit.disks()):
    await system_toolkit.send_message("there are no disks")
# ---
def look():
    return ops_toolkit.disks().result()

items = look()
# ---
match await ops_toolkit.disks():
    case []:
        items = []
    case [*items]:
        pass
# ---
items = [*(await ops_toolkit.disks()), *[]]
# ===
for item in items:
    print(item.mount, item["used_percent"])
# ---
for item in sorted(items, key=lambda item: item.used_percent, reverse=True)[:2]:
    await system_toolkit.send_message(f"{item.mount:<10}{item.used_percent:>6.1f} %")
# ---
used = {item.mount: item.used_percent for item in items if item.used_percent > 10}
print(used)
# ---
worst = max(items, key=lambda item: item["used_percent"], default=None)
print(worst.mount if worst else "none")
# ---
await system_toolkit.send_message("\n".join(f"- {item.mount}: {item.used_percent} %" for item in items) or "nothing")
# ---
groups = {}
for item in items:
    groups.setdefault(item.used_percent > 50, []).append(item.mount)
print(groups.get(True, []), len(groups))
# ---
print(sum(item.used_percent for item in items) / len(items) if items else 0.0)
# ---
mounts = list(map(lambda item: item.mount, filter(lambda item: item.used_percent > 50, items)))
print(mounts, len(mounts))
# ---
for number, item in enumerate(items, start=1):
    print(f"{number}. {item.mount}")
else:
    print("that is all")
# ---
from dataclasses import dataclass

@dataclass
class Row:
    name: str
    used: float

    def __post_init__(self):
        self.used = round(self.used)

rows = [Row(item.mount, item.used_percent) for item in items]
print(rows)
# ---
def over(bound):
    return [item.mount for item in items if item.used_percent > bound]

print(over(90), over(bound=10))
# ---
import json
print(json.dumps([{"mount": item.mount, **item} for item in items]))
# ---
rest = list(items)
while rest:
    item = rest.pop()
    if item.used_percent < 0:
        continue
    print(item.mount)
# ---
first, *others = items
print(first.mount, [item["mount"] for item in others])
# ---
def rows_of():
    for item in items:
        yield item.mount, item.used_percent

print(dict(rows_of()))
