# Ordinary programs that the same jail must let work. Each prints `works` last.
#: files in the scratch
import pathlib
import tempfile
path = pathlib.Path("folder/inner")
path.mkdir(parents=True)
(path / "file.txt").write_text("text")
(path / "file.txt").rename("moved.txt")
pathlib.Path("empty").touch()
assert pathlib.Path("moved.txt").read_text() == "text"
assert sorted(one.name for one in pathlib.Path(".").iterdir()) == ["empty", "folder", "moved.txt"]
with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile("w+") as file:
    pathlib.Path(folder, "x").write_bytes(b"x")
    file.write("y")
assert os.path.abspath("moved.txt") == os.getcwd() + "/moved.txt" and os.path.isfile(os.path.abspath("moved.txt"))
print("works")
#: file modes and times | | full
import shutil
open("a", "w").write("a")
os.chmod("a", 0o600)
os.utime("a", (10**9, 10**9))
shutil.copy2("a", "b")
shutil.copy("a", "c")
assert os.stat("b").st_mtime == 10**9
shutil.make_archive("all", "zip", ".")
print("works")
#: copies of files
import pathlib
import shutil
open("a", "w").write("a")
shutil.copy("a", "b")
shutil.copy2("a", "c")
os.mkdir("from")
shutil.copy("a", "from/a")
shutil.copytree("from", "to")
pathlib.Path("to/a").touch()
pathlib.Path("to/new").touch()
assert open("b").read() == open("c").read() == open("to/a").read() == "a" and os.path.exists("to/new")
print("works")
#: archives
import gzip
import tarfile
import zipfile
with zipfile.ZipFile("a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    archive.writestr("x.txt", "x" * 1_000)
with zipfile.ZipFile("a.zip") as archive:
    assert archive.read("x.txt") == b"x" * 1_000
with gzip.open("a.gz", "wt") as file:
    file.write("text")
assert gzip.open("a.gz", "rt").read() == "text"
print("works")
#: a database
import sqlite3
base = sqlite3.connect("base.db")
base.execute("create table t (a)")
base.executemany("insert into t values (?)", [(n,) for n in range(100)])
base.commit()
assert base.execute("select sum(a) from t").fetchone() == (4950,)
print("works")
#: threads and pools
import concurrent.futures
import threading
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    assert sum(pool.map(lambda n: n * n, range(100))) == 328350
lock, event = threading.Lock(), threading.Event()
threading.Timer(0.01, event.set).start()
assert event.wait(5)
print("works")
#: asyncio with calls
import asyncio
async def one(number):
    return (await demo.echo(number))["positional"][0]
assert await asyncio.gather(*(one(n) for n in range(20))) == list(range(20))
assert await asyncio.to_thread(sum, range(10)) == 45
async with asyncio.timeout(5):
    await asyncio.sleep(0.001)
print("works")
#: all of memory that it may have
held = bytearray(300 * 10**6)
held[:: 4096] = bytes(len(held[::4096]))
assert len(held) == 300 * 10**6
print("works")
#: mapped files | | full
import mmap
with open("file", "w+b") as file:
    file.write(bytes(8192))
    file.flush()
    mapped = mmap.mmap(file.fileno(), 8192)
    mapped[0:4] = b"text"
    mapped.flush()
with open("file", "rb") as file:
    assert file.read(4) == b"text"
print("works")
#: time zones and locales
import datetime
import locale
import zoneinfo
moment = datetime.datetime(2024, 7, 1, 12, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin"))
assert moment.utcoffset() == datetime.timedelta(hours=2)
assert locale.getpreferredencoding().lower() == "utf-8"
print("works")
#: hashes, random numbers and unique ids
import hashlib
import hmac
import random
import secrets
import uuid
assert hashlib.sha256(b"x").hexdigest()[:8] == "2d711642"
assert hmac.new(b"k", b"m", "sha256").hexdigest()[:8] == hmac.digest(b"k", b"m", "sha256").hex()[:8]
assert len(secrets.token_hex(8)) == 16 and uuid.uuid4() != uuid.uuid4() and 0 <= random.random() < 1
print("works")
#: signals to itself
import signal
caught = []
signal.signal(signal.SIGTERM, lambda number, frame: caught.append(number))
os.kill(os.getpid(), signal.SIGTERM)
signal.setitimer(signal.ITIMER_REAL, 0.01)
signal.signal(signal.SIGALRM, lambda number, frame: caught.append(number))
time.sleep(0.2)
assert signal.SIGTERM in caught
print("works")
#: pipes, pairs and selectors
import selectors
import socket
reading, writing = os.pipe()
one, other = socket.socketpair()
chosen = selectors.DefaultSelector()
chosen.register(reading, selectors.EVENT_READ)
chosen.register(one, selectors.EVENT_READ)
os.write(writing, b"x")
other.sendall(b"y")
assert len(chosen.select(1)) == 2 and one.recv(1) == b"y"
print("works")
#: what it is and where
import platform
assert os.getpid() > 0 and os.getuid() != 0 and platform.system() == "Linux" and sys.version_info >= (3, 11)
assert os.cpu_count() >= 1 and os.environ.get("HOME") is None and sys.argv in ([""], [])
print("works")
#: compiled code called
libc = ctypes.CDLL(None)
assert libc.abs(-3) == 3 and ctypes.c_double.in_dll(ctypes.CDLL(None), "signgam") is not None
print("works")
#: deep recursion and large numbers
sys.setrecursionlimit(5_000)
def deep(level):
    return 0 if not level else 1 + deep(level - 1)
assert deep(4_000) == 4_000
assert len(str(3**8_000)) == 3_817
print("works")
