"""Protects: greta-bench accepts every problem that scripts/draw_preset.py draws, of all operations."""
import json
import subprocess
import sys
import unittest

from bench_case import BenchCase
from cli_case import SOURCE


class DrawnPresets(BenchCase):
    def draw(self, seed):
        drawn = subprocess.run([sys.executable, "-B", str(SOURCE / "scripts/draw_preset.py"), "--seed", str(seed)],
                               capture_output=True, text=True, check=True)
        return json.loads(drawn.stdout)

    def look_up(self, preset):
        """Looks each problem up and measures none."""
        return self.bench("--preset", self.preset(**preset), "--device", "vulkan:0", "--compute-only", "--no-shipped",
                          "--filter", "no benchmark has this name")

    def test_each_problem_is_valid(self):
        preset = self.draw(2)
        result = self.look_up(preset)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(result.stderr, rf"of {len(preset['problems'])} problems not tuned on vulkan:0")
        self.assertIn("matches no benchmark", result.stderr)

    def test_an_invalid_one_is_refused(self):
        preset = self.draw(1)
        wrong = next(i for i, one in enumerate(preset["problems"]) if one["op"] == "quantized_gemm")
        preset["problems"][wrong]["k"] += 16
        result = self.look_up(preset)
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, rf"problems\[{wrong}\]\.k: .*must be a multiple of")


if __name__ == "__main__":
    unittest.main()
