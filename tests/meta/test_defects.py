"""Protects: the list of defects that the suite must find (scripts/plant_defects.py) does not rot. Whether each is found
takes too long for the suite; that each can be planted, and that its suites exist, does not."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import plant_defects  # noqa: E402

FEWEST = 20


def folder_of(program):
    """The folder of a test program, by the CMakeLists.txt that declares it."""
    if program in ("cli", "python"):
        return ROOT / "tests" / program
    folders = [file.parent for file in (ROOT / "tests").rglob("CMakeLists.txt")
               if re.search(rf"^greta_test\({program}\b", file.read_text(), re.MULTILINE)]
    return folders[0] if len(folders) == 1 else None


def has_suite(suite):
    """Whether a test program's folder has a suite: of GoogleTest, or a class of Python's unittest."""
    program, name = suite.split(".", 1)
    folder = folder_of(program)
    if folder is None:
        return False
    declared = re.compile(rf"\bTEST(_F|_P)?\({name},|\bTYPED_TEST(_P)?\({name},|^class {name}\(", re.MULTILINE)
    return any(declared.search(file.read_text()) for pattern in ("*.cpp", "*.py") for file in folder.glob(pattern))


class List(unittest.TestCase):
    def setUp(self):
        self.defects = plant_defects.read_all()

    def test_is_long_enough_and_names_differ(self):
        names = [re.sub(r"^\d+-", "", defect.name) for defect in self.defects]
        self.assertGreaterEqual(len(names), FEWEST)
        self.assertEqual(len(set(names)), len(names))

    def test_every_patch_applies(self):
        for defect in self.defects:
            with self.subTest(defect.name):
                self.assertIsNone(plant_defects.apply(defect, ROOT, "--check"))

    def test_every_suite_exists(self):
        for defect in self.defects:
            for suite in defect.suites:
                with self.subTest(defect.name, suite=suite):
                    self.assertTrue(has_suite(suite), f"there is no suite {suite}")


class Check(unittest.TestCase):
    """The checks above can fail."""

    def test_a_patch_of_changed_text_does_not_apply(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            (tree / "code").write_text("one\ntwo\nthree\n")
            file = tree / "01-a.patch"
            file.write_text("Defect: a\nFound by: db.Damage\n--- a/code\n+++ b/code\n@@ -1,3 +1,3 @@\n"
                            " one\n-two\n+2\n three\n")
            defect = plant_defects.read(file)
            self.assertIsNone(plant_defects.apply(defect, tree, "--check"))
            self.assertIsNone(plant_defects.apply(defect, tree))
            self.assertEqual((tree / "code").read_text(), "one\n2\nthree\n")
            self.assertIn("does not apply", plant_defects.apply(defect, tree))

    def test_a_patch_without_its_header_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "01-a.patch"
            file.write_text("Defect: a\n--- a/code\n")
            with self.assertRaises(ValueError):
                plant_defects.read(file)

    def test_a_suite_that_is_nowhere_is_missing(self):
        self.assertFalse(has_suite("db.NoSuchSuite"))
        self.assertFalse(has_suite("nowhere.Damage"))


if __name__ == "__main__":
    unittest.main()
