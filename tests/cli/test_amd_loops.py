"""Protects: main loops of AMD kernels do not get worse than the recorded ones, and code objects can
be inspected."""
import importlib.util
import json
import subprocess
import sys
import unittest

from cli_case import SOURCE, TUNE, WHOLE, Case

SCRIPT = SOURCE / "scripts" / "amd_loops.py"


def load_script():
    spec = importlib.util.spec_from_file_location("amd_loops", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class AmdLoops(Case):
    def test_no_figure_is_worse_than_the_recorded_one(self):
        words = [] if WHOLE else ["--fast"]
        result = subprocess.run([sys.executable, "-B", SCRIPT, "--check", *words, "--tune", TUNE],
                                capture_output=True, text=True, check=False)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))

    def test_worse_figures_are_named(self):
        script = load_script()
        before = {"matrix_share": 0.2, "vector_per_matrix": 3.0, "waves": 2, "lds_conflicts": 0.0}
        self.assertEqual(list(script.worse(before, dict(before))), [])
        for name, value, text in [
                ("matrix_share", 0.19, "matrix share of instructions: 0.2 before, 0.19 now"),
                ("vector_per_matrix", 3.5,
                 "vector instructions for each matrix instruction: 3 before, 3.5 now"),
                ("waves", 1, "waves a SIMD: 2 before, 1 now"),
                ("lds_conflicts", 8.0, "LDS cycles of conflicts: 0 before, 8 now"),
                ("lds_conflicts", None, "LDS cycles of conflicts: 0 before, unknown now")]:
            self.assertEqual(list(script.worse(before, dict(before, **{name: value}))), [text])
        better = {"matrix_share": 0.3, "vector_per_matrix": 2.0, "waves": 3, "lds_conflicts": 0.0}
        self.assertEqual(list(script.worse(before, better)), [])

    def test_every_problem_is_recorded_on_every_architecture(self):
        script = load_script()
        record = json.loads(script.RECORD.read_text())
        found, fast = script.problems()
        self.assertGreater(fast, 0)
        self.assertEqual(list(record["problems"]), found)
        for problem, by_architecture in record["problems"].items():
            self.assertEqual(list(by_architecture), script.ARCHITECTURES, problem)
            self.assertIn(f"## {problem}\n", script.PAGE.read_text())


class Inspect(Case):
    def test_a_code_object_says_what_its_kernels_are(self):
        code = self.folder / "kernel.co"
        small = ["--m", "64", "--n", "48", "--k", "256", "--dtype", "f16", "--variant", "matrix"]
        compiled = self.run_tune("compile", "gemm", *small, "--arch", "gfx942", "--code-object", code,
                                 "--json")
        (known,) = json.loads(compiled.stdout)["configurations"][0]["kernels"]
        result = self.run_tune("inspect", code, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        (contents,) = json.loads(result.stdout)["code_objects"]
        self.assertEqual(contents["architecture"], "gfx942")
        (kernel,) = contents["kernels"]
        for name in ("registers", "threads"):
            self.assertEqual(kernel[name], known[name])
        for name in ("instructions", "matrix", "vector", "scalar", "drains", "lds_least_cycles"):
            self.assertEqual(kernel["main_loop"][name], known["main_loop"][name])
        self.assertIsNotNone(known["main_loop"]["lds_cycles"])
        self.assertIsNone(kernel["main_loop"]["lds_cycles"])
        text = self.run_tune("inspect", code).stdout
        self.assertIn("gfx942", text)
        self.assertRegex(text, "main loop +[0-9]+ instructions, [0-9]+ matrix")
        self.assertIn("conflicts unknown: the kernel's arguments are unknown", text)

    def test_other_files_are_refused_in_one_line(self):
        self.refused(self.run_tune("inspect"), 2, "FILE")
        self.refused(self.run_tune("inspect", self.folder / "missing.co"), 2, "missing.co")
        other = self.folder / "other.co"
        other.write_bytes(b"\x7fELF" + bytes(200))
        self.refused(self.run_tune("inspect", other), 2, "not an AMD code object")


if __name__ == "__main__":
    unittest.main(verbosity=2)
