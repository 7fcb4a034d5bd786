"""Protects: greta-bench doctor finds faults, and features with faults are not used."""
import json
import os
import unittest

from bench_case import GEMM, BenchCase
from cli_case import SOURCE
from sealed_database import rewrite

RUN = os.environ["GRETA_RUN"]
MODEL = SOURCE / "tests/data/stories260K/stories260K.bin"


class BenchDoctor(BenchCase):
    def doctor(self, *arguments):
        return self.bench("doctor", "--db", self.db, "--no-lock", *arguments)

    def test_a_healthy_device(self):
        result = self.doctor("--device", "vulkan:0")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        for check, outcome in (("fill", "passed"), ("ultrasafe", "passed"), ("default", "passed"),
                               ("f16", "passed"), ("matrix", "does not apply")):
            self.assertRegex(result.stdout, rf"(?m)^  {check} +{outcome}")
        self.assertEqual(self.query("SELECT count(*) FROM unsafe"), [(0,)])

    def test_what_does_not_end_is_recorded_and_avoided(self):
        self.know_ceilings("auto,hip-host:0")
        # Compiling for this device takes longer than a second without a cache.
        self.env["XDG_CACHE_HOME"] = str(self.folder / "cache")
        tune = ("gemm", "--m", 16, "--n", 16, "--k", 16, "--device", "hip-host:0", "--budget", 1,
                "--db", self.db)
        result = self.doctor("--device", "hip-host:0", "--timeout", 1)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("FAILED, timeout", result.stdout)
        self.assertIn("skipped", result.stdout)
        failed = self.query("SELECT health_check, status FROM unsafe")
        self.assertEqual([status for _, status in failed], ["timeout"])
        self.refused(self.run_tune(*tune), 3, "hip-host:0", failed[0][0], "--allow-unsafe")
        preset = self.preset(iterations=1, batch=1, problems=[GEMM])
        self.refused(self.bench("--preset", preset, "--device", "hip-host:0"), 3, "--allow-unsafe")
        # On a CPU, which may have been busy, a check counts only after the second timeout.
        self.assertRegex(" ".join(result.stdout.split()),
                         "timed out; once more with --timeout 2 .*FAILED, timeout.*longer --timeout")
        run = (RUN, "--model", str(MODEL), "--prompt", "hi", "--tokens", "2", "--device", "hip-host:0", "--db", str(self.db))
        for more in ((), ("--untuned",)):
            self.refused(self.run_words(*run, *more), 3, "hip-host:0", failed[0][0], "--allow-unsafe")
        self.assertEqual(self.run_tune(*tune, "--allow-unsafe").returncode, 0)

    def test_unsafe_types_are_not_used(self):
        self.know_ceilings()
        self.plant("f16")
        tune = ("gemm", "--m", 16, "--n", 16, "--k", 16, "--device", "vulkan:0", "--budget", 1,
                "--db", self.db)
        result = self.run_tune(*tune)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("health check f16 failed", result.stderr)
        half = self.run_tune(*tune, "--dtype", "f16")
        self.assertEqual(half.returncode, 2, half.stderr)
        self.assertIn("can't load and store f16", half.stderr)
        self.assertEqual(self.run_tune(*tune, "--dtype", "f16", "--allow-unsafe").returncode, 0)
        # A check that passes again no longer disables the feature.
        self.assertEqual(self.doctor("--device", "vulkan:0").returncode, 0)
        self.assertEqual(self.query("SELECT count(*) FROM unsafe"), [(0,)])

    def test_the_next_device_is_used_where_the_best_is_unsafe(self):
        self.know_ceilings("auto,hip-host:0")
        tune = ("gemm", "--m", 16, "--n", 16, "--k", 16, "--budget", 1, "--db", self.db, "--json")
        self.plant("default")
        best = self.run_tune(*tune, "--allow-unsafe")
        self.assertEqual(json.loads(best.stdout)["device"]["id"], "vulkan:0")
        result = self.run_tune(*tune)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, "(?m)^vulkan:0: .* default failed .*; hip-host:0 is used")
        self.assertEqual(json.loads(result.stdout)["device"]["id"], "hip-host:0")
        self.refused(self.run_tune(*tune, "--device", "vulkan:0"), 3, "--allow-unsafe")

    def plant(self, check):
        """Records a failure like doctor."""
        self.run_tune("gemm", "--m", 8, "--n", 8, "--k", 8, "--device", "vulkan:0", "--budget", 1,
                      "--db", self.db)
        rewrite(self.db,
                "INSERT INTO unsafe (device, driver, health_check, card, status, message, recorded_utc)"
                " SELECT id, driver, ?, uuid, 'crash', 'planted', '2026-11-20T12:00:00Z'"
                " FROM devices JOIN cards ON cards.device = devices.id"
                " WHERE json_extract(info, '$.backend') = 'vulkan'",
                [check])


if __name__ == "__main__":
    unittest.main()
