"""Lists what pip installed into a folder. Runs outside of the jail: `python -I package_list.py SITE NAME…`.

Prints one JSON list of `{"name", "version", "modules", "requested"}`, sorted by name, and makes the folder readable for every
user. Exits with 3 and a sentence on standard error if a NAME is not there.
"""

import json
import os
import re
import sys
from importlib.metadata import distributions


def main(site, names):
    wanted = {canonical(name) for name in names}
    found = []
    for one in distributions(path=[site]):
        name = canonical(one.metadata["Name"])
        found.append({"name": name, "version": one.version, "modules": modules(one), "requested": name in wanted})
    missing = sorted(wanted - {one["name"] for one in found})
    if missing:
        print(f"pip did not install {', '.join(missing)}", file=sys.stderr)
        return 3
    for folder, _, files in os.walk(site):
        os.chmod(folder, 0o755)
        for file in files:
            os.chmod(os.path.join(folder, file), 0o644)
    print(json.dumps(sorted(found, key=lambda one: one["name"])))
    return 0


def canonical(name):
    """The one spelling of a package's name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def modules(distribution):
    """The top-level modules that it brings: what it says itself, otherwise what its files show."""
    said = (distribution.read_text("top_level.txt") or "").split()
    names = said or [_module(file.parts) for file in distribution.files or ()]
    return sorted({name for name in names if name and name.isidentifier() and not name.startswith("_")})


def _module(parts):
    if len(parts) > 1:
        return None if parts[0].endswith((".dist-info", ".data", ".libs")) or parts[0] == "bin" else parts[0]
    stem, _, ending = parts[0].partition(".")
    return stem if ending in ("py", "so", "abi3.so") or ending.startswith("cpython-") else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
