"""Protects: greta-bench compare as a user runs it."""
import csv
import pathlib
import subprocess
import sys
import unittest

from bench_case import GEMM, BenchCase
from cli_case import BENCH, SOURCE


class Baselines(BenchCase):
    """Generates files."""

    def baseline(self, name, factor=1.0, device="card", us=100, processes=""):
        header = subprocess.run([BENCH, "--version"], capture_output=True).stdout  # whether it can be run
        self.assertTrue(header)
        file = self.folder / name
        columns = ("op,dtype,out_dtype,problem,attributes,backend,device,config,origin,status,us,low_us,"
                   "high_us,p99_us,spread_pct,tflops,gbps,roofline,error,bound,speedup,speedup_low,"
                   "speedup_high,cache,samples,driver,compiler,greta_version,date,clocks,samples_us,control_us,"
                   "cpu_us,cpu_control_us,processes")
        with file.open("w") as out:
            writer = csv.DictWriter(out, columns.split(","), restval="", lineterminator="\n")
            writer.writeheader()
            for n in range(8):
                times = [(1 + n / 100 + s / 10000) * us * (factor if n == 5 else 1) for s in range(10)]
                writer.writerow({"op": "gemm", "dtype": "f32", "problem": f"m={n}", "backend": "hip",
                                 "device": device, "origin": "winner", "status": "ok",
                                 "us": times[5], "processes": processes, "cache": "cold", "samples": 100,
                                 "samples_us": "|".join(10 * [" ".join(map(str, times))])})
        return file


class BenchCompare(Baselines):
    """Compares generated files. The tests of the library cover the statistics."""

    def test_a_slowdown_is_found_first_and_exits_with_4(self):
        result = self.bench("compare", self.baseline("a.csv"), self.baseline("b.csv", 1.1))
        self.assertEqual(result.returncode, 4, result.stderr + result.stdout)
        first = result.stdout.splitlines()[1]
        self.assertTrue(first.startswith("slower"), first)
        self.assertIn("m=5", first)
        self.assertIn("+10.0 %", first)
        self.assertIn("1 slower by more than 5 %", result.stdout)

    def test_no_change_is_none(self):
        base = self.baseline("a.csv")
        for other, options in ((base, []), (self.baseline("b.csv", 1.04), []),
                               (self.baseline("c.csv", 1.1), ["--threshold", "15%"])):
            result = self.bench("compare", base, other, *options)
            self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
            self.assertIn("8 the same", result.stdout)
        self.assertEqual(self.bench("compare", base, self.baseline("b.csv", 1.04), "--threshold",
                                    "2").returncode, 4)

    def test_other_devices_and_files_are_refused(self):
        base, other = self.baseline("a.csv"), self.baseline("b.csv", 1.1, "another card")
        self.refused(self.bench("compare", base, other), 2, "different devices", "--any-device")
        self.assertEqual(self.bench("compare", base, other, "--any-device").returncode, 4)
        text = self.folder / "text.csv"
        text.write_text("op,us\ngemm,1\n")
        self.refused(self.bench("compare", base, text), 2, "text.csv", "other columns")
        self.refused(self.bench("compare", base, "none.csv"), 2, "none.csv")
        self.refused(self.bench("compare", base, base, "--threshold", "-3"), 2, "--threshold")
        self.refused(self.bench("compare", base, base, "--benchmark_format=json"), 2,
                     "--benchmark_format")
        self.refused(self.bench_run("--untuned", "compare", base, base), 2, "--untuned", "compare")

    def test_recorded_runs_of_the_same_code_are_silent(self):
        """Files of an earlier version, from one process each."""
        folder = SOURCE / "results/2026-11-21-nvidia-h200-processes"
        for files in (("short_1.csv", "short_2.csv"), ("short_2.csv", "short_1.csv")):
            result = self.bench("compare", *(folder / file for file in files))
            self.assertEqual(result.returncode, 0, result.stdout)
            self.assertIn("76 rows: 0 slower by more than 5 %, 0 failing, 0 faster", result.stdout)

    def test_short_kernels_need_several_processes(self):
        for before, after, code in ((10, 10, 4), ("", "", 0), ("", 10, 0), (10, "", 0), (5, 5, 0)):
            with self.subTest(before=before, after=after):
                base = self.baseline("a.csv", us=4, processes=before)
                fresh = self.baseline("b.csv", 1.1, us=4, processes=after)
                result = self.bench("compare", base, fresh)
                self.assertEqual(result.returncode, code, result.stdout)
                self.assertIn("7 the same", result.stdout)


class CheckComparison(Baselines):
    """The script that measures how reliable the comparison is, on runs that exist already."""

    def check(self, *words):
        script = SOURCE / "scripts/check_comparison.py"
        return subprocess.run([sys.executable, script, self.folder, "--bin", pathlib.Path(BENCH).parent,
                               *map(str, words)], env=self.env, text=True, capture_output=True)

    def runs(self, device, processes, factor=1.0):
        self.baseline(f"first-{device}.csv", us=4, processes=processes)
        self.baseline(f"second-{device}.csv", factor, us=4, processes=processes)

    def test_rows_are_found_if_they_come_from_several_processes(self):
        self.runs("hip-0", 10)
        self.runs("vulkan-0", "")
        result = self.check("--devices", "hip:0")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("16 of 16 rows of 3 to 16 µs that were made 10 % slower are found", result.stdout)
        self.assertEqual((self.folder / "summary.txt").read_text(), result.stdout)
        result = self.check("--devices", "vulkan:0")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("0 of 16 rows", result.stdout)
        self.assertIn("not found in second-vulkan-0: gemm f32 m=3, winner, 4.12 µs", result.stdout)
        self.assertFalse((self.folder / "planted.csv").exists())

    def test_a_report_on_an_honest_pair_is_a_failure(self):
        self.runs("hip-0", 10, 1.2)
        result = self.check("--devices", "hip:0")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("+20.0 %", result.stdout)

    def test_no_row_of_these_times_is_a_failure(self):
        self.runs("hip-0", 10)
        result = self.check("--devices", "hip:0", "--shortest", 100, "--longest", 200)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("0 of 0 rows", result.stdout)

    def test_usage(self):
        for words, expected in ((["--bin", self.folder], "no greta-bench"), (["--shipped", "none"], "none")):
            result = self.check(*words)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(expected, result.stderr)

    def test_it_measures_what_is_missing(self):
        preset = self.preset(iterations=6, batch=2, problems=[GEMM])
        words = ("--devices", "vulkan:0", "--preset", preset, "--longest", 1e6, "--found", 0, "--",
                 "--compute-only", "--processes", "all", "--settle", 0, "--flush", 1)
        result = self.check(*words)
        self.assertIn("first run on vulkan:0: exit code 0", result.stdout, result.stderr)
        self.assertIn("of 2 rows", result.stdout)
        log = (self.folder / "log.txt").read_text()
        self.assertEqual(log.count("== "), 2, log)
        for name in ("first-vulkan-0.csv", "second-vulkan-0.csv"):
            self.assertEqual(self.rows(self.folder / name)[0]["processes"], "6")
        result = self.check(*words)
        self.assertNotIn("exit code", result.stdout)
        result = self.check("--devices", "hip:77")
        self.assertEqual(result.returncode, 1)
        self.assertIn("first run on hip:77: exit code 2", result.stdout)
        self.assertIn("hip:77", result.stdout.splitlines()[1])  # what greta-bench says


if __name__ == "__main__":
    unittest.main()
