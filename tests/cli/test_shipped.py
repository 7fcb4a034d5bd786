"""Protects: the databases that GRETA ships are opened under the user's own by every tool, listed by
greta-db info, switched off by --no-shipped, and told of if they can't be read; an application's are
between them."""
import csv
import json
import os
import pathlib
import subprocess
import unittest

from cli_case import BENCH, DB, SOURCE, TunedOnce, limit
from sealed_database import damage, rewrite

GEMM = {"op": "gemm", "m": 32, "n": 32, "k": 32}
SHAPE = ["gemm", "--m", 32, "--n", 32, "--k", 32]
QKV = ["gemm", "--m", 1, "--n", 128, "--k", 64, "--layout", "nt", "--prologue", "rmsnorm"]  # of stories260K
FIRST, SECOND = "naive THREADS=64", "naive THREADS=512"
RUN = os.environ["GRETA_RUN"]


class Shipped(TunedOnce):
    # The database has two winners of lavapipe, whose configuration each test chooses.
    shapes = (SHAPE, QKV)

    def made(self, config, file):
        """Writes a shipped database whose winner is this configuration."""
        loose = file.with_suffix(".loose")
        file.parent.mkdir(parents=True, exist_ok=True)
        loose.write_bytes(self.case.db.read_bytes())
        rewrite(loose, "UPDATE winners SET config = ?, is_default = 0", (config,))
        result = self.run_db("export", "--ship", "--out", file, db=loose)
        self.assertEqual(result.returncode, 0, result.stderr)
        return file

    def ran(self, *options):
        """Returns the configuration that greta-bench runs, its origin, and standard error."""
        preset, file = self.folder / "one.json", self.folder / "out.csv"
        preset.write_text(json.dumps({"iterations": 1, "batch": 1, "problems": [GEMM]}))
        file.unlink(missing_ok=True)
        result = self.run_words(BENCH, "--preset", preset, "--device", "vulkan:0", "--db", self.db, "--flush", "1",
                                "--no-lock", "--export", file, *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(file, newline="") as rows:
            row, = csv.DictReader(rows)
        return row["config"], row["origin"], result.stderr

    def test_bench_runs_what_is_shipped_below_the_applications(self):
        self.made(FIRST, self.shipped / "lavapipe" / "model.db")
        self.assertEqual(self.ran()[:2], (FIRST, "winner"))
        self.assertEqual(self.ran("--no-shipped")[1], "default")
        application = self.made(SECOND, self.folder / "application.db")
        third = self.made("naive THREADS=256", self.folder / "third.db")
        self.assertEqual(self.ran("--shipped", application)[0], SECOND)
        self.assertEqual(self.ran("--shipped", application, "--shipped", third)[0], SECOND)
        self.assertEqual(self.ran("--shipped", third, "--shipped", application, "--no-shipped")[0],
                         "naive THREADS=256")

    def test_tune_tries_what_is_shipped_early(self):
        rare = "tiled BM=16 BN=32 TM=4 TN=4 LX=8 BK=8 STAGES=1 PAD=4 VA=2 VB=2 UNROLL=2 SWIZZLE=1 SUBGROUP=0"
        self.made(rare, self.shipped / "lavapipe" / "model.db")
        words = ["gemm", "--m", 32, "--n", 32, "--k", 48, "--device", "vulkan:0", "--budget", 2, "--seed", 1]
        for options, tried in ((["--db", self.db], True),
                               (["--db", self.know_ceilings(file=self.folder / "b.db"), "--no-shipped"], False)):
            self.assertEqual(self.run_tune(*words, *options).returncode, 0)
            self.db = options[1]
            self.assertEqual((rare,) in self.query("SELECT config FROM trials"), tried)

    def test_run_explains_where_answers_come_from(self):
        self.made(FIRST, self.shipped / "lavapipe" / "model.db")
        words = [RUN, "--model", SOURCE / "tests/data/stories260K/stories260K.bin", "--explain", "--device",
                 "vulkan:0", "--prompt", "Once"]
        for options, origin in (([], "exact, shipped"), (["--no-shipped"], "default"), (["--untuned"], "default")):
            result = self.run_words(*words, *options)
            self.assertEqual(result.returncode, 0, result.stderr)
            qkv = [line for line in result.stdout.splitlines() if "qkv " in line and " gemm " in line]
            self.assertIn(f" {origin} ", qkv[-1])

    def test_a_shipped_file_that_is_damaged_is_told_of_once(self):
        file = self.made(FIRST, self.shipped / "lavapipe" / "model.db")
        file.chmod(0o644)
        file.write_bytes(file.read_bytes()[:5000])
        config, origin, told = self.ran()
        self.assertEqual(origin, "default")
        self.assertEqual(told.count(str(file)), 1, told)
        tuned = self.run_tune(*SHAPE, "--device", "vulkan:0", "--budget", 2, "--db", self.db)
        self.assertEqual(tuned.returncode, 0, tuned.stderr)
        self.assertEqual(tuned.stderr.count("a shipped database is not used"), 1, tuned.stderr)
        info = self.run_db("info")
        self.assertIn(f"not used: {file}", info.stdout)
        self.assertNotIn("not used", self.run_db("info", "--no-shipped").stdout)

    def test_a_folder_that_is_missing_is_told_of(self):
        self.env["GRETA_SHIPPED"] = "/nonexistent/tuned"
        self.assertIn("/nonexistent/tuned", self.ran()[2])
        self.assertIn("not used: /nonexistent/tuned", self.run_db("info").stdout)
        self.assertEqual(self.ran("--no-shipped")[2].count("nonexistent"), 0)

    def test_info_lists_what_is_shipped(self):
        file = self.made(FIRST, self.shipped / "lavapipe" / "model.db")
        told = json.loads(self.run_words(DB, "info", "--json").stdout)  # the user has no database
        self.assertIsNone(told["file"])
        one, = told["below"]
        self.assertEqual((one["file"], one["results"], one["level"], one["damaged"]),
                         (str(file), 2, "shipped", 0))
        self.assertEqual(one["devices"][0]["architecture"], "lavapipe")
        self.assertRegex(one["newest"], r"^20\d\d-")

    def test_the_build_ships_every_device_of_results(self):
        del self.env["GRETA_SHIPPED"]
        told = json.loads(self.run_words(DB, "info", "--json").stdout)["below"]
        devices = {folder.parent.name for folder in (SOURCE / "results").glob("[!0-9]*/tuned.db")}
        self.assertEqual({pathlib.Path(one["file"]).stem for one in told}, devices)
        for one in told:
            source = SOURCE / "results" / pathlib.Path(one["file"]).stem / "tuned.db"
            results = json.loads(self.run_db("info", "--json", db=source).stdout)["results"]
            self.assertEqual((one["results"], one.get("unreadable")), (results, None))

    def test_the_build_refuses_a_database_that_is_damaged(self):
        source = self.folder / "results" / "some-device" / "tuned.db"
        self.made(FIRST, source)

        def build():
            return subprocess.run(
                [os.environ["GRETA_CMAKE"], "-D", f"DB={DB}", "-D", f"RESULTS={self.folder / 'results'}", "-D",
                 f"OUTPUT={self.folder / 'made'}", "-P", SOURCE / "cmake/tuned.cmake"],
                env=self.env, capture_output=True, text=True, timeout=limit(60))
        made = build()
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertTrue((self.folder / "made" / "lavapipe" / "some-device.db").exists())
        source.chmod(0o644)
        damage(source, "UPDATE winners SET median_us = 1")
        made = build()
        self.assertNotEqual(made.returncode, 0)
        self.assertIn("does not match its checksum", " ".join(made.stderr.split()))


if __name__ == "__main__":
    unittest.main()
