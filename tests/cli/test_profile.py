"""Protects: greta-tune profile and greta-bench --counters where no counters are to be had: one line says why, what is
known without them is told, and the exit code is 0."""
import json
import unittest

from bench_case import BenchCase
from cli_case import TUNE

SIZE = ["--m", 32, "--n", 32, "--k", 32]
NAIVE = "naive THREADS=64"
WHY = {"vulkan:0": "vulkan:0 has no hardware counters: ",
       "hip-host:0": "hip-host:0 runs kernels on the CPU, and has no hardware counters"}


class Profile(BenchCase):
    known_devices = "vulkan:0,hip-host:0"

    def profile(self, *options, device="hip-host:0"):
        return self.run_words(TUNE, "profile", "gemm", *map(str, SIZE), "--device", device, "--db", str(self.db),
                              "--no-lock", "--seconds", "0.1", *map(str, options))

    def test_says_why_there_are_no_counters_and_what_is_known_without(self):
        for device, why in WHY.items():
            with self.subTest(device=device):
                result = self.profile("--default", "--config", NAIVE, device=device)
                self.assertEqual(result.returncode, 0, result.stderr)
                told = " ".join(result.stdout.split())
                self.assertIn("no counters " + why, told)
                self.assertIn("gemm/naive: 64 threads", told)
                for part in ("default", "config", "time", "roofline reached", "of the roofline of"):
                    self.assertIn(part, told)

    def test_json(self):
        result = self.profile("--config", NAIVE, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        found = json.loads(result.stdout)
        self.assertEqual(found["no_counters"], WHY["hip-host:0"])
        way, = found["ways"]
        self.assertEqual((way["name"], way["config_text"], way["status"]), ("config", NAIVE, "ok"))
        self.assertGreater(way["us"]["estimate"], 0)
        self.assertNotIn("counters", way)
        self.assertEqual(way["kernels"][0]["threads"], 64)
        self.assertIn("roofline", way["limiter"])

    def test_launch_only_launches_once(self):
        result = self.profile("--config", NAIVE, "--launch-only")
        self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)
        self.assertIn(f"launched {NAIVE} once", result.stderr)

    def test_what_can_not_be_profiled(self):
        for options, code, message in (
                (["--winner"], 1, "--winner: no database has a winner for gemm"),
                (["--config", "tiled BM=7"], 2, "--config: "),
                (["--launch-only", "--default", "--config", NAIVE], 2, "--launch-only: takes one configuration")):
            with self.subTest(options=options):
                result = self.profile("--no-shipped", *options)
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertIn(message, result.stderr)

    def test_of_a_benchmark(self):
        file = self.folder / "ways.csv"
        words = ["gemm", *SIZE, "--config", NAIVE, "--counters", "--device", "hip-host:0", "--db", self.db, "--no-lock",
                 "--flush", 1, "--settle", 0, "--seed", 1]
        result = self.bench(*words, "--export", file)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("no counters: " + WHY["hip-host:0"], result.stderr)
        self.assertIn("no counters", result.stdout)
        row, = self.rows(file)
        self.assertEqual((row["status"], row["counters"]), ("ok", ""))
        self.assertIn("roofline", row["limiter"])
        result = self.bench(*words, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        row = json.loads(result.stdout)["results"][0]
        self.assertEqual(row["no_counters"], WHY["hip-host:0"])
        self.assertIsNone(row["counters"])


if __name__ == "__main__":
    unittest.main()
