"""Protects: properties of the whole tree: layout, file length, formatting, scripts, presets,
links."""

import json
import pathlib
import re
import shutil
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

TOP_LEVEL = {
    "CMakeLists.txt", "CMakePresets.json", "README.md", "CONTRIBUTING.md", "CHANGELOG.md",
    "LICENSE", "tuner", "kernels", "runtime", "presets", "results", "db", "scripts", "tests",
    "docs", "cmake",
}
SOURCE_SUFFIXES = {".cpp", ".hpp", ".comp", ".glsl", ".hip", ".py", ".sh", ".cmake", ".sql"}
LONGEST_FILE = 450  # lines; the rule is "about 400"
CLANG_FORMAT = "clang-format-14"  # formats depend on the version; Debian 12 and Ubuntu 24.04 have this one


def tracked_files():
    """Returns the paths of all files of the project, committed or not yet, relative to the root."""
    # safe.directory: a checkout mounted into a container belongs to another user.
    listing = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others",
         "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = {name for name in listing.stdout.split("\0") if name}
    return sorted(name for name in names if (ROOT / name).is_file())


def source_files(*suffixes):
    return [name for name in tracked_files() if pathlib.Path(name).suffix in suffixes]


def shell_scripts():
    return source_files(".sh") + [".ci/run"]


def tool(name):
    path = shutil.which(name)
    if path is None:
        raise AssertionError(f"{name} is not installed; scripts/setup.sh test installs it")
    return path


class TopLevel(unittest.TestCase):
    def test_holds_exactly_what_it_should(self):
        found = {name.split("/")[0] for name in tracked_files()}
        self.assertEqual({name for name in found if not name.startswith(".")}, TOP_LEVEL)

    def test_license_is_apache_2(self):
        text = (ROOT / "LICENSE").read_text()
        self.assertIn("Apache License", text)
        self.assertIn("Version 2.0, January 2004", text)


class FileLength(unittest.TestCase):
    def test_sources_stay_short(self):
        lengths = {name: len((ROOT / name).read_text().splitlines())
                   for name in source_files(*SOURCE_SUFFIXES)}
        self.assertGreater(len(lengths), 0)
        self.assertEqual({name: n for name, n in lengths.items() if n > LONGEST_FILE}, {})


class Formatting(unittest.TestCase):
    def test_clang_format_has_nothing_to_change(self):
        files = source_files(".cpp", ".hpp")
        self.assertGreater(len(files), 0)
        result = subprocess.run([tool(CLANG_FORMAT), "--dry-run", "-Werror", *files], cwd=ROOT,
                                capture_output=True, text=True)
        self.assertEqual(result.returncode, 0,
                         f"run {CLANG_FORMAT} -i on the files below\n{result.stderr}")


class Scripts(unittest.TestCase):
    def test_shell_scripts_pass_shellcheck(self):
        result = subprocess.run([tool("shellcheck"), "--external-sources", *shell_scripts()],
                                cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_shell_scripts_parse_and_are_executable(self):
        self.assertGreater(len(shell_scripts()), 1)
        for name in shell_scripts():
            with self.subTest(name):
                self.assertTrue((ROOT / name).stat().st_mode & 0o111, "is not executable")
                result = subprocess.run(["bash", "-n", name], cwd=ROOT, capture_output=True,
                                        text=True)
                self.assertEqual(result.returncode, 0, result.stderr)


class Presets(unittest.TestCase):
    def test_presets_say_what_they_are(self):
        presets = sorted(set((ROOT / "presets").glob("*.json")) - {ROOT / "presets/schema.json"})
        self.assertGreater(len(presets), 0)
        for file in presets:
            with self.subTest(file.name):
                preset = json.loads(file.read_text())
                self.assertEqual(preset["name"], file.stem)
                self.assertIn("summary", preset)


class Templates(unittest.TestCase):
    """NVIDIA's compiler loads memory that it takes for constant before a kernel has waited for earlier launches."""
    CONSTANT = re.compile(r"const \w+ ?\* ?__restrict__|ld\.global\.nc|__ldg\b")

    def test_nothing_that_kernels_read_is_said_to_be_constant(self):
        names = [name for name in source_files(".hip") if name.startswith("kernels/templates/")]
        self.assertGreater(len(names), 100)
        for name in names:
            with self.subTest(name):
                self.assertIsNone(self.CONSTANT.search((ROOT / name).read_text()))


class Links(unittest.TestCase):
    LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")

    def test_relative_links_lead_somewhere(self):
        links = [(name, target) for name in source_files(".md")
                 for target in self.LINK.findall((ROOT / name).read_text()) if "://" not in target]
        self.assertGreater(len(links), 100)
        for name, target in links:
            with self.subTest(f"{name} -> {target}"):
                self.assertTrue(((ROOT / name).parent / target).exists())


if __name__ == "__main__":
    unittest.main()
