"""What a bare fork of python3 takes for a round's work after 30 ms idle: no jail, no statements told apart, nothing looked at.

Reads {"source": …, "variables": {name: JSON}} and prints the milliseconds, sorted, as a JSON list."""

import asyncio, dataclasses, datetime, decimal, gc, inspect, json, os, re, socket, statistics, sys, time, typing, uuid  # noqa: E401, F401

ROUNDS = 200


def work(text):
    run = json.loads(text)
    namespace = {name: json.loads(content) for name, content in run["variables"].items()}
    exec(compile(run["source"], "<program>", "exec"), namespace)
    del namespace["__builtins__"]
    return json.dumps(namespace).encode()


def measure(text):
    ours, theirs = socket.socketpair()
    process = os.fork()
    if not process:
        sys.stdout = open(os.devnull, "w")
        work(text)
        theirs.send(b"!")
        theirs.sendall(work(theirs.recv(1 << 20)))
        os._exit(0)
    theirs.close()
    ours.recv(1)
    time.sleep(0.03)
    begun = time.perf_counter()
    ours.sendall(text)
    while ours.recv(1 << 20):
        pass
    os.waitpid(process, 0)
    ours.close()
    return (time.perf_counter() - begun) * 1e3


text = sys.stdin.buffer.read()
gc.collect()
gc.freeze()
print(json.dumps(sorted(measure(text) for _ in range(ROUNDS))))
