#!/usr/bin/env python3
# Protects: scripts/draw_preset.py draws the same distinct problems for a seed, and others for another; bad options are
# refused.
import json
import pathlib
import subprocess
import sys
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "draw_preset.py"


def run(*options):
    return subprocess.run([sys.executable, str(SCRIPT), *options], capture_output=True, text=True, check=False)


def problems(*options):
    return json.loads(run(*options).stdout)["problems"]


class DrawPreset(unittest.TestCase):
    def test_a_seed_determines_distinct_problems(self):
        drawn = problems("--seed", "3", "--times", "3")
        self.assertEqual(len(drawn), 3 * 107)
        self.assertEqual(len({json.dumps(one, sort_keys=True) for one in drawn}), len(drawn))
        self.assertEqual(drawn, problems("--seed", "3", "--times", "3"))
        self.assertNotEqual(drawn, problems("--seed", "4", "--times", "3"))

    def test_only_selects_operations(self):
        self.assertEqual({one["op"] for one in problems("--seed", "1", "--only", "gemm,argmax")}, {"gemm", "argmax"})

    def test_bad_options_are_refused(self):
        for options in (["--only", "gem"], ["--times", "0"]):
            refused = run("--seed", "1", *options)
            self.assertEqual(refused.returncode, 2)
            self.assertRegex(refused.stderr, r"draw_preset\.py: error: --(only|times): .*\n\Z")


if __name__ == "__main__":
    unittest.main()
