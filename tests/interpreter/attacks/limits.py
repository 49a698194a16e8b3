#: memory in one piece | it gets more than its limit | memory=128
attempt(lambda: bytearray(10**9))
held = [bytearray(b"x" * 10**6) for _ in range(10**6)]
#: memory in small pieces | it gets more than its limit | memory=128
held = []
while True:
    held.append([None] * 1_000)
#: memory in many dicts and strings | it gets more than its limit | memory=128
held = {}
while True:
    held[len(held)] = str(len(held)) * 10
#: memory while errors are ignored | it gets more than its limit | memory=128 wall=3
held = []
while True:
    try:
        held.append(bytearray(b"x" * 10**5))
    except MemoryError:
        pass
#: memory of mappings | it gets more than its limit | memory=128
import mmap
held = []
while True:
    held.append(mmap.mmap(-1, 10**6, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    held[-1].write(b"x" * 10**6)
#: memory that is shared | it gets more than its limit | memory=128
import mmap
held = []
while True:
    held.append(mmap.mmap(-1, 10**6))
    held[-1].write(b"x" * 10**6)
#: memory that grows like a stack | it gets more than its limit | memory=128
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
for _ in range(1_000):
    address = libc.mmap(None, 10**7, 3, 0x0122, -1, 0)
    if address == ctypes.c_void_p(-1).value:
        raise MemoryError
    ctypes.memset(address, 1, 10**7)
#: memory of huge pages | the machine's are taken | memory=128
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
print(libc.mmap(None, 1 << 21, 3, 0x40022, -1, 0) == ctypes.c_void_p(-1).value, os.strerror(ctypes.get_errno()))
#: memory locked | it cannot be paged out | memory=128
libc = ctypes.CDLL(None, use_errno=True)
print(libc.mlockall(3), os.strerror(ctypes.get_errno()))
#: memory of files mapped for writing | it gets more than its limit | memory=128 scratch=8
import mmap
with open("file", "w+b") as file:
    file.truncate(10**7)
    held = mmap.mmap(file.fileno(), 10**7, flags=mmap.MAP_SHARED)
    for place in range(0, 10**7, 4096):
        held[place] = 1
#: memory of pipes | it gets more than its limit | memory=128
held = []
while True:
    held.append(os.pipe2(os.O_NONBLOCK))
    os.write(held[-1][1], bytes(10**6))
#: memory of larger pipes | it gets more than its limit | memory=128
import fcntl
attempt(lambda: fcntl.fcntl(os.pipe()[1], 1031, 1 << 20))
#: memory of a deep recursion | the stack has no end | memory=128
sys.setrecursionlimit(10**9)
def deep(level):
    return deep(level + 1)
deep(0)
#: its own limits | they are raised | memory=128
import resource
for name in ("RLIMIT_AS", "RLIMIT_DATA", "RLIMIT_CPU", "RLIMIT_NOFILE", "RLIMIT_FSIZE", "RLIMIT_NPROC", "RLIMIT_STACK"):
    attempt(lambda: resource.setrlimit(getattr(resource, name), (resource.RLIM_INFINITY, resource.RLIM_INFINITY)))
    attempt(lambda: resource.prlimit(os.getpid(), getattr(resource, name), (10**9, 10**9)))
held = bytearray(b"x" * 10**9)
#: processor time | it gets more than its limit | cpu=1 wall=6
while True:
    pass
#: processor time in many threads | it gets more than its limit | cpu=1 wall=6
import threading
import zlib
data = os.urandom(10**6)
def work():
    while True:
        zlib.compress(data, 9)
for _ in range(8):
    threading.Thread(target=work, daemon=True).start()
work()
#: processor time with its signal ignored | it gets more than its limit | cpu=1 wall=6
import signal
signal.signal(signal.SIGXCPU, signal.SIG_IGN)
while True:
    pass
#: threads | it gets more than its share | tasks=560 memory=64
import threading
threading.stack_size(32 * 1024)
for _ in range(20_000):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
#: open files | it gets more than its share
held = []
while True:
    held.append(os.dup(0))
#: one large file | it gets more than its scratch | scratch=8
with open("file", "wb") as file:
    while True:
        file.write(bytes(10**6))
#: many large files | it gets more than its scratch | scratch=8
for number in range(1_000):
    attempt(lambda: open(f"file{number}", "wb").write(bytes(10**6)))
#: a file with holes filled | it gets more than its scratch | scratch=8
with open("file", "wb") as file:
    attempt(lambda: os.posix_fallocate(file.fileno(), 0, 10**9), lambda: os.pwrite(file.fileno(), b"x", 10**12))
#: many files | it gets more than its share | files=4200
for number in range(20_000):
    try:
        open(f"file{number}", "x").close()
    except OSError as error:
        print(number, error)
        break
#: deep folders | they cannot be removed | wall=6
for _ in range(2_000):
    os.mkdir("d")
    os.chdir("d")
#: files that are removed and held | they count no more | scratch=8
held = []
for number in range(60):
    def through():
        file = open("file", "w+b")
        os.remove("file")
        held.append(file)
        file.write(bytes(10**6))
    attempt(through)
#: files that are removed and held, as large as may be | they count no more | scratch=8
held = []
for number in range(58):
    def through():
        file = open("file", "w+b", buffering=0)
        os.remove("file")
        held.append(file)
        for _ in range(8):
            file.write(bytes(2**20))
    attempt(through)
#: files that are removed and held by mappings | they count no more | scratch=8
import mmap
held = []
for number in range(100):
    def through():
        with open("file", "w+b", buffering=0) as file:
            os.remove("file")
            file.write(bytes(2**20))
            held.append(mmap.mmap(file.fileno(), 4096, flags=mmap.MAP_PRIVATE))
            for _ in range(7):
                file.write(bytes(2**20))
    attempt(through)
#: large files in a folder that cannot be listed | the host does not see them | scratch=8
os.mkdir("hidden", 0o300)
for number in range(1_000):
    attempt(lambda: open(f"hidden/{number}", "wb").write(bytes(10**6)))
#: large files below a path that is too long | the host does not see them | scratch=8
for _ in range(30):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
for number in range(1_000):
    attempt(lambda: open(f"file{number}", "wb").write(bytes(10**6)))
#: large files that move away from the host's eye | the host does not see them | scratch=8
os.mkdir("a")
os.mkdir("b")
for number in range(1_000):
    attempt(lambda: open(f"a/{number}", "wb").write(bytes(10**6)))
    attempt(lambda: os.rename("a", "c"), lambda: os.rename("b", "a"), lambda: os.rename("c", "b"))
#: empty files while limits are ignored | it gets more than its share | files=4200 wall=3
for number in range(20_000):
    try:
        open(f"file{number}", "x").close()
    except BaseException:
        pass
#: wall time by sleeping | it goes on | wall=0.5
while True:
    try:
        time.sleep(100)
    except BaseException:
        pass
#: wall time with all signals blocked | it goes on | wall=0.5
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
while True:
    time.sleep(1)
#: wall time by stopping itself | it goes on | wall=0.5
import signal
os.kill(os.getpid(), signal.SIGSTOP)
#: wall time in compiled code | it goes on | wall=0.5
import re
re.match("(a+)+b", "a" * 64)
#: output without end | the host keeps all of it
while True:
    print("x" * 10_000)
#: output in tiny pieces | the host keeps all of it
while True:
    sys.stdout.write("x")
    sys.stdout.flush()
#: calls without end | the host makes them all
import asyncio
while True:
    await asyncio.gather(*(demo.echo(number) for number in range(100)))
