"""Protects: configurations of older templates are tried, listed, requalified and accepted by --try as
today's templates mean them, and those that can't be carried over are named with the reason."""
import json
import unittest

from cli_case import Case
from sealed_database import rewrite

GEMV = ["gemm", "--m", 1, "--n", 64, "--k", 64, "--device", "vulkan:0"]
OLD = "gemv THREADS=64 COLS=2 VB=1 VA=1 UNROLL=2 SPLIT=1"  # before 2026-11-21
TODAY = "gemv THREADS=64 COLS=2 VB=1 VA=1 TN=1 UNROLL=2 SPLIT=1"
LOST = "gemv THREADS=64 COLS=2"


class MigratedConfigs(Case):
    known_devices = "auto,vulkan:0"

    def stored(self, config):
        """Makes a database whose winner is this configuration."""
        tuned = self.run_tune(*GEMV, "--budget", 1, "--seed", 1, "--db", self.db)
        self.assertEqual(tuned.returncode, 0, tuned.stderr)
        rewrite(self.db, "UPDATE winners SET config = ?, is_default = 0", (config,))

    def tried(self):
        return [config for config, in self.query("SELECT config FROM trials")]

    def test_it_is_listed_tried_and_certified_again(self):
        self.stored(OLD)
        one, = json.loads(self.run_db("list", "--json").stdout)
        self.assertEqual((one["migrated"], one["not_used"], one["winner"]["config_text"]), (["TN=1 added"], None, OLD))
        self.assertIn("migrated: TN=1 added", self.run_db("list").stdout)
        self.assertIn("1 configuration of older templates", self.run_db("info").stdout)
        self.assertNotIn(TODAY, self.tried())
        again = self.run_tune(*GEMV, "--budget", 1, "--seed", 2, "--db", self.db)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("carried over to today's template: TN=1 added", " ".join(again.stdout.split()))
        self.assertIn(TODAY, self.tried())

    def test_it_is_requalified_as_it_is_used(self):
        self.stored(OLD)
        rewrite(self.db, "UPDATE circumstances SET template_key = 'older'")
        done = self.run_db("requalify", "--device", "vulkan:0", "--no-lock")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(TODAY, self.tried())

    def test_try_accepts_what_an_older_report_has(self):
        tuned = self.run_tune(*GEMV, "--budget", 1, "--try", OLD, "--db", self.db)
        self.assertEqual(tuned.returncode, 0, tuned.stderr)
        self.assertIn(TODAY, self.tried())
        self.refused(self.run_tune(*GEMV, "--budget", 1, "--try", LOST, "--db", self.db), 2, "--try", "VB is missing")

    def test_what_cant_be_carried_over_is_named(self):
        self.stored(LOST)
        told = self.run_db("info")
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertRegex(told.stdout, r"not used: gemm dtype=f32 out=f32 m=1 n=64 k=64 of 20.* no value of VB")
        one, = json.loads(self.run_db("list", "--json").stdout)
        self.assertIn("no value of VB", one["not_used"])
        again = self.run_tune(*GEMV, "--budget", 1, "--seed", 2, "--db", self.db)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("is not tried", " ".join(again.stdout.split()))


if __name__ == "__main__":
    unittest.main()
