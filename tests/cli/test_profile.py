"""Protects: greta-tune profile and greta-bench --counters. Where no counters are to be had, one line says why, what is
known without them is told, and the exit code is 0. Where a driver has VK_KHR_performance_query, which a layer adds to
lavapipe, its counters are in the report, in JSON and in the database."""
import fcntl
import json
import os
import subprocess
import unittest

from bench_case import BenchCase
from cli_case import TUNE, limit

SIZE = ["--m", 32, "--n", 32, "--k", 32]
NAIVE = "naive THREADS=64"
WHY = {"vulkan:0": "vulkan:0 has no hardware counters: ",
       "hip-host:0": "hip-host:0 runs kernels on the CPU, and has no hardware counters"}


class Profile(BenchCase):
    known_devices = "vulkan:0,hip-host:0"

    def profile(self, *options, device="hip-host:0"):
        return self.run_words(*self.words(*options, device=device))

    def words(self, *options, device="hip-host:0", lock=False):
        usual = [] if lock else ["--no-lock"]
        if "--launch-only" not in options:
            usual += ["--seconds", "0.1"]
        return [TUNE, "profile", "gemm", *map(str, SIZE), "--device", device, "--db", str(self.db), *usual,
                *map(str, options)]

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
                self.assertNotIn("read from memory", told)

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

    def test_launch_only_waits_for_the_card(self):
        self.env["XDG_CACHE_HOME"] = str(self.folder / "cache")
        words = self.words("--config", NAIVE, "--launch-only", lock=True)
        self.assertEqual(self.run_words(*words).returncode, 0)
        card, = (self.folder / "cache").glob("greta/locks/*")
        with open(card) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            second = subprocess.Popen(words, env=self.env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertIn("waiting for ", second.stderr.readline())
            self.assertIsNone(second.poll())
        errors = second.communicate(timeout=limit(60))[1]
        self.assertEqual(second.returncode, 0, errors)
        self.assertIn(f"launched {NAIVE} once", errors)

    def test_what_can_not_be_profiled(self):
        for options, code, message in (
                (["--winner"], 1, "--winner: no database has a winner for gemm"),
                (["--config", "tiled BM=7"], 2, "--config: "),
                (["--launch-only", "--default", "--config", NAIVE], 2, "--launch-only: takes one configuration"),
                (["--launch-only", "--default", "--json"], 2, "--json"),
                (["--launch-only", "--default", "--energy"], 2, "--energy"),
                (["--launch-only", "--default", "--seconds", 1], 2, "--seconds")):
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


class ProfileCounters(BenchCase):
    def setUp(self):
        super().setUp()
        self.env.update(VK_LAYER_PATH=os.environ["GRETA_FAKE_LAYERS"], VK_INSTANCE_LAYERS="VK_LAYER_GRETA_fake_queries")

    def test_of_performance_queries(self):
        words = ["gemm", *map(str, SIZE), "--config", NAIVE, "--device", "vulkan:0", "--db", str(self.db), "--no-lock"]
        result = self.run_words(TUNE, "profile", *words, "--seconds", "0.1")
        self.assertEqual(result.returncode, 0, result.stderr)
        told = " ".join(result.stdout.split())
        # One launch of 16 workgroups of 64 threads, whatever ran before; six counters, two in each run.
        for part in ("read from memory 3.0 KiB 12.0 KiB moved", "written to memory 1.0 KiB", "occupancy reached 62 %",
                     "FMA units busy 93 %", "shared memory 48.0 KiB", "VK_KHR_performance_query of anv",
                     "3 runs of each configuration", "limited by the FMA units: 93 % of the peak"):
            self.assertIn(part, told)
        self.assertNotIn("no counters", told)
        listed = self.run_db("list", "--counters")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        for part in ("read from memory 3.0 KiB", "occupancy reached 62 %", "limited by the FMA units", "counters of 1 configuration"):
            self.assertIn(part, listed.stdout)
        row, = json.loads(self.run_db("list", "--counters", "--json", "--op", "gemm", "--device", "vulkan:0").stdout)
        self.assertEqual((row["config_text"], row["counters"]["passes"]), (NAIVE, 3))
        self.assertEqual(row["counters"]["figures"]["memory_read_bytes"], 3072)
        self.assertEqual(row["counters"]["figures"]["occupancy_share"], 0.625)
        for other in (["--op", "softmax"], ["--variant", "tiled"], ["--warm"]):
            self.assertEqual(json.loads(self.run_db("list", "--counters", "--json", *other).stdout), [], other)
        for wrong in ("--csv", "--energy", "--stale"):
            self.refused(self.run_db("list", "--counters", wrong), 2, "--counters")


if __name__ == "__main__":
    unittest.main()
