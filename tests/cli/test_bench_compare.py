"""Protects: greta-bench compare as a user runs it."""
import csv
import subprocess
import unittest

from bench_case import BenchCase
from cli_case import BENCH


class BenchCompare(BenchCase):
    """Compares generated files. The tests of the library cover the statistics."""

    def baseline(self, name, factor=1.0, device="card"):
        header = subprocess.run([BENCH, "--version"], capture_output=True).stdout  # whether it can be run
        self.assertTrue(header)
        file = self.folder / name
        columns = ("op,dtype,out_dtype,problem,attributes,backend,device,config,origin,status,us,low_us,"
                   "high_us,p99_us,spread_pct,tflops,gbps,roofline,error,bound,speedup,speedup_low,"
                   "speedup_high,cache,samples,driver,compiler,greta_version,date,clocks,samples_us,control_us")
        with file.open("w") as out:
            writer = csv.DictWriter(out, columns.split(","), restval="", lineterminator="\n")
            writer.writeheader()
            for n in range(8):
                us = [(100 + n + s / 100) * (factor if n == 5 else 1) for s in range(10)]
                writer.writerow({"op": "gemm", "dtype": "f32", "problem": f"m={n}", "backend": "hip",
                                 "device": device, "origin": "winner", "status": "ok",
                                 "us": us[5], "cache": "cold", "samples": 100,
                                 "samples_us": "|".join(10 * [" ".join(map(str, us))])})
        return file

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


if __name__ == "__main__":
    unittest.main()
