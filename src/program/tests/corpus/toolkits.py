git = git_toolkit
for commit in await git.log(limit=2):
    print(commit.sha)
# ---
log, branches = git_toolkit.log, git_toolkit.branches
print(len(await log(1)), await branches())
# ---
import asyncio
limit_of_calls = asyncio.Semaphore(2)

async def state(name):
    async with limit_of_calls:
        return await host_toolkit.service(name)

states = await asyncio.gather(*(state(name) for name in ("nginx", "redis", "cron")))
print([one.active for one in states])
# ---
import asyncio
results = await asyncio.gather(git_toolkit.branches(), ops_toolkit.disks(), return_exceptions=True)
for result in results:
    print("failed" if isinstance(result, Exception) else len(result))
# ---
import asyncio
names = ["nginx", "redis"]
tasks = {name: asyncio.create_task(host_toolkit.service(name)) for name in names}
print({name: (await task).active for name, task in tasks.items()})
# ---
import asyncio
done, pending = await asyncio.wait([asyncio.create_task(host_toolkit.cpu()), asyncio.create_task(host_toolkit.memory())])
print(len(done), len(pending), all(task.result() for task in done))
# ---
import asyncio
queue = asyncio.Queue()

async def produce():
    for disk in await ops_toolkit.disks():
        await queue.put(disk.mount)
    await queue.put(None)

async def consume():
    seen = []
    while (mount := await queue.get()) is not None:
        seen.append(mount)
    return seen

_, mounts = await asyncio.gather(produce(), consume())
print(mounts)
# ---
async def safely(call, default=None):
    try:
        return await call
    except ToolError:
        return default

print(await safely(files_toolkit.read("absent.txt"), default=""))
# ---
checks = {"cpu": host_toolkit.cpu, "memory": host_toolkit.memory}
print({name: bool(await check()) for name, check in checks.items()})
# ---
toolkits = [git_toolkit, host_toolkit]
print(await toolkits[0].branches(), bool(await toolkits[1].cpu()))
# ---
print([await host_toolkit.service(name) for name in ["nginx"]][0].name)
# ---
print({name: (await host_toolkit.service(name)).active for name in ("nginx", "redis")})
# ---
answer = (await system_toolkit.ask_user("Restart nginx?", choices=["yes", "no"])).strip().lower()
if answer == "yes" and (await host_toolkit.service("nginx")).active:
    await host_toolkit.restart(name="nginx", wait_s=2)
# ---
options = dict(sort="memory", limit=3)
processes = await host_toolkit.processes(**options)
print(len(processes), len(await host_toolkit.processes(*["cpu", 1])))
# ---
kind = "cpu" if True else "memory"
print(len(await host_toolkit.processes(sort=kind, limit=int("2"))))
# ---
arguments = ("README.md",)
keywords = {"start": 1}
print(len(await files_toolkit.read(*arguments, **keywords, end=2)))
# ---
print(await files_toolkit.read(path="README.md", end=None))
# ---
pattern = "|".join(["TODO", "FIXME"])
found = await files_toolkit.search(pattern, paths=["src", *["tests"]])
print(len(found))
# ---
method = getattr(git_toolkit, "branches")
print(await method(), hasattr(git_toolkit, "log"))
# ---
def choose(git_toolkit):
    return git_toolkit["name"]

print(choose({"name": "a dict under that name"}))
# ---
print([git_toolkit for git_toolkit in ["a", "b"]], (lambda host_toolkit: host_toolkit + 1)(2))
# ---
async def summary():
    async def part(call):
        return str(await call)[:20]
    return [await part(host_toolkit.cpu()), await part(host_toolkit.memory())]

print(len(await summary()))
# ---
disks = await ops_toolkit.disks()
full, fine = [], []
for disk in disks:
    (full if disk["used_percent"] > 50 else fine).append(disk["mount"])
await system_toolkit.send_message(f"full: {full}, fine: {fine}")
# ---
ports = await ops_toolkit.ports()
if ports.truncated:
    print("there are more")
for port in ports.ports:
    print(port.port, port.process or "unknown", port["port"])
# ---
listening = {port.port: port.process for port in (await ops_toolkit.ports())["ports"]}
print(listening.get(80), 8080 in listening)
# ---
worst = max(await ops_toolkit.disks(), key=lambda disk: disk.used_percent)
await system_toolkit.send_message(f"{worst.mount} is at {worst.used_percent:.0f} %")
# ---
record = (await ops_toolkit.disks())[0]
print(sorted(record.keys()), record.get("mount"), {**record}, dict(record) == record, len(record.items()))
# ---
record = (await ops_toolkit.disks())[0]
record.note = "checked"
record["seen"] = True
print(record.note, record.seen, record.get("absent", "none"))
# ---
import json
print(json.dumps(await ops_toolkit.ports(), indent=1)[:30])
# ---
promise = host_toolkit.cpu()
print(bool(await promise))
# ---
import asyncio
loop = asyncio.get_running_loop()
print(await asyncio.wait_for(asyncio.shield(asyncio.ensure_future(git_toolkit.branches())), 5), loop.is_running())
# ---
import asyncio
for next_done in asyncio.as_completed([host_toolkit.service("nginx"), host_toolkit.service("redis")]):
    state = await next_done
    print(state.name)
    break
# ---
rows.append({"name": "nginx"})
print(count(rows), rows[-1]["name"], len(services), helper() is not None)
# ---
services = [name for name in ("nginx", "redis") if (await fetch(name)) is not None]
print(services)
# ---
del services
print("services" in globals())
# ---
limit += 1
print(limit > 5, [*range(limit)][-1])
# ---
newest, *older = await git_toolkit.log()
print(newest.sha, len(older), [*older, newest][-1] is newest)
# ---
restart = lambda name: host_toolkit.restart(name)
print(await restart("nginx") is None)
# ---
import asyncio

async def main():
    return await git_toolkit.branches()

print(await main())
# ---
text = await files_toolkit.read("README.md")
changed = [line for line in text.splitlines() if not line.startswith("#")]
print(len(text), len(changed), text.count("\n"), text.upper()[:3], text.encode()[:2])
