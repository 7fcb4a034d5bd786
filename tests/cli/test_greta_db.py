"""Protects: the behaviour of greta-db: what is shown, filtered and removed, and that damage is
reported in one line with the correct exit code."""
import csv
import json
import re
import shutil
import sqlite3
import unittest

from cli_case import DB, SOURCE, Case, made_once
from sealed_database import damage, rewrite

GEMM = ["gemm", "--m", "64", "--n", "48", "--k", "40"]
SOFTMAX = ["softmax", "--rows", "8", "--cols", "64"]


class Tuned(Case):
    """A database of two problems, tuned once per build, with the ceilings of these devices."""
    ceilings = "auto"

    def setUp(self):
        super().setUp()
        self.template = made_once(f"tuned-{self.ceilings.count(',')}.db", self.tune)
        shutil.copy(self.template, self.db)

    def tune(self, file):
        self.know_ceilings(self.ceilings, file)
        for problem in (GEMM, SOFTMAX):
            result = self.run_tune(*problem, "--budget", "3", "--db", file, "--no-lock",
                                   "--device", "vulkan:0", "--seed", "1")
            self.assertEqual(result.returncode, 0, result.stderr)

    def change(self, sql):
        """Changes the database and updates checksums, like GRETA."""
        rewrite(self.db, sql)

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
                (["--op", "gem"], ["--op gem", "gemm", "softmax", "--kernels DIR"]),
                (["--dtype", "f128"], ["--dtype f128", "bf16"]),
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
        for command in (["prune", "--trials"], ["regret"], ["requalify"], ["upgrade"]):
            self.refused(self.run_db(*command, db=self.folder / "none.db"), 2, "none.db")
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
        for options in (("--driver", "nothere"), ("--op", "attention"), ("--dims", "m=1")):
            said = self.run_db("list", *options)
            self.assertIn(f"no result meets {' '.join(options)}; there are 1 of gemm, 1 of softmax",
                          said.stderr)
        self.refused(self.run_db("list", "--variant", "tile"), 2, "--variant tile", "did you mean tiled?")

    def test_info_names_what_to_tune_next(self):
        said = self.done("info")
        commands = re.findall(r"^ +\$ (greta-tune .*)$", said, re.MULTILINE)
        self.assertEqual(len(commands), 2, said)
        for command in commands:
            words = command.split()
            self.assertIn(str(self.db), words)
            words[words.index("--budget") + 1] = "1"
            tuned = self.run_tune(*words[1:])
            self.assertEqual(tuned.returncode, 0, tuned.stderr)

    def test_list_is_sorted_limited_and_fits_a_terminal(self):
        def times(*arguments):
            return [entry["winner"]["median_us"] for entry in self.load("list", *arguments)]

        self.assertEqual(times("--sort", "time"), sorted(times(), reverse=True))
        self.assertEqual(times("--sort", "time", "--limit", "1"), [max(times())])
        self.refused(self.run_db("list", "--sort", "tim"), 2, "--sort tim", "did you mean time?")
        for columns in (60, 80, 120, 200):
            self.env["COLUMNS"] = str(columns)
            lines = self.run_db("list").stdout.splitlines()
            table = [line for line in lines if str(self.db) not in line]
            self.assertGreaterEqual(len(table), 3)
            self.assertLessEqual(max(map(len, table)), columns)
            self.assertTrue(any("±" in line for line in table))

    def test_wide_csv_has_a_column_for_each_dimension_and_parameter(self):
        exported = self.done("export", "--format", "csv-wide", "--out", "-")
        for text in (exported, self.run_db("list", "--csv-wide").stdout):
            rows = list(csv.DictReader(text.splitlines()))
            self.assertEqual({row["op"] for row in rows}, {"gemm", "softmax"})
            for row in rows:
                name = {"gemm": "dim_m", "softmax": "dim_rows"}[row["op"]]
                self.assertGreater(int(row[name]), 0)
                self.assertTrue(any(key.startswith("param_") and value for key, value in row.items()))

    def test_t4_of_several_problems_is_a_file_for_each(self):
        self.refused(self.run_db("export", "--format", "t4", "--out", "-"), 2, "--out FOLDER")
        folder = self.folder / "t4"
        folder.mkdir()
        self.assertEqual(self.run_db("export", "--format", "t4", "--out", folder).returncode, 0)
        files = sorted(folder.iterdir())
        self.assertEqual(len(files), 2)
        for file in files:
            self.assertGreater(len(json.loads(file.read_text())["results"]), 0)
        self.refused(self.run_db("export", "--format", "t4", "--out", folder), 2, "--force replaces it")
        self.refused(self.run_db("export", "--format", "csv", "--out", folder), 2, "is a folder")
        self.refused(self.run_db("export", "--format", "csv", "--out", ""), 2, "--out")

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
        self.assertIn("is intact: 2 results", self.done("verify"))

    def test_verify_names_a_changed_value(self):
        damage(self.db, "UPDATE winners SET median_us = 1 WHERE problem LIKE 'softmax%'")
        result = self.run_db("verify")
        self.refused(result, 1, "1 finding")
        self.assertIn("winners: the row of softmax", result.stdout)
        self.assertIn("checksum", result.stdout)

    def test_verify_of_files_that_are_cut(self):
        whole = self.db.read_bytes()
        for content in (whole[:-4096], whole[:5000], whole[:50], b""):
            with self.subTest(length=len(content)):
                self.db.write_bytes(content)
                result = self.run_db("verify")
                self.refused(result, 1, "finding")
                self.assertTrue(result.stdout.strip())
                self.assertEqual(self.db.read_bytes(), content)

    def test_verify_of_a_foreign_file_is_bad_usage(self):
        self.db.write_bytes(b"no database\n" * 500)
        self.refused(self.run_db("verify"), 2, f"--db {self.db}: is not a database")

    def test_an_older_schema_is_brought_up_to_date(self):
        newest = self.load("info")["schema"]
        step = min((SOURCE / "db" / "schema").glob("*.sql"))
        self.db.unlink()
        with sqlite3.connect(self.db) as connection:
            connection.executescript(step.read_text() + "PRAGMA application_id = 0x47524554;"
                                                        "PRAGMA user_version = 1;")
        before = self.db.read_bytes()
        listed = self.done("list")
        self.assertEqual(self.db.read_bytes(), before)
        self.assertIn(f"schema {newest}", self.done("upgrade"))
        self.assertEqual(self.done("list"), listed)

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


class DatabaseExchange(Tuned):
    def test_ship_merge_and_back(self):
        shipped = self.folder / "shipped.db"
        self.assertIn("2 results of 1 device", self.done("export", "--ship", "--out", shipped))
        self.assertLess(shipped.stat().st_size, self.db.stat().st_size)
        self.assertEqual(self.run_db("verify", db=shipped).returncode, 0)
        self.assertIn("shipped", self.run_db("info", db=shipped).stdout)
        own = json.loads(self.run_db("list", "--json").stdout)
        theirs = json.loads(self.run_db("list", "--json", db=shipped).stdout)
        self.assertEqual([entry["winner"]["config_text"] for entry in own],
                         [entry["winner"]["config_text"] for entry in theirs])
        self.refused(self.run_tune(*GEMM, "--budget", "1", "--db", shipped), 2, "shipped")
        # Into a new database, and a second time, which changes nothing.
        merged = self.folder / "merged.db"
        first = json.loads(self.run_db("merge", shipped, "--json", db=merged).stdout)
        self.assertEqual((first[0]["added"], first[0]["same"]), (2, 0))
        again = json.loads(self.run_db("merge", shipped, "--json", db=merged).stdout)
        self.assertEqual((again[0]["added"], again[0]["same"]), (0, 2))
        self.assertIn("2 worse", self.done("merge", shipped))  # the raw samples are here

    def test_what_is_worse_or_lost_is_not_shipped(self):
        old = self.folder / "old.db"
        shutil.copy(self.db, old)
        self.assertIn("0 lost, 0 worse, 0 better, 0 new, 2 same",
                      self.run_words(DB, "compare", str(old), str(self.db)).stdout)
        # The GEMM had another winner, 5 times as fast as the default.
        rewrite(old, "UPDATE winners SET config = replace(config, 'BK=16', 'BK=8'), is_default = 0, speedup = 5,"
                     " speedup_low = 4.9, speedup_high = 5.1 WHERE problem LIKE 'gemm%'")
        rewrite(self.db, "DELETE FROM winners WHERE problem LIKE 'softmax%'")
        compared = self.run_words(DB, "compare", str(old), str(self.db), "--json")
        self.assertEqual(compared.returncode, 4, compared.stderr)
        self.assertEqual(sorted(one["change"] for one in json.loads(compared.stdout)), ["lost", "worse"])
        shipped = self.folder / "shipped.db"
        refused = self.run_db("export", "--ship", "--since", old, "--out", shipped)
        self.assertEqual(refused.returncode, 4)
        self.assertIn("2 answers are worse or lost", refused.stderr)
        self.assertFalse(shipped.exists())
        self.done("export", "--ship", "--since", self.db, "--out", shipped)
        self.assertTrue(shipped.exists())
        self.refused(self.run_db("export", "--format", "csv", "--since", old, "--out", "x"), 2, "--since", "--ship")
        self.refused(self.run_words(DB, "compare", str(old), "none.db"), 2, "none.db")
        self.refused(self.run_db("export", "--ship", "--since", "", "--out", "x"), 2, "--since")
        damage(old, "UPDATE winners SET median_us = 1")
        damaged = self.run_db("export", "--ship", "--since", old, "--out", self.folder / "y")
        self.assertEqual(damaged.returncode, 1)
        self.assertIn("is damaged", damaged.stderr)
        self.assertFalse((self.folder / "y").exists())

    def test_merge_refuses_before_anything_is_written(self):
        self.refused(self.run_db("merge", self.folder / "none.db"), 2, "none.db")
        self.refused(self.run_db("merge", self.db), 2, "merged into")
        damaged = self.folder / "damaged.db"
        shutil.copy(self.db, damaged)
        damage(damaged, "UPDATE winners SET speedup = 99")
        target = self.folder / "target.db"
        self.refused(self.run_db("merge", damaged, db=target), 1, "damaged")
        self.assertFalse(target.exists())

    def test_export_keeps_files_that_are_there(self):
        out = self.folder / "out"
        out.write_text("mine")
        for how in (["--ship"], ["--format", "csv"], ["--format", "t4"]):
            self.refused(self.run_db("export", *how, "--out", out), 2, "exists", "--force")
        self.refused(self.run_db("export", "--ship", "--force", "--out", self.db), 2, "itself")
        self.refused(self.run_db("export", "--format", "xml", "--out", "x"), 2, "xml", "t4")
        self.refused(self.run_db("export", "--out", "x"), 2, "--ship")
        # Root may write to this folder by its permissions, but nothing can be created there.
        for how in (["--ship"], ["--format", "csv"]):
            self.refused(self.run_db("export", *how, "--out", "/proc/x"), 2, "--out /proc/x: can't be written")
        self.assertEqual(out.read_text(), "mine")
        self.done("export", "--ship", "--force", "--out", out)

    def test_t4_and_csv(self):
        out = self.folder / "t4.json"
        self.refused(self.run_db("export", "--format", "t4", "--out", out), 2, "select 2")
        self.done("export", "--format", "t4", "--op", "gemm", "--out", out)
        t4 = json.loads(out.read_text())
        self.assertEqual(t4["schema_version"], "1.1.0")
        trials = self.query("SELECT count(*) FROM trials WHERE session = 1 AND stand_in IS NULL")
        self.assertEqual(len(t4["results"]), trials[0][0])
        self.assertGreater(trials[0][0], 0)
        for result in t4["results"]:
            self.assertIn(result["invalidity"], ("timeout", "compile", "runtime", "correctness",
                                                 "constraints", "correct"))
            self.assertTrue(all(isinstance(us, float) for us in result["times"]["runtimes"]))
        out = self.folder / "all.csv"
        self.done("export", "--format", "csv", "--out", out)
        rows = list(csv.DictReader(out.read_text().splitlines()))
        origins = [row["origin"] for row in rows]
        self.assertEqual(origins.count("winner"), 2)
        self.assertEqual(origins.count("trial"), self.query("SELECT count(*) FROM trials")[0][0])

    def test_tunableop_in_and_out(self):
        file = self.folder / "tunableop_results0.csv"
        file.write_text("Validator,PT_VERSION,2.8.0\nValidator,GCN_ARCH_NAME,gfx942\n"
                        "GemmTunableOp_float_NN,nn_48_64_40_ld_48_40_48,Gemm_Rocblas_7,0.25\n"
                        "GemmTunableOp_double_NN,nn_8_8_8,Default,1\n")
        preset = self.folder / "gemms.json"
        text = self.done("import", file, "--preset", preset)
        self.assertIn("line 4 cannot be converted: no type double here", text)
        self.assertIn("1 GEMM", text)
        self.assertEqual(json.loads(preset.read_text())["problems"],
                         [{"op": "gemm", "dtype": "f32", "m": 64, "n": 48, "k": 40}])
        self.assertIn("250 µs, Gemm_Rocblas_7", self.done("show", "--op", "gemm"))
        self.assertIn("1 time of other libraries, imported", self.done("info"))
        out = self.folder / "out.csv"
        text = self.done("export", "--format", "tunableop", "--out", out)
        self.assertIn("softmax dtype=f32 out=f32 rows=8 cols=64 cannot be converted", text)
        self.assertEqual(out.read_text().splitlines(), file.read_text().splitlines()[:3])
        self.done("export", "--format", "tunableop-untuned", "--out", out, "--force")
        self.assertEqual(out.read_text(), "GemmTunableOp_float_NN,nn_48_64_40_ld_48_40_48\n")
        file.write_text("a,b,c\n")
        self.refused(self.run_db("import", file), 2, "no row can be converted", "line 1")
        self.refused(self.run_db("import", self.folder / "none.csv"), 2, "none.csv")


class DatabaseRenewal(Tuned):
    def test_requalify_times_anew_what_changed(self):
        self.assertIn("0 of 0 results requalified", self.done("requalify"))
        self.change("UPDATE circumstances SET template_key = 'earlier' WHERE id = 1")
        self.change("UPDATE sessions SET template_key = 'earlier' WHERE problem = 1")
        done = json.loads(self.run_db("requalify", "--no-lock", "--json", "--seed", "1").stdout)
        self.assertEqual(len(done), 1)
        # Only the templates' key differs: the kernels are the same.
        self.assertEqual(done[0]["outcome"], "stands")
        self.assertEqual(done[0]["compiled"], done[0]["unchanged"])
        self.assertEqual(self.query("SELECT count(*) FROM winners"), [(3,)])
        self.assertEqual([entry["stale"] for entry in self.load("list", "--op", "gemm")],
                         [[], ["the templates changed"]])
        # A driver with a built-in compiler may compile the same kernels differently.
        self.change("UPDATE circumstances SET driver = 'older' WHERE id IN (2, 3)")
        self.change("UPDATE sessions SET driver = 'older'")
        done = json.loads(self.run_db("requalify", "--no-lock", "--json", "--op", "softmax").stdout)
        self.assertEqual(done[0]["outcome"], "timed anew")

    def test_requalify_without_the_device(self):
        info = json.loads(self.query("SELECT info FROM devices")[0][0])
        info["uuid"] = "0123"
        self.change(f"UPDATE devices SET info = '{json.dumps(info)}', driver = 'gone'")
        self.change("UPDATE circumstances SET driver = 'gone'")
        result = self.run_db("requalify")
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("not on this machine", result.stdout)

    def test_regret_is_measured_and_stored(self):
        result = self.run_tune("gemm", "--m", "64", "--n", "48", "--k", "80", "--budget", "2",
                               "--db", self.db, "--no-lock", "--device", "vulkan:0", "--seed", "1")
        self.assertEqual(result.returncode, 0, result.stderr)
        result = self.run_db("regret", "--measure", "--no-lock", "--op", "gemm", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        found = json.loads(result.stdout)
        self.assertEqual([entry["regret"]["neighbour"] for entry in found],
                         ["m=64 n=48 k=80", "m=64 n=48 k=40"])
        self.assertTrue(all(entry["regret"]["ratio"] > 0 for entry in found))
        listed = self.load("list", "--op", "gemm")
        self.assertEqual([entry["regret"] for entry in listed],
                         [entry["regret"] for entry in found])
        alone = json.loads(self.run_db("regret", "--op", "softmax", "--json").stdout)
        self.assertIsNone(alone[0]["regret"])
        self.assertIn("no other shape", alone[0]["unknown"])
        self.done("verify")


if __name__ == "__main__":
    unittest.main()
