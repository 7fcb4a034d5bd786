#!/usr/bin/env python3
# Protects: scripts/draw_preset.py draws the same distinct problems for a seed, and others for another; bad options are
# refused. Quantised problems have whole groups and blocks, and all forms and numbers of rows.
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
        self.assertEqual(len(drawn), 3 * 247)
        self.assertEqual(len({json.dumps(one, sort_keys=True) for one in drawn}), len(drawn))
        self.assertEqual(drawn, problems("--seed", "3", "--times", "3"))
        self.assertNotEqual(drawn, problems("--seed", "4", "--times", "3"))

    def test_quantised_problems_are_what_the_formats_need(self):
        ops = ["scaled_gemm", "quantized_gemm", "scaled_grouped_gemm", "quantized_grouped_gemm", "quantize"]
        drawn = problems("--seed", "2", "--times", "20", "--only", ",".join(ops))
        for one in drawn:
            with self.subTest(**one):
                of_scales = {"block": 128, "mx": 32}.get(one.get("scales"), 4 if one["op"] == "quantize" else 16)
                step = one.get("group") or of_scales
                self.assertEqual(one["cols" if one["op"] == "quantize" else "k"] % step, 0)
                self.assertTrue(one["op"] == "quantize" or one["m"] >= 1 and one["n"] >= 64)
        for field, values in (("format", {"e4m3", "e5m2", "int8", "e2m1"}), ("scales", {"tensor", "row", "block", "mx"}),
                              ("format_b", {"e2m1"}),
                              ("group", {32, 64, 128}), ("weights", {"int4", "int8"}), ("zeros", {"none", "groups"}),
                              ("fused", {"none", "rmsnorm", "add_rmsnorm", "layernorm", "silu_mul"})):
            self.assertEqual({one[field] for one in drawn if field in one}, values)
        for op in ops[:2]:
            rows = [one["m"] for one in drawn if one["op"] == op]
            self.assertTrue(any(m == 1 for m in rows) and any(m > 4096 for m in rows) and any(m > 16 and m % 2 for m in rows))

    def test_only_selects_operations(self):
        self.assertEqual({one["op"] for one in problems("--seed", "1", "--only", "gemm,argmax")}, {"gemm", "argmax"})

    def test_bad_options_are_refused(self):
        for options in (["--only", "gem"], ["--times", "0"]):
            refused = run("--seed", "1", *options)
            self.assertEqual(refused.returncode, 2)
            self.assertRegex(refused.stderr, r"draw_preset\.py: error: --(only|times): .*\n\Z")


if __name__ == "__main__":
    unittest.main()
