"""Runs a GGUF model behind llama.cpp's HTTP server on the loopback address, for as long as somebody wants it.

Two processes. The supervisor listens on a Unix socket and owns the server; the server loads the model and answers HTTP.
They are two because loading holds the interpreter's lock, and because a crash of the native code must be told.

Whoever uses the server holds a connection to the socket: the kernel closes it however its holder dies. Nobody's server
ends after `linger_s`, a server without requests after `idle_s`. Lines that a client may send: `own` (I use it; answered
by a JSON line once the model is loaded or cannot be), `begin` and `end` (of a request), `status` (answered at once),
`stop`. This file knows nothing of Fimble but these lines.
"""

import ctypes
import fcntl
import json
import os
import secrets
import selectors
import signal
import socket
import subprocess
import sys
import time

LINE_LIMIT = 4096
FIRST_OWNER_S = 10.0
PREDECESSOR_S = 10.0
LEFT_BEHIND_S = 24 * 3600.0


def main():
    role, settings = sys.argv[1], json.loads(sys.argv[2])
    if role == "supervise":
        supervise(settings)
    else:
        serve(settings)


# The supervisor


def supervise(settings):
    os.umask(0o077)
    os.chdir(settings["directory"])
    os.setsid()
    lock = os.open(settings["name"] + ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    if not take(lock):
        return
    os.utime(lock)
    sweep()
    path = settings["name"] + ".sock"
    if os.path.lexists(path):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen(64)
    listener.setblocking(False)
    # Tells who started us that the door is open, and lets go of the pipe.
    os.write(1, b"open\n")
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    supervisor = Supervisor(settings, listener)
    try:
        supervisor.run()
    finally:
        os.unlink(path)
        supervisor.end_server()


def take(lock):
    """Who holds the lock although nobody answers at the socket is about to end."""
    give_up = time.monotonic() + PREDECESSOR_S
    while time.monotonic() < give_up:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(0.02)
    return False


def sweep():
    """Removes what servers left behind that ended long ago. Whoever started us holds the lock for starting."""
    for name in os.listdir("."):
        stem, ending = os.path.splitext(name)
        if ending != ".lock" or time.time() - os.stat(name).st_mtime < LEFT_BEHIND_S:
            continue
        with open(name) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            for left in (stem + ".sock", stem + ".log", name):
                if os.path.lexists(left):
                    os.unlink(left)


class Client:
    def __init__(self):
        self.unread = b""
        self.is_owner = False
        self.requests = 0


class Supervisor:
    def __init__(self, settings, listener):
        self.settings = settings
        self.selector = selectors.DefaultSelector()
        self.selector.register(listener, selectors.EVENT_READ, self.accept)
        self.clients = {}
        self.started = self.last_used = self.last_owned = time.monotonic()
        self.was_owned = False
        self.requests = 0
        self.state = {"state": "loading"}
        self.over = False
        self.key = secrets.token_hex(16)
        self.server = subprocess.Popen(
            [sys.executable, "-I", __file__, "serve", json.dumps({**settings, "parent": os.getpid()})],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        # Not an argument: those can be read by every user of the machine.
        self.server.stdin.write(self.key.encode() + b"\n")
        self.server.stdin.close()
        self.said = b""
        self.selector.register(self.server.stdout, selectors.EVENT_READ, self.hear)

    def run(self):
        while not self.over:
            self.attend(self.time_left())
            if self.time_left() <= 0.0:
                # A request may have been announced at this very moment.
                self.attend(0.0)
                self.over = self.over or self.time_left() <= 0.0

    def attend(self, seconds):
        for key, _ in self.selector.select(timeout=seconds):
            key.data(key.fileobj)

    def time_left(self):
        """Seconds until nobody wants the server any more, if nothing happens."""
        now = time.monotonic()
        left = 3600.0
        if not any(client.is_owner for client in self.clients.values()):
            linger = self.settings["linger_s"]
            left = self.last_owned + (linger if self.was_owned else max(linger, FIRST_OWNER_S)) - now
        if self.state["state"] == "ready" and not any(client.requests for client in self.clients.values()):
            left = min(left, self.last_used + self.settings["idle_s"] - now)
        return max(left, 0.0)

    def accept(self, listener):
        connection, _ = listener.accept()
        connection.setblocking(False)
        self.clients[connection] = Client()
        self.selector.register(connection, selectors.EVENT_READ, self.read)

    def read(self, connection):
        client = self.clients[connection]
        try:
            data = connection.recv(LINE_LIMIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        client.unread += data
        if not data or len(client.unread) > LINE_LIMIT:
            return self.drop(connection)
        *lines, client.unread = client.unread.split(b"\n")
        for line in lines:
            self.take(connection, client, line)

    def take(self, connection, client, line):
        if line == b"own":
            client.is_owner = self.was_owned = True
            self.last_used = time.monotonic()
            if self.state["state"] != "loading":
                self.tell(connection)
        elif line == b"begin":
            client.requests += 1
            self.requests += 1
            self.last_used = time.monotonic()
        elif line == b"end":
            client.requests = max(client.requests - 1, 0)
            self.last_used = time.monotonic()
        elif line == b"status":
            self.tell(connection)
        elif line == b"stop":
            self.over = True

    def drop(self, connection):
        client = self.clients.pop(connection)
        self.selector.unregister(connection)
        connection.close()
        if client.is_owner:
            self.last_owned = time.monotonic()
        if client.requests:
            self.last_used = time.monotonic()

    def tell(self, connection):
        told = {
            **self.state,
            "pid": os.getpid(),
            "uptime_s": time.monotonic() - self.started,
            "owners": sum(client.is_owner for client in self.clients.values()),
            "requests": self.requests,
        }
        try:
            connection.send(json.dumps(told).encode() + b"\n")
        except OSError:
            pass  # It is about to be dropped: its end shows as an end of file.

    def hear(self, pipe):
        data = os.read(pipe.fileno(), LINE_LIMIT)
        self.said += data
        if not data:
            self.selector.unregister(pipe)
            status = self.server.wait()
            if self.state["state"] == "loading":
                how = f"signal {-status}" if status < 0 else f"status {status}"
                self.state = {"state": "failed", "message": f"the server ended with {how}"}
            self.over = True
        elif b"\n" in self.said and self.state["state"] == "loading":
            said = json.loads(self.said.split(b"\n")[0])
            self.state = {"state": "ready", "key": self.key, **said} if "port" in said else {"state": "failed", **said}
            self.last_used = time.monotonic()
        else:
            return
        for connection, client in self.clients.items():
            if client.is_owner:
                self.tell(connection)

    def end_server(self):
        # It keeps nothing, so nothing is lost by the short way.
        self.server.kill()
        self.server.wait()


# The server


def serve(settings):
    die_with(settings["parent"])
    key = sys.stdin.readline().strip()
    # Native code may print; only our own line goes to the supervisor.
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    port = settings["port"]
    if port and not is_free(port):
        return tell(report, {"message": f"port {port} is taken", "cause": "port"})
    try:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = settings["model"]
        params.hostnames = ["127.0.0.1"]
        params.port = port
        params.api_keys = [key]
        # One slot for conversations and one for texts with a hole, each with the whole context.
        params.n_parallel = 2
        params.n_ctx = settings["context_tokens"] * params.n_parallel
        # An infill is cut to a batch without a word, so a batch is as long as the context.
        params.n_batch = settings["context_tokens"]
        params.cpuparams.n_threads = settings["threads"]
        params.cache_ram_mib = settings["cache_mib"]
        os.makedirs(settings["heads"], mode=0o700, exist_ok=True)
        params.slot_save_path = settings["heads"] + "/"
        params.ui = False
        params.endpoint_slots = False
        server = xllamacpp.Server(params)
    except Exception as error:
        return tell(report, {"message": str(error), "cause": "load"})
    tell(report, {"port": int(server.listening_address.rsplit(":", 1)[1])})
    while True:
        signal.pause()


def tell(report, said):
    report.write(json.dumps(said) + "\n")
    report.flush()


def is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def die_with(parent):
    """The kernel kills this process when its parent dies, however that dies."""
    set_parent_death_signal = 1
    ctypes.CDLL(None, use_errno=True).prctl(set_parent_death_signal, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)


if __name__ == "__main__":
    main()
