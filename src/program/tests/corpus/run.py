"""Runs programs, one after the other, with toolkits that answer like those that the checker's tests declare.

Reads a JSON list of programs, writes a JSON list of `[number, what went wrong]`. A program whose first line is
`# raises NAME` must raise that. Calls give promises as in the jail: made when they are called, awaited or asked for `result()`.
"""

import ast
import asyncio
import collections.abc
import contextlib
import importlib.util
import io
import json
import sys
from pathlib import Path

RECORDS = Path(__file__).parents[4] / "python" / "records.py"
specification = importlib.util.spec_from_file_location("records", RECORDS)
records = importlib.util.module_from_spec(specification)
specification.loader.exec_module(records)


class ToolError(Exception):
    pass


ERRORS = {
    name: type(name, (ToolError,), {})
    for name in ("UnknownOperation", "InvalidArgument", "NotFound", "Denied", "Forbidden", "Timeout", "Unavailable", "Failed")
}


class Promise(collections.abc.Coroutine):
    def __init__(self, call):
        self.error = self.value = None
        try:
            self.value = records.to_records(call())
        except ToolError as error:
            self.error = error

    def result(self):
        if self.error:
            raise self.error
        return self.value

    def send(self, value):
        raise StopIteration(self.result())

    def __await__(self):
        return self.result()
        yield

    def throw(self, kind, value=None, trace=None):
        raise kind if value is None else value

    def close(self):
        pass


class Toolkit:
    def __init__(self, **operations):
        for name, operation in operations.items():
            setattr(self, name, self.promised(operation))

    @staticmethod
    def promised(operation):
        return lambda *args, **kwargs: Promise(lambda: operation(*args, **kwargs))


def commits(limit=20, path=None):
    subjects = ["Add refunds", "Fix the fix", "Add tests", "Start"]
    rows = [
        {"sha": f"{n}abc", "author": "Ada" if n % 2 else "Bob", "subject": subject, "message": subject}
        for n, subject in enumerate(subjects)
    ]
    return rows[:limit]


def read(path, start=1, end=None):
    if path == "absent.txt":
        raise ERRORS["NotFound"]("there is no such file")
    return "# Title\n\nText with a TODO.\n"


def disks():
    return [{"mount": "/", "used_percent": 91.5}, {"mount": "/home", "used_percent": 40.0}]


def toolkits():
    service = lambda name: {"name": name, "active": name == "nginx"}
    ports = lambda: {"ports": [{"port": 80, "process": "nginx"}, {"port": 53, "process": None}], "truncated": False}
    processes = lambda sort="cpu", limit=10: [{"name": "init", "memory": 1.5, "cpu": 0.1}][:limit]
    return {
        "git_toolkit": Toolkit(
            log=commits, show=lambda revision: commits()[0], branches=lambda: ["main", "next"],
            status=lambda: {"branch": "main", "files": []},
        ),
        "host_toolkit": Toolkit(
            cpu=lambda: {"percent": 3.0}, memory=lambda: {"free": 10}, disks=disks, processes=processes, service=service,
            restart=lambda name, wait_s=5.0: None,
        ),
        "files_toolkit": Toolkit(
            list=lambda path=".": [{"name": "main.rs", "is_dir": False}], read=read,
            search=lambda pattern, paths=(): [{"path": "src/a.rs", "line": 1}],
        ),
        "system_toolkit": Toolkit(
            send_message=lambda text: None, ask_user=lambda question, choices=None: (choices or ["yes"])[0],
            now=lambda: "2026-01-01T00:00:00", sleep=lambda seconds: None,
        ),
        "ops_toolkit": Toolkit(ports=ports, disks=disks),
    }


def carried():
    async def fetch(name):
        return name

    return {
        "services": [], "rows": [], "limit": 5, "count": len, "helper": lambda: 1, "fetch": fetch,
    }


async def run(program):
    names = {"__name__": "__main__", "ToolError": ToolError, "Record": records.Record, **ERRORS, **toolkits(), **carried()}
    code = compile(program, "<program>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    waited = eval(code, names)
    if waited is not None:
        await waited


def main():
    wrong = []
    for number, program in enumerate(json.load(sys.stdin)):
        head = program.partition("\n")[0]
        expected = head.removeprefix("# raises ") if head.startswith("# raises ") else None
        raised = None
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                asyncio.run(run(program))
            except BaseException as error:
                raised = error
        if (type(raised).__name__ if raised is not None else None) != expected:
            wrong.append([number, repr(raised)])
    json.dump(wrong, sys.stdout)


main()
