result = devops_toolkit.search_requirements(id=123, keyword="login")
if result.get('success'):
    print(result['data'])
# ---
for commit in await git_toolkit.log(limit=5):
    print(commit.sha)
await git_toolkit.pull()
# ---
branches = await git_toolkit.branch()
# ---
await git_toolkit.log(max_limit=5)
# ---
await git_toolkit.log("5")
# ---
await files_toolkit.read(file_path="README.md", begin=3)
# ---
await files_toolkit.read("a", 1, 2, 3)
# ---
await files_toolkit.read()
# ---
await host_toolkit.restart(5)
# ---
await host_toolkit.restart("nginx", wait_s="5")
# ---
await host_toolkit.restart("nginx", name="nginx")
# ---
await host_toolkit.processes(sort="mem")
# ---
await host_toolkit.processes(sort=None, limit=[1])
# ---
await system_toolkit.ask_user("Which?", choices="a, b")
# ---
await system_toolkit.sleep("one")
# ---
await files_toolkit.search("x", paths={"src": 1})
# ---
git = git_toolkit
await git.log(number=5)
# ---
async def newest(number):
    return await git_toolkit.log(count=number)

print(await newest(1))
# ---
print([await host_toolkit.service(service=name) for name in services])
# ---
class Watcher:
    async def look(self):
        return await host_toolkit.services()
# ---
x = await database_toolkit.query("select 1")
# ---
await host.cpu()
host_toolkit.cpu.usage()
# ---
disks = await ops_toolkit.disks()
for disk in disks:
    print(f"{disk.name}: {disk.used_percent}")
# ---
first = (await ops_toolkit.disks())[0]
print(first.used, first["mountpoint"])
# ---
ports = await ops_toolkit.ports()
print(ports.port)
# ---
ports = (await ops_toolkit.ports()).ports
print(ports.port, ports[0].number)
# ---
for port in (await ops_toolkit.ports()).ports:
    if port.process.name == "nginx":
        print(port)
# ---
text = await files_toolkit.read("README.md")
print(text.lines)
# ---
now = await system_toolkit.now()
print(now - 5)
# ---
for row in rows:
    print(row.nmae, row.name)
print(config.limits.cpu, config.limits.gpu)
# ---
print(rows.length, config["lmits"], title.lenght)
# ---
import numpy, subprocess
from urllib import request
# ---
from multiprocessing.pool import ThreadPool
# ---
answer = input("Go on? ")
help(answer)
# ---
def f():
    return await host_toolkit.cpu()
print([y async for y in x] if (lambda: await z) else 1)
# ---
def f(a, a):
    pass
# ---
nonlocal x
# ---
def f():
    x = 1
    global x
# ---
x, *y, *z = [1, 2, 3]
# ---
print(f"{(lambda: 1)}"
# ---
if True
    print(1)
# ---
for i in range(3):
print(i)
# ---
x = {"a": 1, "b" 2}
# ---
print("unclosed)
# ---
class A:
    return 1
# ---
continue
# ---
async def f():
    yield 1
    return 2
# ---
f(a=1, a=2)
# ---
match 1:
    case _:
        pass
    case 2:
        pass
# ---
1 = x
# ---
f() += 1
# ---
from . import *
def g():
    from os import *
# ---
try:
    print(1)
except:
    pass
except ValueError:
    pass
# ---
git_toolkit = None
host_toolkit.cpu = 1
# ---
print(json.dumps(1))
await git_toolkit.pull()
