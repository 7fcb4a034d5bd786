"""Protects: scripts/check_layers.py detects each kind of violation, planted in a temporary tree."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "check_layers.py"

SOUND = {
    "runtime/device/layers.hpp": "namespace greta {\n",
    "runtime/device/result.hpp": '#include "runtime/device/layers.hpp"\n\nnamespace greta::device {\n',
    "runtime/device/vulkan/backend.cpp": '#include "runtime/device/result.hpp"\n',
    "kernels/model/space.hpp": '#include "runtime/device/result.hpp"\n',
    "db/trial.hpp": '#include "kernels/model/space.hpp"\n',
    "runtime/pipeline/pipeline.hpp": '#include "db/trial.hpp"\n',
    "tuner/search/strategy.hpp": '#include "db/trial.hpp"\n',
    "tuner/cli/main.cpp": '#include "tuner/search/strategy.hpp"\nauto home = std::getenv("HOME");\n',
}


class Rules(unittest.TestCase):
    def check(self, planted):
        with tempfile.TemporaryDirectory() as folder:
            for path, text in {**SOUND, **planted}.items():
                file = pathlib.Path(folder, path)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            return subprocess.run([sys.executable, SCRIPT, folder], capture_output=True, text=True)

    def assert_rejected(self, planted, *expected):
        result = self.check(planted)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        for text in expected:
            self.assertIn(text, result.stdout)

    def test_sound_tree_passes(self):
        result = self.check({})
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("8 files, 0 violations", result.stdout)

    def test_device_must_not_know_kernels(self):
        self.assert_rejected({"runtime/device/x.cpp": '\n#include "kernels/catalog.hpp"\n'},
                             "runtime/device/x.cpp:2:", "must not include kernels")

    def test_kernels_must_not_know_the_database(self):
        self.assert_rejected({"kernels/x.cpp": '#  include "db/trial.hpp"\n'}, "kernels/x.cpp:1:")

    def test_database_must_not_know_the_tuner(self):
        self.assert_rejected({"db/x.cpp": '#include "tuner/search/strategy.hpp"\n'}, "db/x.cpp:1:")

    def test_tuner_must_not_know_its_command_line(self):
        self.assert_rejected({"tuner/x.cpp": '#include "tuner/cli/options.hpp"\n'}, "tuner/x.cpp:1:")

    def test_a_source_includes_its_own_header_first(self):
        for text in ('#include <vector>\n#include "db/trial.hpp"\n',
                     '#include "runtime/device/result.hpp"\n#include "db/trial.hpp"\n', "int x;\n"):
            self.assert_rejected({"db/trial.cpp": text},
                                 "db/trial.cpp: must include db/trial.hpp before anything else")
        result = self.check({"db/trial.cpp": '// About it.\n#include "db/trial.hpp"\n#include <vector>\n'})
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_pipeline_and_tuner_are_strangers(self):
        self.assert_rejected(
            {"runtime/pipeline/x.cpp": '#include "tuner/search/strategy.hpp"\n',
             "tuner/x.cpp": '#include "runtime/pipeline/pipeline.hpp"\n'},
            "runtime/pipeline/x.cpp:1:", "tuner/x.cpp:1:", "2 violations")

    def test_relative_include_is_in_no_layer(self):
        self.assert_rejected({"db/x.cpp": '#include "trial.hpp"\n'}, "'trial.hpp' is in no layer")

    def test_unknown_folder(self):
        self.assert_rejected({"runtime/extras/x.cpp": "\n"}, "runtime/extras/x.cpp: in no layer")

    def test_include_cycle(self):
        self.assert_rejected(
            {"db/a.hpp": '#include "db/b.hpp"\n', "db/b.hpp": '#include "db/c.hpp"\n',
             "db/c.hpp": '#include "db/a.hpp"\n'},
            "include cycle: db/a.hpp -> db/b.hpp -> db/c.hpp -> db/a.hpp", "1 violations")

    def test_environment_is_read_by_the_command_line_only(self):
        self.assert_rejected({"tuner/x.cpp": 'const char* home = std::getenv("HOME");\n'},
                             "tuner/x.cpp:1:", "must not read the environment")

    def test_one_file_prints(self):
        for code in ('fmt::print("{}", name);', "std::fputs(text, stderr);", "std::cout << name;",
                     'printf("%s", name);', "std::cerr << name;", 'fmt::print(stderr, "x");'):
            self.assert_rejected({"tuner/cli/x.cpp": code + "\n"}, "tuner/cli/x.cpp:1:", "must not print")
        self.assertEqual(self.check({"tuner/report/print.cpp": "std::fputs(text, stderr);\n"}).returncode, 0)

    def test_one_file_opens_what_is_read(self):
        for code in ("std::ifstream in(file);", "const int file = ::open(path.c_str(), O_RDONLY);",
                     'auto* file = std::fopen(path, "r");'):
            self.assert_rejected({"db/x.cpp": code + "\n"}, "db/x.cpp:1:", "must not open a file to read")
        self.assertEqual(self.check({"runtime/device/system/input_file.cpp": "open(path, O_RDONLY);\n"}).returncode, 0)

    def test_a_file_declares_names_in_its_layers_namespace(self):
        for path, text in (("db/x.cpp", "namespace greta {\n"), ("db/x.cpp", "namespace greta::dbase {\n"),
                           ("tuner/cli/x.cpp", "namespace greta::tuner {\n")):
            self.assert_rejected({path: text}, f"{path}:1:", "declares names in greta::")
        self.assertEqual(self.check({"db/x.cpp": "namespace greta::db::sqlite {\n"}).returncode, 0)

    def test_a_source_defines_no_type_that_others_could(self):
        for before in ("", "namespace {\n}  // namespace\n", "namespace other {\n"):
            self.assert_rejected({"db/x.cpp": before + "struct Row {\n"}, "another source may define Row")
        for sound in ("namespace {\nstruct Row {\n", "namespace x {\nstruct Row {\n", "struct Table::Row {\n"):
            self.assertEqual(self.check({"db/x.cpp": sound}).returncode, 0, sound)

    def test_a_header_sees_the_layers_below(self):
        self.assert_rejected({"db/x.hpp": "#include <string>\n"}, "db/x.hpp: must include runtime/device/layers.hpp")

    def test_environment_in_a_comment_is_no_violation(self):
        self.assertEqual(self.check({"tuner/x.cpp": "// never call getenv() here\n"}).returncode, 0)

    def test_empty_tree_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            result = subprocess.run([sys.executable, SCRIPT, folder], capture_output=True, text=True)
        self.assertEqual(result.returncode, 1)


if __name__ == "__main__":
    unittest.main()
