"""Protects: damaged rows of a database are never shown, shipped, merged or given a checksum as
results. They are named, and only removed with a report. A run whose results are missing afterwards
reports that."""
import json
import pathlib
import random
import shutil
import sqlite3
import tempfile
import time
import unittest

from cli_case import HeldCompiler, limit
from sealed_database import connect, damage, damaged_rows, is_sound, restore, sealed_tables
from test_greta_db import GEMM, SOFTMAX, Tuned

REPLACED = r"damaged rows? that this command replaced or removed"


class DatabaseDamage(Tuned):
    def test_the_example(self):
        """A regression test: a command that wrote beside a damaged row gave it a valid checksum."""
        damage(self.db, "update winners set median_us=1")
        self.refused(self.run_db("verify"), 1, "2 findings; 2 rows skipped because of damage: tuning")
        self.assertEqual(self.run_db("regret").returncode, 1)
        verified = self.run_db("verify")
        self.refused(verified, 1, "2 findings")
        for operation in ("gemm", "softmax"):
            self.assertRegex(verified.stdout, f"winners: the row of {operation} .* on llvmpipe .*checksum")

    def test_it_is_named_where_nothing_is_left_of_a_device(self):
        damage(self.db, "UPDATE winners SET median_us = 1")
        for command in (["list"], ["regret"]):
            result = self.run_db(*command, "--device", "vulkan:0")
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("2 rows skipped", result.stderr)
            self.assertIn("--device vulkan:0: no winner of any device is known", result.stderr)
        damage(self.db, "UPDATE sessions SET started_utc = 'never'")
        out = self.folder / "t4.json"
        result = self.run_db("export", "--format", "t4", "--out", out)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(result.stderr, r"rows skipped(.|\n)*select 0")
        self.assertFalse(out.exists())

    def test_no_command_shows_or_ships_it(self):
        damage(self.db, "UPDATE winners SET median_us = 1 WHERE problem LIKE 'softmax%'")
        shipped, table = self.folder / "shipped.db", self.folder / "all.csv"
        for command in (["list"], ["show"], ["info"], ["list", "--json"], ["show", "--json"],
                        ["list", "--csv"], ["regret"], ["export", "--ship", "--out", shipped],
                        ["export", "--format", "csv", "--out", table], ["prune", "--superseded"],
                        ["upgrade"]):
            with self.subTest(command=command):
                result = self.run_db(*command)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn("1 row skipped because of damage: tuning a problem again", result.stderr)
                self.assertIn("winners: the row of softmax", result.stderr)
                if command[0] != "info":
                    self.assertNotIn("softmax", result.stdout)
        self.assertEqual([entry["problem"].split()[0]
                          for entry in json.loads(self.run_db("list", "--json", db=shipped).stdout)],
                         ["gemm"])
        self.assertEqual(self.run_db("verify", db=shipped).returncode, 0)
        info = json.loads(self.run_db("info", "--json").stdout)
        self.assertEqual(info["results"], 1)
        self.assertEqual([(row["table"], row["cause"]) for row in info["damaged"]],
                         [("winners", "does not match its checksum")])
        self.assertTrue(info["damaged"][0]["problem"].startswith("softmax "))
        self.assertIn("llvmpipe", info["damaged"][0]["device"])
        self.assertEqual(json.loads(self.run_db("verify", "--json").stdout)["damaged"], info["damaged"])
        self.assertEqual(self.run_tune("show", "--db", self.db).returncode, 1)
        self.assertEqual(damaged_rows(self.db), 1)

    def test_the_next_tune_replaces_it_and_says_so(self):
        damage(self.db, "UPDATE winners SET checksum = NULL")
        result = self.run_tune(*SOFTMAX, "--budget", "2", "--db", self.db, "--device", "vulkan:0")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("2 rows skipped because of damage", result.stderr)
        self.assertRegex(result.stdout, "replaced winners: the row of softmax")
        self.assertIn("stored in", result.stdout)
        self.assertEqual(damaged_rows(self.db), 1)
        result = self.run_db("list", "--json")
        self.assertEqual(len(json.loads(result.stdout)), 1)

    def test_prune_removes_what_is_damaged_when_it_is_asked(self):
        damage(self.db, "UPDATE devices SET name = 'another'")
        result = self.run_db("list")
        self.assertEqual(result.returncode, 1)
        self.assertIn("0 results", result.stdout)
        self.assertIn("refers to a device whose row is damaged", result.stderr)
        rehearsed = self.run_db("prune", "--damaged", "--dry-run")
        self.assertIn("would remove", rehearsed.stdout)
        self.assertRegex(rehearsed.stderr, r"intact rows that would be removed with damaged ones:\n  \w+: the row of")
        self.assertEqual(damaged_rows(self.db), 1)
        self.refused(self.run_db("prune", "--damaged", "--op", "gemm"), 2, "--damaged")
        removed = self.run_db("prune", "--damaged", "--json")
        self.assertEqual(removed.returncode, 0, removed.stderr)
        self.assertRegex(removed.stderr, REPLACED)
        report = json.loads(removed.stdout)
        self.assertEqual(report["damaged"], 1)
        self.assertGreater(report["results"], 0)  # intact, and of a device that is unknown now
        self.assertGreater(report["sessions"], 0)
        # Each of them is named with its subject.
        orphans = report["orphans"]
        for table in ("results", "sessions", "trials"):
            kind = "winners" if table == "results" else table
            self.assertEqual(sum(row["table"] == kind for row in orphans), report[table])
        self.assertTrue(all(row["row"].endswith(" (id)") or row["table"] != "sessions" for row in orphans))
        self.assertIn("refers to a row that is damaged", orphans[0]["cause"])
        self.assertRegex(removed.stderr, r"intact rows that were removed with damaged ones:\n  \w+: the row of")
        self.assertRegex(removed.stderr, "sessions: the row of .*, (gemm|softmax) .* on another refers to")
        self.done("verify")

    def test_advice_on_a_shipped_file_can_be_followed(self):
        shipped = self.folder / "shipped.db"
        self.done("export", "--ship", "--out", shipped)
        shipped.chmod(0o644)
        damage(shipped, "UPDATE winners SET median_us = 1 WHERE problem LIKE 'softmax%'")
        for command in ("list", "verify"):
            result = self.run_db(command, db=shipped)
            self.assertEqual(result.returncode, 1)
            self.assertIn("1 row skipped because of damage: a shipped file is never written, so install it again",
                          result.stderr)
            self.assertNotIn("prune", result.stderr)

    def test_merge_into_a_damaged_database(self):
        other = self.folder / "other.db"
        shutil.copy(self.db, other)
        damage(self.db, "UPDATE winners SET median_us = 1 WHERE problem LIKE 'softmax%'")
        result = self.run_db("merge", other)
        self.assertRegex(result.stderr, REPLACED)
        self.assertIn("1 added", result.stdout)
        self.done("verify")
        listed = self.load("list")
        self.assertTrue(all(entry["winner"]["median_us"] > 1 for entry in listed))

    def test_words_of_damaged_rows_are_no_commands_to_a_terminal(self):
        damage(self.db, "UPDATE winners SET problem = char(27) || '[31m' || char(10) || 'x'"
                        " WHERE problem LIKE 'softmax%'")
        for command in ("list", "show", "info", "verify"):
            result = self.run_db(command)
            self.assertEqual(result.returncode, 1)
            self.assertNotIn("\x1b", result.stdout + result.stderr)

    def test_any_sequence_of_commands(self):
        """The number of damaged rows only decreases with a report."""
        source = self.folder / "source.db"
        shutil.copy(self.db, source)
        commands = [["list"], ["show"], ["info", "--json"], ["verify"], ["regret"], ["requalify", "--no-lock"],
                    ["merge", source], ["prune", "--failed"], ["prune", "--superseded"], ["upgrade"],
                    ["export", "--ship", "--force", "--out", self.folder / "shipped.db"],
                    ["export", "--format", "csv", "--force", "--out", self.folder / "all.csv"]]
        for seed in range(6):
            choose = random.Random(seed)
            restore(self.template, self.db)
            self.damage_anything(choose)
            rows = damaged_rows(self.db)
            for command in [choose.choice(commands) for _ in range(5)]:
                with self.subTest(seed=seed, command=command):
                    result = self.run_db(*command)
                    now = damaged_rows(self.db)
                    self.assertLessEqual(now, rows)
                    if now < rows:
                        self.assertRegex(result.stderr, REPLACED)
                    if now > 0:
                        self.assertNotEqual(result.returncode, 0, result.stderr)
                    rows = now

    def damage_anything(self, choose):
        """Damages rows of some tables in ways that the schema allows."""
        with connect(self.db) as connection:
            for table in choose.sample(sealed_tables(connection), 4):
                column = choose.choice([name for _, name, *_ in
                                        connection.execute(f"PRAGMA table_info({table})")])
                value = choose.choice(["NULL", "7", "'x'", "9e999", "char(27)", "zeroblob(9)"])
                try:
                    connection.execute(f"UPDATE {table} SET {column} = {value}")
                except sqlite3.DatabaseError:
                    connection.execute(f"UPDATE {table} SET checksum = checksum + 1")


class DatabaseOverwritten(Tuned):
    ceilings = "auto,vulkan:0,hip-host:0"

    def overwrite_during(self, content):
        """Replaces a database's content, not the file, during a search. Returns the end of the
        tune."""
        held = HeldCompiler(pathlib.Path(tempfile.mkdtemp(dir=self.folder)), self.env, free=2)
        run = self.start(*GEMM[:-1], "56", "--variant", "naive", "--budget", "4", "--db", self.db, "--no-lock",
                         "--device", "hip-host:0", "--seed", "1", env=held.env)
        held.wait_until_it_holds(run)  # a candidate, after the reference kernel and the default
        searching = "SELECT plan IS NOT NULL FROM sessions WHERE id > 2"
        while run.poll() is None and self.query(searching) != [(1,)]:
            time.sleep(0.02)
        self.assertIsNone(run.poll(), "the run was over too soon")
        with open(self.db, "r+b") as file:
            file.truncate()
            file.write(content)
        held.release()
        return run.communicate(timeout=limit(120)), run.returncode

    def test_a_run_whose_database_was_overwritten_does_not_say_stored(self):
        for content in (self.template.read_bytes(), b"no database\n" * 1000):
            with self.subTest(length=len(content)):
                restore(self.template, self.db)
                (output, errors), code = self.overwrite_during(content)
                stored = False
                try:
                    with connect(self.db) as connection:
                        stored = connection.execute(
                            "SELECT count(*) FROM winners w JOIN sessions s ON s.id = w.session WHERE"
                            f" w.problem LIKE '% k=56' AND {is_sound(connection, 'winners', 'w.')}"
                            ).fetchone()[0] == 1
                except sqlite3.DatabaseError as error:
                    self.assertRegex(str(error), "malformed|not a database")
                # SQLite's log may restore everything.
                self.assertEqual(code == 0, "stored in" in output, output + errors)
                self.assertTrue(stored or code == 1, output + errors)
                if code != 0:
                    self.assertIn("NOT STORED", output, errors)
                    self.assertRegex(output, "winner|best so far|trials")
                    self.assertIn(str(self.db), errors.splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
