# What every round must find, whatever was run before. Printed, and compared with what the first round found.
import builtins
import json
import os
import signal
import sys
import tempfile
import threading



def is_open(number):
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


here = os.getcwd()
print(os.listdir("."), os.path.abspath("x") == here + "/x", print is builtins.print, str(7), "x".upper())
print(oct(os.stat(here).st_mode), oct(os.umask(0o022)))
with tempfile.NamedTemporaryFile("w", dir=here, delete=False) as file:
    file.write("x")
with open(file.name) as file:
    print(file.read())
os.remove(file.name)
print(json.dumps([1, "ä"]), len(sys.path), __name__, "left_behind" in dir(builtins))
print([str(signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGINT)], signal.alarm(0))
print(threading.active_count(), sorted(number for number in range(20) if is_open(number)))
