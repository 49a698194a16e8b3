"""Says when a module was imported, whoever did so and however: a program, a package, `__import__` under a made-up name.

It does not know what the module is for.
"""

import _thread
import sys


def when_imported(name, then):
    """Calls `then()` once, right after this thread imported the module of that name.

    Not if it is there already, nor if another thread imports it."""
    sys.meta_path.insert(0, _Finder(name, then))


def meet(module, then):
    """Calls `then()` now if the module of that name is there, else right after this thread imported it."""
    if module in sys.modules:
        then()
    else:
        when_imported(module, then)


_before = []


def begin():
    """Takes note of how modules are found, before a program changes it."""
    _before[:] = sys.meta_path[:], sys.path[:], sys.path_hooks[:], sys.path_importer_cache.copy()


def forget():
    """Modules are found as they were at the beginning, and nothing is called any more."""
    if _before:
        sys.meta_path, sys.path, sys.path_hooks, sys.path_importer_cache = (one.copy() for one in _before)


class _Finder:
    """Finds nothing by itself: it has the others' loader tell when it is through."""

    def __init__(self, name, then):
        self._name, self._then, self._thread = name, then, _thread.get_ident()

    def find_spec(self, name, path=None, target=None):
        if name != self._name or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        for finder in list(sys.meta_path):
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                if spec.loader is not None and _thread.get_ident() == self._thread:
                    spec.loader = _Loader(spec.loader, self._then)
                return spec
        return None


class _Loader:
    """Another loader, and what follows it."""

    def __init__(self, loader, then):
        self._loader, self._then = loader, then

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._then()
