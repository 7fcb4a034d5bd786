"""Protects: the configuration of a pinned problem never changes: not by a tune, a merge, a requalification or
prune, until it is unpinned."""
import json
import shutil
import unittest

from cli_case import DB, Case, SMALL
from sealed_database import rewrite

SLOW = "tiled BM=32 BN=32 TM=1 TN=1 LX=32 BK=8 STAGES=1 PAD=0 VA=1 VB=1 UNROLL=1 SWIZZLE=1 SUBGROUP=0"


class Pin(Case):
    known_devices = "vulkan:0"

    # Each test has a copy of one database, which is tuned once.
    @classmethod
    def setUpClass(cls):
        cls.case = cls("setUp")
        Case.setUp(cls.case)
        tuned = cls.case.tune("--budget", "2", "--seed", "1")
        assert tuned.returncode == 0, tuned.stderr
        # The answer is a configuration that every tune beats.
        trials = "SELECT config FROM trials WHERE status = 'ok' ORDER BY median_us DESC LIMIT 1"
        cls.slow = cls.case.query(trials)[0][0]
        rewrite(cls.case.db, f"UPDATE winners SET config = '{cls.slow}', is_default = 0, median_us = 1e6")

    @classmethod
    def tearDownClass(cls):
        cls.case.tearDown()

    def setUp(self):
        super().setUp()
        shutil.copy(self.case.db, self.db)

    def tune(self, *more):
        return self.run_tune(*SMALL, "--device", "vulkan:0", "--db", self.db, *more)

    def answer(self):
        found = json.loads(self.run_db("list", "--json").stdout)
        return found[0]["winner"]["config_text"], found[0]["pinned"]

    def done(self, command, *arguments):
        result = self.run_db(command, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def change_driver(self):
        """Lets the stored answer be one of an earlier driver, so that a tune would store another row."""
        rewrite(self.db, "UPDATE circumstances SET driver = 'earlier'")

    def test_a_tune_records_its_trials_and_leaves_the_answer(self):
        self.assertIn("pinned 1 answer", self.done("pin", "--op", "gemm"))
        self.assertEqual(self.answer(), (self.slow, True))
        self.change_driver()
        before = self.query("SELECT count(*) FROM trials")[0][0]
        tuned = self.tune("--budget", "4", "--seed", "2", "--json")
        self.assertEqual(tuned.returncode, 0, tuned.stderr)
        report = json.loads(tuned.stdout)
        self.assertGreater(self.query("SELECT count(*) FROM trials")[0][0], before)
        self.assertEqual(self.answer(), (self.slow, True))
        if report["winner"]["config_text"] != self.slow:
            self.assertIsNotNone(report["pinned"])
        self.assertIn("pinned", self.done("list"))
        self.assertIn("1 answer pinned", self.done("info"))
        # Unpinned, the next tune is free again.
        self.assertIn("unpinned 1 answer", self.done("unpin", "--all"))
        self.assertEqual(self.tune("--budget", "4", "--seed", "3").returncode, 0)
        self.assertFalse(self.answer()[1])
        self.assertNotEqual(self.query("SELECT count(*) FROM winners"), [(1,)])

    def test_the_report_names_the_pinned_answer(self):
        self.done("pin", "--all")
        self.change_driver()
        rewrite(self.db, f"UPDATE winners SET config = '{SLOW}'")  # not valid here, so another one wins
        said = self.tune("--budget", "2", "--seed", "2").stdout
        self.assertRegex(said, r"pinned +the answer in .* stays tiled BM=32")
        self.assertIn("greta-db unpin releases it", " ".join(said.split()))

    def test_merge_and_prune_leave_it(self):
        theirs = self.folder / "theirs.db"
        shutil.copy(self.db, theirs)
        rewrite(theirs, "UPDATE winners SET median_us = 1, config = 'tiled BM=8', started_utc = '2099-01-01T00:00:00Z'")
        self.done("pin", "--all")
        merged = self.run_words(*self.merge_words(theirs))
        self.assertEqual(merged.returncode, 0, merged.stderr)
        self.assertIn("1 skipped because the answer here is pinned", merged.stdout)
        self.assertEqual(self.answer(), (self.slow, True))
        self.assertIn("removed 0 results", self.done("prune", "--results", "--op", "gemm"))
        self.assertEqual(self.answer(), (self.slow, True))
        self.done("unpin", "--all")
        self.run_words(*self.merge_words(theirs))
        self.assertEqual(self.answer(), ("tiled BM=8", False))

    def merge_words(self, theirs):
        return DB, "merge", str(theirs), "--db", str(self.db)

    def test_requalify_leaves_it(self):
        self.done("pin", "--all")
        self.change_driver()
        self.done("requalify", "--no-lock")
        self.assertEqual(self.answer(), (self.slow, True))

    def test_tune_can_pin(self):
        self.done("unpin", "--all")
        self.assertEqual(self.tune("--budget", "1", "--pin").returncode, 0)
        self.assertTrue(self.answer()[1])

    def test_what_to_pin_must_be_said(self):
        self.refused(self.run_db("pin"), 2, "--op", "--all")
        self.refused(self.run_db("unpin"), 2, "--op", "--all")


if __name__ == "__main__":
    unittest.main()
