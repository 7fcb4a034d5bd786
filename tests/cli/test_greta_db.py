"""Protects: what a user of greta-db sees: what is shown and filtered, what is removed, and that
damage is found, in one line and with the right exit code."""
import csv
import json
import shutil
import sqlite3
import unittest

from cli_case import Case

GEMM = ["gemm", "--m", "64", "--n", "48", "--k", "40"]
SOFTMAX = ["softmax", "--rows", "8", "--cols", "64"]


class Tuned(Case):
    """A database of two problems, tuned once for each class."""

    template = None

    @classmethod
    def tearDownClass(cls):
        if cls.template:
            cls.template.unlink()
        cls.template = None

    def setUp(self):
        super().setUp()
        if type(self).template is None:
            for problem in (GEMM, SOFTMAX):
                result = self.run_tune(*problem, "--budget", "3", "--db", self.db, "--no-lock",
                                       "--device", "vulkan:0", "--seed", "1")
                self.assertEqual(result.returncode, 0, result.stderr)
            type(self).template = self.folder.parent / f"{self.folder.name}.template.db"
            shutil.copy(self.db, self.template)
        shutil.copy(self.template, self.db)

    def change(self, sql):
        """Behind the database's back."""
        with sqlite3.connect(self.db) as connection:
            connection.execute(sql)

    def done(self, command, *arguments):
        result = self.run_db(command, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        return result.stdout

    def load(self, command, *arguments):
        return json.loads(self.done(command, *arguments, "--json"))


class DatabaseBadInput(Tuned):
    def test_values_that_are_not_allowed_name_what_is(self):
        for arguments, words in (
                (["--op", "gem"], ["--op gem", "gemm", "softmax"]),
                (["--dtype", "f64"], ["--dtype f64", "bf16"]),
                (["--out-dtype", "int8"], ["--out-dtype int8"]),
                (["--dims", "m"], ["--dims m", "m=4096"]),
                (["--dims", "layout=nt"], ["--dims"]),
                (["--device", "nosuch"], ["--device nosuch", "vulkan:0"]),
                (["--cold", "--warm"], ["--cold", "--warm"]),
                (["--json", "--csv"], ["--json", "--csv"])):
            with self.subTest(arguments=arguments):
                self.refused(self.run_db("list", *arguments), 2, *words)

    def test_a_database_that_is_not_there(self):
        for command in ("info", "list", "show", "verify"):
            self.refused(self.run_db(command, db=self.folder / "none.db"), 2, "none.db")
        self.refused(self.run_db("prune", "--trials", db=self.folder / "none.db"), 2, "none.db")
        self.assertFalse((self.folder / "none.db").exists())

    def test_prune_wants_to_know_what(self):
        before = self.db.read_bytes()
        self.refused(self.run_db("prune"), 2, "--trials")
        self.refused(self.run_db("prune", "--results"), 2, "--results", "--stale")
        self.refused(self.run_db("prune", "--trials", "--stale"), 2, "--trials", "--stale")
        self.assertEqual(self.db.read_bytes(), before)


class DatabaseLooks(Tuned):
    def test_list_filters_by_type(self):
        def listed(*arguments):
            return [entry["problem"].split()[0] for entry in self.load("list", *arguments)]

        self.assertEqual(listed(), ["gemm", "softmax"])
        self.assertEqual(listed("--op", "gemm"), ["gemm"])
        self.assertEqual(listed("--dtype", "f16"), [])
        self.assertEqual(listed("--dims", "n=48 m=64"), ["gemm"])
        self.assertEqual(listed("--device", "LLVMPIPE"), ["gemm", "softmax"])  # name, any case
        self.assertEqual(listed("--device", "lavapipe"), ["gemm", "softmax"])  # architecture
        self.assertEqual(listed("--device", "vulkan:0"), ["gemm", "softmax"])  # id
        self.assertEqual(listed("--warm"), [])
        self.assertEqual(listed("--driver", "no such driver"), [])

    def test_list_as_table_json_and_csv(self):
        entry = self.load("list", "--op", "gemm")[0]
        table = self.done("list", "--op", "gemm")
        self.assertIn(entry["problem"], table)
        self.assertIn("1 result, 0 stale", table)
        rows = list(csv.DictReader(self.done("list", "--op", "gemm", "--csv").splitlines()))
        self.assertEqual([row["origin"] for row in rows], ["default", "winner"])
        self.assertEqual(rows[1]["config"], entry["winner"]["config_text"])
        self.assertAlmostEqual(float(rows[1]["us"]) / entry["winner"]["median_us"], 1, places=4)
        self.assertNotIn(None, rows[1])  # as many fields as columns

    def test_info_counts(self):
        info = self.load("info")
        self.assertEqual((info["results"], info["sessions"], info["problems"]), (2, 2, 2))
        self.assertEqual(info["devices"][0]["architecture"], "lavapipe")
        self.assertEqual(info["devices"][0]["results"], 2)
        self.assertFalse(info["shipped"])
        self.assertIn("2 results for 2 problems", self.done("info"))

    def test_show_is_that_of_greta_tune(self):
        shown = self.run_tune("show", "--db", self.db)
        self.assertEqual(self.done("show"), shown.stdout)

    def test_stale_entries_are_judged_one_by_one(self):
        self.change("UPDATE circumstances SET driver = 'older' WHERE id = 1")
        first, second = self.load("list")
        self.assertEqual(len(first["stale"]), 1)
        self.assertIn("driver was older, is ", first["stale"][0])
        self.assertEqual(second["stale"], [])
        self.assertEqual(len(self.load("list", "--stale")), 1)
        self.assertEqual(len(self.load("list", "--fresh")), 1)
        self.change("UPDATE circumstances SET template_key = 'earlier' WHERE id = 2")
        self.assertEqual(self.load("list")[1]["stale"], ["the templates changed"])
        self.assertEqual(self.load("info")["devices"][0]["stale"], 2)
        self.assertEqual(len(self.load("list", "--stale", "--probe")), 2)


class DatabaseCare(Tuned):
    def test_verify_of_a_sound_database(self):
        self.assertIn("is sound: 2 results", self.done("verify"))

    def test_verify_names_a_changed_value(self):
        self.change("UPDATE winners SET median_us = 1 WHERE problem LIKE 'softmax%'")
        result = self.run_db("verify")
        self.refused(result, 1, "1 finding")
        self.assertIn("winners: the row of softmax", result.stdout)
        self.assertIn("checksum", result.stdout)

    def test_verify_of_files_that_are_cut_or_foreign(self):
        whole = self.db.read_bytes()
        for content in (whole[:-4096], whole[:5000], whole[:50], b"", b"no database\n" * 500):
            with self.subTest(length=len(content)):
                self.db.write_bytes(content)
                result = self.run_db("verify")
                self.refused(result, 1, "finding")
                self.assertTrue(result.stdout.strip())
                self.assertEqual(self.db.read_bytes(), content)

    def test_prune_of_trials_keeps_winners(self):
        shown = self.done("list")
        trials = self.query("SELECT count(*) FROM trials")[0][0]
        self.assertIn(f"would remove 0 results, {trials} trials",
                      self.done("prune", "--trials", "--dry-run"))
        self.assertEqual(self.query("SELECT count(*) FROM trials"), [(trials,)])
        gone = self.load("prune", "--trials", "--op", "gemm")
        self.assertEqual(gone["trials"] + self.query("SELECT count(*) FROM trials")[0][0], trials)
        self.assertLessEqual(gone["bytes_after"], gone["bytes_before"])
        self.assertEqual(self.load("prune", "--trials")["trials"], trials - gone["trials"])
        self.assertEqual(self.done("list"), shown)
        self.done("verify")

    def test_prune_of_stale_results(self):
        self.change("UPDATE circumstances SET template_key = 'earlier' WHERE id = 1")
        self.assertEqual(self.load("prune", "--results", "--stale")["results"], 1)
        self.assertEqual([entry["problem"].split()[0] for entry in self.load("list")], ["softmax"])

    def test_prune_leaves_what_runs(self):
        self.change("UPDATE sessions SET outcome = NULL, ended_utc = NULL")
        self.assertEqual(self.load("prune", "--trials")["trials"], 0)


if __name__ == "__main__":
    unittest.main()
