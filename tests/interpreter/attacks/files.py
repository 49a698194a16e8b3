#: a secret of the same user | its contents are read | bare
attempt(lambda: read(SECRET))
#: a secret by way of the parent folders | its contents are read | bare
for depth in range(1, 8):
    attempt(lambda: read("../" * depth + SECRET[1:]))
#: a secret by a folder's descriptor | its contents are read | bare
def through():
    folder = os.open(CANARY, os.O_RDONLY | os.O_DIRECTORY)
    return os.read(os.open("secret", os.O_RDONLY, dir_fd=folder), 100)
attempt(through)
#: a secret by a place only | its contents are read | bare
def through():
    folder = os.open(CANARY, os.O_PATH)
    return os.read(os.open("secret", os.O_RDONLY, dir_fd=folder), 100)
attempt(through, lambda: syscall("openat", -100, SECRET.encode(), os.O_PATH), lambda: read("/proc/self/fd/4"))
#: a secret after a change of folder | its contents are read | bare
def through():
    os.chdir(CANARY)
    return read("secret")
attempt(through)
#: a secret by openat2 | its contents are read | bare
how = struct.pack("<QQQ", 0, 0, 0)
def through():
    return os.read(syscall("openat2", -100, SECRET.encode(), how, len(how)), 100)
attempt(through)
#: a secret by a file handle | its contents are read
handle = ctypes.create_string_buffer(struct.pack("<Ii", 128, 0) + bytes(128))
mount = ctypes.c_int()
def through():
    syscall("name_to_handle_at", -100, SECRET.encode(), handle, ctypes.byref(mount), 0)
    return os.read(syscall("open_by_handle_at", -100, handle, os.O_RDONLY), 100)
attempt(through)
#: a secret by a symbolic link | its contents are read | bare
def through():
    os.symlink(SECRET, "link")
    return read("link")
attempt(through)
#: a secret by a hard link | its contents are read | bare
def through():
    os.link(SECRET, "link")
    return read("link")
attempt(through)
#: a secret moved into the scratch | its contents are read, or it is gone | bare
def through():
    os.rename(SECRET, "moved")
    return read("moved")
attempt(through, lambda: syscall("renameat2", -100, SECRET.encode(), -100, b"moved", 2))
#: a secret mapped into memory | its contents are read | bare
import mmap
def through():
    with open(SECRET, "rb") as file:
        return bytes(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
attempt(through)
#: a secret by extended attributes | they are read | bare
attempt(lambda: os.getxattr(SECRET, "user.secret"), lambda: os.getxattr(CANARY, "user.secret"))
#: a secret by asynchronous io | its contents are read
attempt(lambda: syscall("io_uring_setup", 4, ctypes.create_string_buffer(120)), lambda: syscall("io_setup", 4, ctypes.byref(ctypes.c_long())))
#: a secret sent by the kernel | its contents are read | bare
def through():
    source = os.open(SECRET, os.O_RDONLY)
    target = os.open("copy", os.O_RDWR | os.O_CREAT)
    os.sendfile(target, source, 0, 100)
    return read("copy")
attempt(through)
#: importing a module of the machine | its code runs | bare
sys.path.insert(0, CANARY)
def through():
    import canary_module
    return canary_module.SECRET
attempt(through)
#: names in a folder | they are listed | bare
attempt(lambda: os.listdir(CANARY), lambda: [entry.name for entry in os.scandir(CANARY)])
#: names in a folder by its path alone | they are listed | bare
import glob
attempt(lambda: glob.glob(f"{CANARY}/*"), lambda: list(os.walk(CANARY)))
#: passwords | accounts of the machine are read
import pathlib
attempt(lambda: read("/etc/passwd"), lambda: read("/etc/shadow"), lambda: pathlib.Path("~root").expanduser())
#: a file of the same user | it is written | bare
attempt(lambda: open(SECRET, "w").write("x"), lambda: open(SECRET, "r+").write("x"), lambda: open(SECRET, "a").write("x"))
#: a file's length | it is changed | bare
attempt(lambda: os.truncate(SECRET, 0), lambda: os.close(os.open(SECRET, os.O_WRONLY | os.O_TRUNC)))
#: a file of the same user removed | it is gone | bare
attempt(lambda: os.remove(SECRET), lambda: os.unlink(f"{CANARY}/empty/../secret"))
#: a folder of the same user removed | it is gone | bare
import shutil
attempt(lambda: os.rmdir(f"{CANARY}/empty"), lambda: shutil.rmtree(CANARY))
#: a new file beside the canary | it appears | bare
attempt(lambda: open(f"{CANARY}/new", "w"), lambda: os.mkdir(f"{CANARY}/new-folder"), lambda: os.open(CANARY, os.O_TMPFILE | os.O_RDWR))
#: a new file in shared folders | it appears
attempt(*(lambda folder=folder: open(f"{folder}/of-a-program", "w") for folder in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/")))
#: a link and a device beside the canary | they appear | bare
attempt(lambda: os.symlink("/etc", f"{CANARY}/link"), lambda: os.mkfifo(f"{CANARY}/queue"), lambda: os.mknod(f"{CANARY}/node"))
#: the mode of a file of the same user | it is changed | bare
attempt(lambda: os.chmod(SECRET, 0o777), lambda: os.chmod(CANARY, 0), lambda: syscall("fchmodat2", -100, SECRET.encode(), 0o777, 0))
#: the times of a file of the same user | they are changed | bare
attempt(lambda: os.utime(SECRET, (1, 1)), lambda: os.utime(CANARY, (1, 1)), lambda: os.utime(SECRET))
#: the owner of a file of the same user | it is changed
attempt(lambda: os.chown(SECRET, os.getuid(), os.getgid()), lambda: os.lchown(SECRET, 0, 0))
#: attributes of a file of the same user | they are changed | bare
attempt(lambda: os.setxattr(SECRET, "user.mark", b"x"), lambda: os.removexattr(SECRET, "user.secret"))
#: the standard library | it is written
attempt(lambda: open(json.__file__, "a"), lambda: os.chmod(json.__file__, 0o777), lambda: os.remove(json.__file__), lambda: os.utime(json.__file__))
#: mounting over a folder | the mount is there
attempt(lambda: syscall("mount", b"x", b".", b"tmpfs", 0, 0), lambda: syscall("umount2", b"/scratch", 2), lambda: syscall("pivot_root", b".", b"."))
attempt(lambda: syscall("open_tree", -100, b"/", 1), lambda: syscall("fsopen", b"tmpfs", 0), lambda: syscall("chroot", b"."))
#: out by chroot | the machine's files are read
def through():
    os.mkdir("inner")
    os.chroot("inner")
    for _ in range(50):
        os.chdir("..")
    return read(SECRET[1:])
attempt(through)
#: out by a descriptor of the runtime | the machine's files are read
for number in range(64):
    try:
        os.fchdir(number)
        attempt(lambda: read(SECRET[1:]))
    except OSError:
        pass
#: other rounds' scratch folders | they are seen
here = os.getcwd()
attempt(lambda: os.listdir(os.path.dirname(here)), lambda: os.listdir(".."), lambda: os.listdir("/"))
#: devices | they are opened
attempt(*(lambda name=name: os.open(name, os.O_RDWR) for name in ("/dev/sda", "/dev/vda", "/dev/mem", "/dev/kmsg", "/dev/tty", "/dev/fuse", "/dev/ptmx")))
#: watching files | it sees what others do
attempt(lambda: syscall("inotify_init1", 0), lambda: syscall("fanotify_init", 0, 0))
