#: fork | there is another process
attempt(os.fork, lambda: syscall("fork"), lambda: syscall("vfork"))
#: clone | there is another process
attempt(lambda: syscall("clone", 17, 0, 0, 0, 0), lambda: syscall("clone", 0x100 | 17, 0, 0, 0, 0), lambda: syscall("clone3", bytes(88), 88))
#: a fork bomb | there are many processes
for _ in range(1_000):
    try:
        os.fork()
    except OSError:
        pass
#: a command | it runs
import subprocess
attempt(lambda: subprocess.run(["/bin/sh", "-c", f"touch {CANARY}/new"], check=True), lambda: os.system(f"touch {CANARY}/new"))
attempt(lambda: os.popen(f"touch {CANARY}/new").read())
#: a spawned command | it runs | bare
attempt(lambda: os.posix_spawn("/usr/bin/touch", ["touch", f"{CANARY}/new"], {}), lambda: time.sleep(0.3))
#: becoming another program | it runs | bare dies
os.execv("/usr/bin/touch", ["touch", f"{CANARY}/new"])
#: becoming another program by number | it runs | dies
syscall("execveat", -100, b"/usr/bin/touch", (ctypes.c_char_p * 3)(b"touch", f"{CANARY}/new".encode()), (ctypes.c_char_p * 1)(), 0)
#: a program made in memory | it runs
attempt(lambda: syscall("memfd_create", b"x", 0), lambda: syscall("memfd_secret", 0))
#: other processes in a pool | they run
import multiprocessing
attempt(lambda: multiprocessing.Process(target=print).start(), lambda: multiprocessing.Pool(1))
#: a process that outlives its round | it is there later
def through():
    if os.fork() == 0:
        os.setsid()
        time.sleep(1_000)
attempt(through)
#: a session of its own | it leaves its terminal's or group's reach
attempt(os.setsid, lambda: os.setpgid(0, 0), lambda: syscall("prctl", 36, 1, 0, 0, 0))
#: tracing a bystander | it is stopped or read
attempt(lambda: syscall("ptrace", 16, BYSTANDER, 0, 0))
#: tracing a bystander by seizing it | it is stopped or read
attempt(lambda: syscall("ptrace", 0x4206, BYSTANDER, 0, 0), lambda: syscall("ptrace", 0x4206, os.getppid(), 0, 0))
#: a bystander's memory by number | it is read
space = ctypes.create_string_buffer(64)
vector = struct.pack("<QQ", ctypes.addressof(space), 64)
attempt(lambda: syscall("process_vm_readv", BYSTANDER, vector, 1, vector, 1, 0))
attempt(lambda: syscall("process_vm_writev", BYSTANDER, vector, 1, vector, 1, 0))
#: a bystander's memory as a file | it is read
attempt(lambda: read(f"/proc/{BYSTANDER}/mem"), lambda: read(f"/proc/{BYSTANDER}/maps"))
#: a bystander's environment | it is read | bare
attempt(lambda: read(f"/proc/{BYSTANDER}/environ"), lambda: read(f"/proc/{BYSTANDER}/cmdline"))
#: a bystander's links | they are followed | bare
attempt(*(lambda what=what: os.readlink(f"/proc/{BYSTANDER}/{what}") for what in ("cwd", "exe", "root", "fd/0", "fd/1")))
attempt(lambda: read(f"/proc/{BYSTANDER}/cwd/secret"), lambda: read(f"/proc/{BYSTANDER}/root{SECRET}"))
#: a bystander's descriptors | they are taken
def through():
    process = syscall("pidfd_open", BYSTANDER, 0)
    return os.read(syscall("pidfd_getfd", process, 0, 0), 100)
attempt(through)
#: the zygote's and the host's processes | they are read
for pid in (1, 2, os.getppid(), os.getpid()):
    attempt(*(lambda what=what: read(f"/proc/{pid}/{what}") for what in ("mem", "maps", "environ", "cmdline", "status")))
#: a bystander's priority and core | they are changed | bare
attempt(lambda: os.setpriority(os.PRIO_PROCESS, BYSTANDER, 19), lambda: os.sched_setaffinity(BYSTANDER, {0}))
attempt(lambda: os.sched_setscheduler(BYSTANDER, os.SCHED_IDLE, os.sched_param(0)), lambda: syscall("ioprio_set", 1, BYSTANDER, 3 << 13))
#: a bystander's limits | they are changed | bare
import resource
attempt(lambda: resource.prlimit(BYSTANDER, resource.RLIMIT_NOFILE, (3, 3)), lambda: resource.prlimit(BYSTANDER, resource.RLIMIT_CPU, (1, 1)))
#: user and groups | they change
attempt(lambda: os.setuid(0), lambda: os.setresuid(0, 0, 0), lambda: os.setgroups([]), lambda: os.setgid(0), lambda: syscall("setfsuid", 0))
#: capabilities | they come back
attempt(lambda: syscall("capset", struct.pack("<Ii", 0x20080522, 0), struct.pack("<6I", *[0xFFFFFFFF] * 6)), lambda: syscall("prctl", 47, 2, 21, 0, 0))
#: namespaces | it enters or makes one
attempt(*(lambda flag=flag: syscall("unshare", flag) for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x80)))
attempt(*(lambda number=number: syscall("setns", number, 0) for number in range(64)))
#: the machine's keys | they are read
attempt(lambda: syscall("keyctl", 0, -3, 0), lambda: syscall("add_key", b"user", b"x", b"y", 1, -3))
#: the kernel's modules and programs | they are loaded
attempt(lambda: syscall("bpf", 0, bytes(64), 64), lambda: syscall("init_module", b"x", 1, b""), lambda: syscall("perf_event_open", bytes(128), 0, -1, -1, 0))
#: the machine's name, clock and power | they are changed
attempt(lambda: syscall("sethostname", b"taken", 5), lambda: time.clock_settime(0, 0.0), lambda: syscall("reboot", 0xFEE1DEAD, 672274793, 0, 0))
attempt(lambda: syscall("swapoff", b"/swap"), lambda: syscall("acct", b"/acct"), lambda: syscall("syslog", 3, bytes(64), 64))
#: memory and queues shared between processes | they are made
attempt(lambda: syscall("shmget", 1, 4096, 0o1666), lambda: syscall("msgget", 1, 0o1666), lambda: syscall("semget", 1, 1, 0o1666), lambda: syscall("mq_open", b"x", 0o102, 0o666, 0))
