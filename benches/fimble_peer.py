"""Fimble as a peer: a Rust host with its own tools, driven over a pipe by the benchmark's process.

The module goes into the folder `peers` of the benchmark; `benches/peers.py` puts it there. The host is `examples/peer.rs`, its
built program named by FIMBLE_PEER."""

import json
import os
import subprocess

from peer import Base, Timeout, descendants
from work import GATHER


class Peer(Base):
    NAME = "Fimble"
    MECHANISM = "jailed CPython forked from a warm zygote, a never-used process per round; tool call = JSON frame over a unix socket"
    CALL = "(await tools.{tool}({args}))"
    FANOUT = GATHER
    GATHER_CALL = "tools.{tool}({args})"

    def version(self):
        return "Fimble, release build, all layers on"

    def open(self, _tools):
        self.host = subprocess.Popen([os.environ["FIMBLE_PEER"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, code, vars_json="{}", timeout=None, capture=(), sessions=1):
        request = {"code": code, "variables": vars_json, "timeout": timeout, "sessions": sessions}
        self.host.stdin.write(json.dumps(request) + "\n")
        self.host.stdin.flush()
        line = self.host.stdout.readline()
        if not line:
            raise RuntimeError(f"the host ended: {self.host.wait()}")
        reply = json.loads(line)
        self.zygote = reply["zygote"]
        if reply["failure"]:
            kind, message = reply["failure"]
            if kind == "wall":
                raise Timeout(message)
            raise MemoryError(message) if kind == "memory" else RuntimeError(message)
        return reply["output"], json.dumps(reply["variables"])

    def pids(self):
        return [self.zygote, *descendants(self.zygote)]

    def close(self):
        self.host.stdin.close()
        self.host.wait()


class Session:
    """A session beside another one: it owns no process while it waits."""

    def close(self):
        """Nothing to end."""


def open_many(first, count, _tools):
    first.run("x = 1", sessions=count)
    return [Session() for _ in range(count)]
