#: a bystander killed | it ends | bare
import signal
attempt(lambda: os.kill(BYSTANDER, signal.SIGKILL))
#: a bystander stopped | it stops | bare
import signal
attempt(lambda: os.kill(BYSTANDER, signal.SIGSTOP))
#: a bystander's threads | one ends
attempt(lambda: syscall("tgkill", BYSTANDER, BYSTANDER, 9), lambda: syscall("tkill", BYSTANDER, 9))
#: signals with a message | a bystander ends
attempt(lambda: syscall("rt_sigqueueinfo", BYSTANDER, 9, bytes(128)), lambda: syscall("rt_tgsigqueueinfo", BYSTANDER, BYSTANDER, 9, bytes(128)))
#: a signal by descriptor | a bystander ends
def through():
    return syscall("pidfd_send_signal", syscall("pidfd_open", BYSTANDER, 0), 9, 0, 0)
attempt(through)
#: all processes | one ends
attempt(lambda: os.kill(-1, 9), lambda: os.kill(0, 9), lambda: os.killpg(os.getpgid(0), 9), lambda: os.killpg(BYSTANDER, 9))
#: the zygote | it ends
attempt(lambda: os.kill(os.getppid(), 9), lambda: os.kill(1, 9), lambda: os.kill(2, 9))
#: every process by its number | one ends
for pid in (*range(2, 3_000), *range(max(BYSTANDER - 500, 2), BYSTANDER + 500)):
    if pid != os.getpid():
        try:
            os.kill(pid, 9)
        except OSError:
            pass
#: signals by a file's owner | a bystander ends
import fcntl
import socket
one, other = socket.socketpair()
attempt(lambda: fcntl.fcntl(one, fcntl.F_SETOWN, BYSTANDER), lambda: fcntl.fcntl(one, 10, 9), lambda: fcntl.ioctl(one, 0x8901, struct.pack("i", BYSTANDER)))
attempt(lambda: fcntl.fcntl(one, fcntl.F_SETFL, fcntl.fcntl(one, fcntl.F_GETFL) | os.O_ASYNC), lambda: other.send(b"x"))
#: signals by timers | a bystander ends
attempt(lambda: syscall("timer_create", 0, struct.pack("<QiiI", 0, 9, 4, BYSTANDER) + bytes(64), ctypes.create_string_buffer(8)))
#: its own end by a signal | the host ends with it | dies
import signal
os.kill(os.getpid(), signal.SIGKILL)
#: all its signals handled | it cannot be ended | wall=0.5 ends=limit
import signal
for number in range(1, 65):
    try:
        signal.signal(number, lambda *_: None)
    except (OSError, ValueError):
        pass
while True:
    try:
        time.sleep(1)
    except BaseException:
        pass
#: the host's own signal | its limit does not come | wall=0.5 ends=limit
import signal
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
while True:
    time.sleep(1)
#: the runtime's signal sent to itself | the host believes in a limit
import signal
os.kill(os.getpid(), signal.SIGUSR1)
time.sleep(1)
#: a timer without end | the host is woken | wall=1 ends=limit
import signal
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 1e-6, 1e-6)
while True:
    time.sleep(1)
