disk = (await ops_toolkit.disks())[0]
try:
    print(disk.label)
except AttributeError:
    print("disks have no labels")
# ---
disk = (await ops_toolkit.disks())[0]
try:
    label = disk["label"]
except (KeyError, ValueError):
    label = disk["mount"]
print(label)
# ---
disk = (await ops_toolkit.disks())[0]
if "label" in disk:
    print(disk["label"])
print(disk.label if hasattr(disk, "label") else "no label", getattr(disk, "label", None))
# ---
disks = await ops_toolkit.disks()
for disk in disks:
    for name in ("free", "rank"):
        disk[name] = 1
print(disks[0].free, disks[0].rank)
# ---
import json
disk = (await ops_toolkit.disks())[0]
disk.update(json.loads('{"label": "root"}'))
print(disk.label)
# ---
disks = await ops_toolkit.disks()
disks.append(type(disks[0])(mount="/x", used_percent=1.0, label="new"))
print(disks[-1].label)
# ---
extra = dict([("label", "x")])
disk = (await ops_toolkit.disks())[0] | extra
print(disk["label"])
# ---
disk = (await ops_toolkit.disks())[0]
more = dict(zip(["label"], ["x"]))
disk |= more
print(disk.label)
# ---
def enrich(record, name, value):
    record[name] = value
    return record

disk = (await ops_toolkit.disks())[0]
enrich(disk, "label", "root")
print(disk.label)
# ---
disk = (await ops_toolkit.disks())[0]
setattr(disk, "la" + "bel", "root")
print(disk.label)
# ---
ports = await ops_toolkit.ports()
for field in ports:
    print(field, ports[field])
# ---
ports = await ops_toolkit.ports()
print([(field, type(ports[field]).__name__) for field in ports])
# ---
ports = await ops_toolkit.ports()
for name, value in ports.items():
    print(name, value)
print(list(ports.keys()), "ports" in ports)
# ---
def sorted(record):
    return record.truncated

ports = await ops_toolkit.ports()
print(sorted(ports))
# ---
def len(record):
    return "my own " + str(record.truncated)

ports = await ops_toolkit.ports()
print(len(ports))
# ---
disks = await ops_toolkit.disks()
disks = {disk.mount: disk for disk in disks}
print(disks.get("/"), list(disks.values())[0].mount)
# ---
result = await ops_toolkit.disks()
if not isinstance(result, list):
    print(result.items)
# ---
class disks:
    total = 3

print(disks.total)
# ---
text = await files_toolkit.read("README.md")
text = [text]
print(text.count("a"), text.index(text[0]))
# ---
subprocess = "a name as any other"
print(subprocess.upper())
# ---
socket_toolkit = {"a": 1}
print(socket_toolkit["a"])
# ---
class my_toolkit:
    value = 1

print(my_toolkit.value)
# ---
exec("made_toolkit = {'a': 1}")
print(made_toolkit["a"])
# ---
globals()["named_toolkit"] = [1]
print(named_toolkit[0])
# ---
report_lines = ["a"]
def show_report(report):
    return len(report)
print(show_report(report_lines))
# ---
try_ = except_ = 1
match = {"case": 2}
type = match["case"]
print(try_, match, type)
# ---
print("git_toolkit.nothing(1)", 'await foo_toolkit.bar()', "import subprocess")
# ---
text = """
import subprocess
return 5
"""
print(text.strip().splitlines()[0])
# ---
def inner():
    """git_toolkit.push() is only a text here."""
    # git_toolkit.push()
    return inner.__doc__

print(inner()[:11])
# ---
log = []
log.append({"level": "info"})
print(log[0]["level"], log.count({}))
# ---
limit_value = 3
print(len(await git_toolkit.log(limit=limit_value if limit_value else None)))
# ---
limit_text = "3"
print(len(await git_toolkit.log(limit=int(limit_text))), len(await git_toolkit.log(path=None)))
# ---
kinds = ["cpu", "memory"]
print([len(await host_toolkit.processes(sort=kind)) for kind in kinds])
# ---
seconds = 1
await host_toolkit.restart("nginx", seconds)
await host_toolkit.restart(wait_s=0.25, name="nginx")
await host_toolkit.restart("nginx", wait_s=-0 + 1)
# ---
paths = ("src", "tests")
print(len(await files_toolkit.search("x", paths=list(paths))), len(await files_toolkit.search("x", ["a"] * 2)))
# ---
print(__name__ == "nothing", __debug__, NotImplemented is None, ...)
# ---
x = [1, 2, 3]
print(x[-1:], x[:-1], x[1:][0], x [0], (x)[1])
# ---
if True: print("on one line"); y = 1; print(y)
# ---
# A comment first.

# And one more.
value = (
    1
    + 2  # two
)

print(value)
# ---
def f(): return 1
class C: pass
for i in range(2): print(i, f(), C)
# ---
lambda_in_default = (lambda x=[y for y in range(3)]: x)()
print(lambda_in_default, (lambda: (yield))().__class__.__name__)
# ---
print((yield_ := 3), [last := number for number in range(3)], last)
# ---
π = 3.14
naïve = "é"
print(π, naïve, "漢字", len("🎉"))
# ---
print(0 if 1 else 2 if 3 else 4, 1 < 2 < 3, not 1 == 2, 1 if [] else "empty", (1, ), ())
# ---
for key in (dictionary := {"a": 1}): dictionary[key] += 1
print(dictionary)
# ---
ports = (await ops_toolkit.ports()).ports
print(ports[0].port if ports else 0, [port for port in ports if port.process is None][:1], len(ports))
# ---
process = (await ops_toolkit.ports()).ports[0].process
print(process.upper() if process else "none")
# ---
names = [name for name in dir() if not name.startswith("_")]
print(len(names) > 0)
# ---
import sys as system, os.path as path_module
print(path_module.join("a", "b"), system.version_info >= (3, 8))
