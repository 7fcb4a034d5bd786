"""Protects: greta-db export --contribute gives what is certified, verified and complete, without names,
and says of each other result why not; scripts/check_contribution.py accepts such a file and refuses
one that is unsound, incomplete, private, worse than what ships or not reproducible."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

from cli_case import DB, SOURCE, TunedOnce, limit
from sealed_database import damage, rewrite

GEMM = ["gemm", "--m", 32, "--n", 32, "--k", 32]
SOFTMAX = ["softmax", "--rows", 16, "--cols", 64]


class Contribution(TunedOnce):
    shapes = (GEMM, SOFTMAX)

    def setUp(self):
        super().setUp()
        if hasattr(self.__class__, "case") and self is not self.case:
            self.db.write_bytes(self.case.db.read_bytes())
        self.file = self.folder / "given.db"

    def given(self, *options):
        return self.run_db("export", "--contribute", self.file, "--force", *options)

    def checked(self, *options, file=None):
        return subprocess.run(
            [sys.executable, SOURCE / "scripts/check_contribution.py", file or self.file, "--bin",
             pathlib.Path(DB).parent, "--shipped", self.shipped, *map(str, options)],
            env=self.env, capture_output=True, text=True, timeout=limit(120), stdin=subprocess.DEVNULL)

    def test_what_is_certified_is_given_and_accepted(self):
        given = self.given()
        self.assertEqual((given.returncode, given.stderr), (0, ""))
        self.assertIn("2 results of 1 device; 0 omitted", given.stdout)
        info = json.loads(self.run_db("info", "--json", "--no-shipped", db=self.file).stdout)
        self.assertEqual((info["shipped"], info["results"], info["sessions"], info["trials"]), (True, 2, 0, 0))
        self.assertEqual([card["pci_address"] for card in info["devices"][0]["cards"]], [""])
        checked = self.checked("--sample", 2, "--tune", "no-lock", "flush=1")
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        for line in ("sound: ok", "complete: ok", "nothing private: ok", "not worse: ok", "reproducible: ok"):
            self.assertIn(line, checked.stdout)
        self.assertEqual(checked.stdout.count("certified again, "), 2)

    def test_an_invented_speed_up_is_found_by_certifying_again(self):
        rewrite(self.db, "UPDATE winners SET is_default = 0, speedup = 40, speedup_low = 39, speedup_high = 41,"
                         " default_us = 40 * median_us WHERE problem LIKE 'gemm%'")
        self.assertEqual(self.given().returncode, 0)
        checked = self.checked("--sample", 2, "--tune", "no-lock", "flush=1")
        self.assertEqual(checked.returncode, 4, checked.stdout + checked.stderr)
        self.assertRegex(checked.stdout, r"reproducible: gemm .*certified again, .*the file says 39\.000 to 41\.000")
        self.assertRegex(checked.stdout, r"reproducible: softmax .*certified again, ")

    def test_addresses_of_cards_are_private(self):
        extract = SOURCE / "results/nvidia-h200/tuned.db"
        checked = self.checked("--sample", 0, file=extract)
        addresses = json.loads(self.run_db("info", "--json", "--no-shipped", db=extract).stdout)["devices"][0]["cards"]
        self.assertTrue(any(card["pci_address"] for card in addresses))
        self.assertEqual(checked.returncode, 1, checked.stdout)
        self.assertIn("nothing private: has the PCI address ", checked.stdout)

    def test_wrong_options_are_one_clear_line(self):
        self.assertEqual(self.given().returncode, 0)
        for words, why in ((("--sample", -1), "--sample"), (("--shipped", "/nonexistent"), "/nonexistent: no such folder"),
                           (("--bin", self.folder), "has no greta-db")):
            with self.subTest(words):
                checked = self.checked(*words)
                self.assertEqual(checked.returncode, 2, checked.stdout)
                self.assertIn(why, checked.stderr)
                self.assertNotIn("Traceback", checked.stderr)

    def test_what_cant_be_given_is_named_with_the_reason(self):
        for sql, why in (
                ("UPDATE winners SET rounds = 0", "not certified"),
                ("UPDATE winners SET passed = 0", "not verified"),
                ("UPDATE winners SET card = NULL", "lacks the card"),
                ("UPDATE winners SET greta_version = ''", "lacks the GRETA's version"),
                ("UPDATE circumstances SET driver = 'older'", "stale (driver was older"),
                ("UPDATE winners SET detail = '/home/somebody/x ' || 'USERNAME'", None)):
            self.db.write_bytes(self.case.db.read_bytes())
            if why is None:
                self.env["LOGNAME"] = "jdoe_of_tests"
                sql, why = sql.replace("USERNAME", "jdoe_of_tests"), "details of its check names a person"
            # Of the softmax alone, so that the GEMM is given.
            table = sql.split()[1]
            part = " WHERE problem LIKE 'softmax%'" if table == "winners" else (
                " WHERE id IN (SELECT circumstances FROM winners WHERE problem LIKE 'softmax%')")
            with self.subTest(sql):
                rewrite(self.db, sql + part)
                given = self.given()
                self.assertEqual(given.returncode, 0, given.stderr)
                self.assertEqual(len(given.stderr.splitlines()), 1, given.stderr)
                self.assertRegex(given.stderr, r"omitted: softmax dtype=f32 .* on llvmpipe")
                self.assertIn(why, given.stderr)
                self.assertIn("1 result of 1 device; 1 omitted", given.stdout)

    def test_nothing_is_written_where_nothing_can_be_given(self):
        rewrite(self.db, "UPDATE winners SET rounds = 0")
        given = self.given()
        self.assertEqual(given.returncode, 2)
        self.assertIn("no result can be given to others", given.stderr)
        self.assertEqual([path.name for path in self.folder.glob("given*")], [])
        self.refused(self.given("--ship"), 2, "--contribute", "not with --ship")

    def test_what_is_unsound_or_private_or_worse_is_refused(self):
        self.assertEqual(self.given().returncode, 0)
        sound = self.file.read_bytes()
        self.file.chmod(0o644)
        damage(self.file, "UPDATE winners SET median_us = 1")
        checked = self.checked()
        self.assertEqual(checked.returncode, 1)
        self.assertIn("sound: winners: the row of gemm", checked.stdout)
        self.file.write_bytes(sound)
        shipped = self.shipped / "lavapipe" / "better.db"
        shipped.parent.mkdir()
        loose = self.folder / "loose.db"
        loose.write_bytes(self.case.db.read_bytes())
        rewrite(loose, "UPDATE winners SET is_default = 0, median_us = median_us / 9, low_us = low_us / 9,"
                       " high_us = high_us / 9, speedup = 9, speedup_low = 8.9, speedup_high = 9.1,"
                       " config = CASE WHEN problem LIKE 'gemm%' THEN 'naive THREADS=64' ELSE config END")
        self.assertEqual(self.run_db("export", "--ship", "--out", shipped, db=loose).returncode, 0)
        checked = self.checked("--sample", 0)
        self.assertEqual(checked.returncode, 1, checked.stdout)
        self.assertRegex(checked.stdout, r"not worse: gemm .* on llvmpipe.*× the speed of better.db's")
        rewrite(loose, "UPDATE winners SET detail = 'found by jdoe@workstation in /home/jdoe'")
        private = self.folder / "private.db"
        self.assertEqual(self.run_db("export", "--ship", "--out", private, db=loose).returncode, 0)
        checked = self.checked("--sample", 0, file=private)
        self.assertEqual(checked.returncode, 1)
        for word in ("/home/", "jdoe@workstation"):
            self.assertIn(f'nothing private: has the text "{word}"', checked.stdout)

    def test_a_device_that_is_not_here_is_said_to_be_unchecked(self):
        extract = SOURCE / "results/nvidia-h200/tuned.db"
        checked = self.checked(file=extract)
        self.assertIn("reproducible: NOT CHECKED for NVIDIA H200, which this machine lacks", checked.stdout)
        self.assertIn(checked.returncode, (1, 3), checked.stdout)


if __name__ == "__main__":
    unittest.main()
