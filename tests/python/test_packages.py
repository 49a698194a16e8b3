"""Packages: what is loaded ahead, what pip's folder holds, and what is said of a module that is not there."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from child import load

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = ROOT / "python" / "package_list.py"


def write(folder, files):
    for name, text in files.items():
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Loading(unittest.TestCase):
    def setUp(self):
        self.packages = load().packages
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        sys.path.insert(0, f"{self.folder}/site")
        self.addCleanup(sys.path.remove, f"{self.folder}/site")
        self.addCleanup(self.packages.loaded.clear)

    def listed(self, name, requested=True):
        packages = [{"name": name, "version": "1.0", "modules": [name], "requested": requested}]
        write(self.folder, {"packages.json": json.dumps({"packages": packages})})
        return packages

    def test_what_was_asked_for_is_imported_and_told(self):
        packages = self.listed("asked_for")
        write(self.folder, {"site/asked_for/__init__.py": "VALUE = 1\n"})
        self.packages.load(self.folder)
        self.assertEqual((sys.modules["asked_for"].VALUE, self.packages.loaded), (1, packages))

    def test_a_package_that_cannot_be_imported_is_named(self):
        self.listed("breaks")
        write(self.folder, {"site/breaks/__init__.py": "1 / 0\n"})
        with self.assertRaisesRegex(ImportError, "the package breaks cannot be imported: ZeroDivisionError"):
            self.packages.load(self.folder)
        self.assertEqual(self.packages.loaded, [])

    def test_what_another_one_needs_may_be_broken(self):
        self.listed("needed", requested=False)
        write(self.folder, {"site/needed/__init__.py": "1 / 0\n"})
        self.packages.load(self.folder)
        self.assertNotIn("needed", sys.modules)

    def test_compiled_modules_are_found_at_any_depth_without_tests_and_libraries(self):
        suffix = self.packages.EXTENSION_SUFFIXES[0]
        names = [f"a{suffix}", f"b/c/d{suffix}", f"b/tests/e{suffix}", f"b/_test_f{suffix}", "b.libs/libg.so", "b/h.py"]
        write(f"{self.folder}/site", dict.fromkeys(names, ""))
        self.assertEqual(self.packages._compiled(f"{self.folder}/site"), ["a", "b.c.d"])


class Explaining(unittest.TestCase):
    def setUp(self):
        self.packages = load().packages
        self.addCleanup(self.packages.loaded.clear)

    def notes(self, error):
        self.packages.explain(error)
        return getattr(error, "__notes__", [])

    def test_a_missing_module_tells_what_there_is(self):
        self.packages.loaded[:] = [
            {"name": "numpy", "version": "2.1", "requested": True},
            {"name": "six", "version": "1.0", "requested": False},
        ]
        error = ModuleNotFoundError("No module named 'pandas.core'", name="pandas.core")
        expected = "hint: `pandas` is not installed here; there is the standard library, numpy 2.1, and the toolkits"
        self.assertEqual(self.notes(error), [expected])

    def test_a_missing_part_of_what_is_there_is_left_as_it_is(self):
        self.assertEqual(self.notes(ModuleNotFoundError("No module named 'json.nothing'", name="json.nothing")), [])
        self.assertEqual(self.notes(ValueError("x")), [])

    def test_compiled_code_that_was_not_loaded_is_told_apart(self):
        error = ImportError("failed to map segment", name="a.b", path=f"/site/a/b{self.packages.EXTENSION_SUFFIXES[0]}")
        self.assertEqual(len(self.notes(error)), 1)
        self.assertIn("`a.b` was not", self.notes(error)[0])

    def test_a_class_of_the_programs_own_does_no_harm(self):
        class Own(ModuleNotFoundError):
            @property
            def name(self):
                raise RuntimeError("mine")

        self.assertEqual(self.notes(Own("x")), [])


class Listing(unittest.TestCase):
    def list(self, files, *names):
        with tempfile.TemporaryDirectory() as site:
            write(site, files)
            ran = subprocess.run([sys.executable, "-I", str(LIST), site, *names], capture_output=True, text=True, check=False)
            return ran.returncode, ran.stdout, ran.stderr

    def test_names_are_spelled_one_way_and_modules_come_from_the_files(self):
        meta = "Metadata-Version: 2.1\nName: {}\nVersion: 1.2\n"
        record = "date_util/__init__.py,,\ndate_util/x/y.py,,\nsingle.py,,\nDate.Util-1.2.dist-info/METADATA,,\n../../bin/tool,,\n"
        files = {
            "Date.Util-1.2.dist-info/METADATA": meta.format("Date.Util"),
            "Date.Util-1.2.dist-info/RECORD": record,
            "six-1.2.dist-info/METADATA": meta.format("six"),
            "six-1.2.dist-info/top_level.txt": "six\n_six\n",
        }
        code, said, _ = self.list(files, "date_util")
        expected = [
            {"name": "date-util", "version": "1.2", "modules": ["date_util", "single"], "requested": True},
            {"name": "six", "version": "1.2", "modules": ["six"], "requested": False},
        ]
        self.assertEqual((code, json.loads(said)), (0, expected))

    def test_what_is_not_there_is_named(self):
        self.assertEqual(self.list({}, "numpy"), (3, "", "pip did not install numpy\n"))


if __name__ == "__main__":
    unittest.main()
