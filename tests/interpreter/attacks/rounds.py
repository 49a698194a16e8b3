# What one round leaves behind for the next. After every attack of every group an observer looks; these are made for it.
#: the folder of scratch folders closed | later rounds cannot use theirs
here = os.getcwd()
attempt(lambda: os.chmod(os.path.dirname(here), 0), lambda: os.chmod("/", 0), lambda: os.chmod(".", 0))
#: scratch folders of rounds to come closed | later rounds cannot use theirs
here = os.path.dirname(os.getcwd())
for number in range(2_000):
    try:
        os.chmod(f"{here}/{number}", 0)
    except OSError:
        pass
#: files in scratch folders of rounds to come | later rounds find them
here = os.path.dirname(os.getcwd())
for number in range(2_000):
    try:
        open(f"{here}/{number}/left-behind", "w").close()
    except OSError:
        pass
#: files of its own | later rounds find them
open("left-behind", "w").write("left behind")
os.makedirs("a/b/c")
#: files of its own without rights | they cannot be removed
os.makedirs("a/b/c")
open("a/b/c/file", "x")
attempt(*(lambda path=path: os.chmod(path, 0) for path in ("a/b/c/file", "a/b/c", "a/b", "a", ".")))
#: changed modules and builtins | later rounds have them
import builtins
builtins.print = builtins.open = lambda *_: None
json.dumps = os.getcwd = os.listdir = None
sys.modules.clear()
#: changed objects of the interpreter | later rounds have them
ctypes.pythonapi.PyDict_SetItemString.argtypes = [ctypes.py_object, ctypes.c_char_p, ctypes.py_object]
ctypes.pythonapi.PyDict_SetItemString(str.__dict__.copy(), b"upper", None)
ctypes.c_long.from_address(id(7) + 24).value = 8
#: a mask, a folder, handlers and an alarm | later rounds have them
import signal
os.umask(0o777)
os.chdir("/")
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.alarm(1)
#: locks on the library's files | later rounds wait for them
import fcntl
held = open(json.__file__)
attempt(lambda: fcntl.flock(held, fcntl.LOCK_EX), lambda: fcntl.lockf(held, fcntl.LOCK_SH))
#: a thread that goes on | it is there later
import threading
threading.Thread(target=time.sleep, args=(1_000,)).start()
#: a task and calls that go on | they are there later
import asyncio
asyncio.get_event_loop().create_task(demo.forever())
later = demo.forever()
#: an end in the middle | something is left | dies
open("left-behind", "w").write("x")
os._exit(7)
#: modules prepared for later | later rounds import them
open("json.py", "w").write("raise SystemExit")
os.mkdir("encodings")
sys.path.insert(0, os.getcwd())
sys.path_importer_cache.clear()
#: names with dunders | later rounds have them
__builtins__.__dict__["left_behind"] = 1
globals()["__name__"] = "left_behind"
