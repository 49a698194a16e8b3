# What compiled code can do that Python would not.
#: new code | it runs
import mmap
attempt(lambda: mmap.mmap(-1, 4096, flags=0x22, prot=7), lambda: mmap.mmap(-1, 4096, flags=0x22, prot=5))
#: a page made code | it runs
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
page = libc.mmap(None, 4096, 3, 0x22, -1, 0)
ctypes.memmove(page, b"\xc3", 1)
def through():
    syscall("mprotect", page, 4096, 5)
    ctypes.CFUNCTYPE(None)(page)()
    return "ran"
attempt(through, lambda: syscall("pkey_mprotect", page, 4096, 5, -1))
#: code by way of a file | it runs
with open("code", "wb") as file:
    file.write(b"\xc3" * 4096)
import mmap
def through():
    with open("code", "r+b") as file:
        return mmap.mmap(file.fileno(), 4096, flags=2, prot=5)
attempt(through)
#: a library from the scratch | it is loaded
with open("library.so", "wb") as file:
    file.write(open(sys.modules["_csv"].__file__, "rb").read() if hasattr(sys.modules.get("_csv"), "__file__") else b"\x7fELF")
attempt(lambda: ctypes.CDLL("./library.so"), lambda: ctypes.CDLL("libssl.so.3"), lambda: ctypes.CDLL("libcrypt.so.1"))
#: pages made code for all that is read | they are
attempt(lambda: syscall("personality", 0x0400000))
#: the runtime's memory searched | it finds the machine's paths or another round's secret
def through():
    found = []
    for name in ("Zygote", "canary"):
        found.append(name.encode() in ctypes.string_at(id(json), 10_000))
    return found
attempt(through)
#: a read at nowhere | the host ends with it | dies
ctypes.string_at(1)
#: a write into the interpreter | the host ends with it | dies
for place in range(0, 1 << 20, 8):
    ctypes.c_long.from_address(id(object) - place).value = 0
#: the runtime replaced | it says what it wants, and no more | wall=1 dies
import gc
for one in gc.get_objects():
    if type(one).__name__ in ("Guard", "Channel"):
        for name in list(vars(one)) if hasattr(one, "__dict__") else ():
            setattr(one, name, None)
#: filters and limits of the kernel | they are taken off
attempt(lambda: syscall("seccomp", 1, 0, 0), lambda: syscall("prctl", 22, 0, 0, 0, 0), lambda: syscall("prctl", 38, 0, 0, 0, 0))
attempt(lambda: syscall("prctl", 4, 1, 0, 0, 0), lambda: syscall("landlock_restrict_self", 0, 0), lambda: read(SECRET))
#: calls of another architecture | they pass the filter
attempt(lambda: syscall("x32", 0))
#: faults handled by itself | it stops the kernel half-way
attempt(lambda: syscall("userfaultfd", 0))
#: a call that kills, and another after it | the second works | dies
attempt(lambda: syscall("keyctl", 0, -3, 0))
attempt(lambda: read(SECRET), lambda: os.kill(BYSTANDER, 9))
