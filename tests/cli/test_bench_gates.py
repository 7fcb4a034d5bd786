"""Protects: limits of presets and of --expect as a user meets them: exit code 4 names each that is missed, with what
was measured; what can't be judged is no success; files carry the judgements."""
import json
import unittest

from bench_case import GEMM, BenchCase

SIZE = ["--m", 32, "--n", 32, "--k", 32]
NAIVE = "naive THREADS=64"
ANSWER = "kernel/gemm/f32/m=32,n=32,k=32/default"


class BenchGates(BenchCase):
    known_devices = "vulkan:0,hip-host:0"

    def run_preset(self, problems, *options, **content):
        preset = self.preset(**{"iterations": 6, "batch": 2, **content, "problems": problems})
        return self.bench("--preset", preset, "--device", "vulkan:0", "--settle", 0, "--seed", 1, *options)

    def gemm(self, *options):
        return self.bench("gemm", *SIZE, "--db", self.db, "--no-lock", "--flush", 1, "--settle", 0, "--seed", 1,
                          "--device", "vulkan:0", *options)

    def test_presets_name_limits_and_files_carry_the_judgements(self):
        file = self.folder / "out.csv"
        result = self.run_preset(
            [dict(GEMM, expect=["us <= 0.001", "us <= 1e9", "error <= 100 %", "us <= 0.001 on NVIDIA",
                                ">= 1e9x naive"]),
             dict(GEMM, k=48, expect="tflops >= 1e6"), dict(GEMM, k=64)], "--export", file)
        self.assertEqual(result.returncode, 4, result.stderr)
        missed = [line for line in result.stderr.splitlines() if line.startswith("gate missed: ")]
        self.assertEqual(len(missed), 3, result.stderr)
        self.assertRegex(missed[0], rf"^gate missed: {ANSWER}: expected us <= 0.001, measured [\d.]+ µs "
                                    r"\([\d.]+ to [\d.]+\)$")
        self.assertRegex(missed[1], r"expected >= 1e9x naive, measured [\d.e-]+x")
        self.assertIn("k=48/default: expected tflops >= 1e6, measured", missed[2])
        self.assertIn("greta-bench: 3 of 5 gates missed", result.stderr)  # another device's doesn't count
        table = result.stdout.split("\n\n")[1].splitlines()
        self.assertEqual(table[0].split(), ["expected", "finding", "measured", "benchmark"])
        self.assertEqual([sum(word in line for line in table) for word in (" missed ", " met ")], [3, 2])
        rows = self.rows(file)
        self.assertEqual([row["config"].split()[0] for row in rows], ["tiled", "naive", "tiled", "tiled"])
        self.assertRegex(rows[0]["expect"], r"us <= 0.001: missed, .*; us <= 1e9: met, .*; >= 1e9x naive: missed")
        self.assertEqual([bool(row["expect"]) for row in rows], [True, False, True, False])

    def test_limits_that_are_kept_are_listed_and_no_failure(self):
        result = self.run_preset([dict(GEMM, expect=["us <= 1e9", ">= 0.001x default", ">= 0.001x naive"])], "--both",
                                 "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("missed", result.stderr)
        found = json.loads(result.stdout)
        self.assertEqual((found["format"], found["preset"]), ("greta-bench 1", "tiny"))
        self.assertEqual([row["origin"] for row in found["results"]], ["default", "chosen"])
        self.assertGreater(found["results"][0]["median_us"], 0)
        for gate in found["gates"]:
            self.assertEqual((gate["finding"], gate["benchmark"]), ("met", ANSWER))
            self.assertLessEqual(gate["low"], gate["measured"])
            self.assertLessEqual(gate["measured"], gate["high"])
        self.assertEqual([gate["limit"] for gate in found["gates"]], [1e9, 0.001, 0.001])
        self.assertEqual(found["gates"][1]["measured"], 1)  # the default runs, as nothing is tuned

    def test_what_cannot_be_judged_is_named(self):
        # lavapipe has no vendor's library, and the second problem has more operands than the machine has memory.
        large = dict(GEMM, m=2**20, n=2**20, expect="us <= 1e12")
        result = self.run_preset([dict(GEMM, expect=">= 0.01x vendor"), large])
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertIn("expected >= 0.01x vendor, not measured: variant vendor does not run on vulkan:0", result.stderr)
        self.assertRegex(result.stderr, r"gate missed: kernel/gemm/f32/m=1048576,n=1048576,k=32: expected us <= 1e12, "
                                        r"not measured: .*needs")
        self.assertIn("2 of 2 gates missed", result.stderr)
        # What the user leaves out is not expected.
        result = self.run_preset([dict(GEMM, expect="us <= 0.001"), dict(GEMM, k=48)], "--filter", "k=48")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_baseline_of_another_device_lies_beside_the_preset(self):
        base = self.folder / "8600g.csv"
        self.assertEqual(self.gemm("--export", base).returncode, 0)
        base.write_text(base.read_text().replace(",vulkan,", ",hip-host,"))
        for factor, code in ((0.001, 0), (1000, 4)):
            result = self.run_preset([dict(GEMM, expect=f">= {factor}x hip-host:8600g.csv")])
            self.assertEqual(result.returncode, code, result.stderr)
        self.assertIn("expected >= 1000x hip-host:8600g.csv, measured", result.stderr)
        for gate, expected in ((">= 2x vulkan:8600g.csv", "8600g.csv has no cold time of gemm dtype=f32"),
                               (">= 2x none.csv", "none.csv: No such file"),
                               (">= 2x tiny.csv", "tiny.csv: is empty")):
            (self.folder / "tiny.csv").touch()
            self.refused(self.run_preset([dict(GEMM, expect=gate)]), 2, "tiny.json: problems[0]", gate, expected)

    def test_correctness_has_limits_without_times(self):
        file = self.folder / "out.csv"
        result = self.run_preset([dict(GEMM, expect=["error <= 100 %", "error <= 0.0001 %"])], "--export", file,
                                 measure=False)
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertRegex(result.stderr, r"expected error <= 0.0001 %, measured [\d.]+ % of its bound\n")
        self.assertIn("error <= 100 %: met", self.rows(file)[0]["expect"])

    def test_resumed_runs_judge_what_the_file_has(self):
        file = self.folder / "out.csv"
        problems = [dict(GEMM, m=[16 * m for m in range(1, 14)], expect=["us <= 1e9", ">= 1e9x naive"])]
        parts = ("--export", file, "--resume")
        first = self.run_preset(problems, *parts, "--limit", 0.001, batch=1)
        self.assertEqual(first.returncode, 1, first.stderr)  # not complete
        second = self.run_preset(problems, *parts, batch=1)
        self.assertEqual(second.returncode, 4, second.stderr)
        self.assertIn("12 rows in", second.stderr)
        self.assertIn("13 of 26 gates missed", second.stderr)

    def test_files_judge_only_what_was_measured(self):
        """The reference of a gate is measured by a later call, which judges it."""
        file = self.folder / "out.csv"
        problems = [dict(GEMM, expect=["us <= 1e9", ">= 1e-9x naive"])]
        parts = ("--export", file, "--resume")
        first = self.run_preset(problems, *parts, "--filter", "default$")
        self.assertEqual(first.returncode, 4, first.stderr)  # the user left the reference out
        self.assertIn("there is nothing to compare with", first.stderr)
        self.assertRegex(self.rows(file)[0]["expect"], "^us <= 1e9: met, [^;]*$")
        second = self.run_preset(problems, *parts)
        self.assertEqual(second.returncode, 0, second.stderr)
        self.assertEqual(len(self.rows(file)), 2)
        # If the file has everything, nothing is measured, and everything is judged and reported.
        third = self.run_preset(problems, *parts)
        self.assertEqual(third.returncode, 0, third.stderr)
        self.assertEqual([" met " in line for line in third.stdout.splitlines()], [False, True, True], third.stdout)
        report = json.loads(self.run_preset(problems, *parts, "--json").stdout)
        self.assertEqual(([gate["finding"] for gate in report["gates"]], report["results"]), (["met", "met"], []))
        self.assertEqual(len(self.rows(file)), 2)

    def test_one_problem(self):
        result = self.gemm("--config", NAIVE, "--each-variant", "--expect", "us <= 1e9", "--expect",
                           ">= 0.99x naive", "--expect", ">=1e3x default")
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertIn("greta-bench: 1 of 3 gates missed", result.stderr)
        lines = result.stdout.split("\n\n")
        fastest = lines[0].splitlines()[1].split("  ")[0]
        self.assertEqual(lines[1].count("/chosen/" + fastest.replace(" ", ",")), 3, result.stdout)  # it is judged
        for text, expected in (("us < 40", "is none of the limits"), (">= 2x nope", "nope"),
                               ("roofline >= 60", "at most 1")):
            self.refused(self.gemm("--expect", text), 2, "--expect: ", text, expected)
        self.refused(self.gemm("--json", "--benchmark_format=json"), 2, "--benchmark_format")


if __name__ == "__main__":
    unittest.main()
