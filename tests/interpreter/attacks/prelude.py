# Put before every attack, after the names of the world that it is run in: CANARY, a folder with a secret in it; PORT and
# UDP_PORT on loopback; NAME, an abstract socket; BYSTANDER, a process of the same user; NR, numbers of system calls.
import ctypes
import errno
import json
import os
import struct
import sys
import time

SECRET = f"{CANARY}/secret"


def attempt(*tries):
    """Makes each try, whatever becomes of the others, and prints what it gave."""
    for one in tries:
        try:
            print("got", repr(one())[:2000])
        except Exception as error:
            print(f"{type(error).__name__}: {error}"[:300])


def syscall(name, *arguments):
    """A system call by its name, past all that Python checks."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    whole = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    result = libc.syscall(ctypes.c_long(NR[name]), *whole)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def read(path):
    with open(path, "rb") as file:
        return file.read(4096)


def send(kind, body, length=None):
    """A frame to the host, past the runtime. `length` is what its head says."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    send_raw(struct.pack("<IB", len(body) if length is None else length, kind) + body)


def send_raw(whole):
    left = memoryview(whole)
    while left:
        left = left[os.write(3, left) :]


def done(**changed):
    """The body of a final frame."""
    body = dict(ending=dict(kind="returned", value=None), written=[], removed=[], not_carried=[], statements_done=1)
    return dict(body, statements=1, **changed)


def variable(name="forged", content="1"):
    return dict(name=name, kind="value", content=content, type_name="int", preview="1", line=1, references=[])


def call(number, method="echo", target="demo", **more):
    """The body of a call."""
    body = dict(id=number, target=target, method=method, positional=[], keyword={}, line=1, column=0, ordinal=0)
    return dict(body, **more)
