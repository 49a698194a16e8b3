"""The packages that programs may import besides the standard library, and what is said about modules that are not there.

All of them are loaded before the jail is closed: afterwards no compiled code can be loaded any more.
"""

import importlib
import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES

# What `list` in the prepared folder says of them: dictionaries with `name`, `version`, `modules` and `requested`.
loaded = []

_NO_NETWORK = ("ssl", "_ssl", "_hashlib")


def load(folder):
    """Imports the packages of a prepared folder and all their compiled modules.

    Raises ImportError for one that was asked for and cannot be imported.
    """
    import json

    with open(os.path.join(folder, "packages.json"), encoding="utf-8") as file:
        listed = json.load(file)["packages"]
    for package in listed:
        for name in package["modules"] if package["requested"] else ():
            try:
                importlib.import_module(name)
            except Exception as error:
                raise ImportError(f"the package {package['name']} cannot be imported: {type(error).__name__}: {error}") from error
    for name in _compiled(os.path.join(folder, "site")):
        try:
            importlib.import_module(name)
        except Exception:  # noqa: S112
            # An optional part whose own needs are not there: a program that imports it reads the same error.
            continue
    loaded[:] = listed


def _compiled(site):
    """The dotted names of all extension modules below a folder, without those of tests."""
    names = []
    for folder, folders, files in os.walk(site):
        folders[:] = sorted(one for one in folders if one.isidentifier() and one not in ("tests", "test"))
        for file in sorted(files):
            suffix = next((suffix for suffix in EXTENSION_SUFFIXES if file.endswith(suffix)), None)
            stem = file[: -len(suffix)] if suffix else ""
            if stem.isidentifier() and "test" not in stem:
                parts = os.path.relpath(folder, site).split(os.sep) if folder != site else []
                names.append(".".join([*parts, stem]))
    return names


def explain(error):
    """Adds to an import error what can be imported in its place."""
    try:
        _explain(error)
    except Exception:
        # The program's own class, with attributes of its own.
        return


def _explain(error):
    if not isinstance(error, ImportError) or not isinstance(error.name, str):
        return
    top = error.name.partition(".")[0]
    if top in _NO_NETWORK:
        error.add_note("hint: a program has no network; call a toolkit")
    elif isinstance(error, ModuleNotFoundError):
        if top in sys.modules:
            return
        there = ", ".join(f"{one['name']} {one['version']}" for one in loaded if one["requested"])
        there = f"the standard library, {there}" if there else "the standard library"
        error.add_note(f"hint: `{top}` is not installed here; there is {there}, and the toolkits")
    elif any(str(error.path).endswith(suffix) for suffix in EXTENSION_SUFFIXES):
        error.add_note(f"hint: compiled code is loaded before programs run, and `{error.name}` was not; do without it")
