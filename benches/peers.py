"""Runs a peers' benchmark with Fimble among the peers: `peers.py FOLDER [arguments of its run.py]`.

The folder is copied, because it may be read-only and the benchmark writes beside its own files. Its virtualenv is used if it
has one. FIMBLE_PEER names the built `examples/peer.rs`."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def main(folder, arguments):
    with tempfile.TemporaryDirectory() as work:
        copy = Path(work, "bench")
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("venv*", "node_modules", "target"))
        for path in (copy, *copy.rglob("*")):
            path.chmod(path.stat().st_mode | 0o200)
        shutil.copy(Path(__file__).with_name("fimble_peer.py"), copy / "peers" / "fimble_peer.py")
        for name in ("venv", "node_modules"):
            if Path(folder, name).exists():
                (copy / name).symlink_to(Path(folder, name).resolve())
        python = Path(os.environ.get("PEERS_PYTHON") or copy / "venv" / "bin" / "python")
        python = python if python.exists() else Path(sys.executable)
        asked = arguments or ["--peers", "fimble_peer,monty,monty_async,py4j_java,subprocess_naive,zygote_prefork,zygote_session"]
        result = subprocess.run([python, "run.py", "--no-limits", *asked], cwd=copy)
        for log in copy.glob("*.log"):
            if text := log.read_text().strip():
                print(f"--- {log.name}\n{text[-2000:]}", file=sys.stderr)
        return result.returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
