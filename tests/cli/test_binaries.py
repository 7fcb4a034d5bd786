"""Protects: greta-db export --ship --binaries carries compiled kernels, with which greta-run works on a machine without
any compiler. What is damaged, of another template or for another target is refused with a line, and compiled."""
import json
import os
import shutil
import struct

from cli_case import CACHE, made_once
from sealed_database import damage, field_bytes, fnv1a_128, rewrite
from test_greta_run import MODEL, STORY, RunCase

HOST, LAVAPIPE = "hip-host:0", "vulkan:0"
TOKENS = 12
TUNED = ["gemm", "--m", 1, "--n", 512, "--k", 64, "--layout", "nt"]  # of stories260K


def hash_of(content, target, binary):
    """Implements CarriedBinary::hash()."""
    return f"{fnv1a_128(b''.join(map(field_bytes, (content.encode(), target.encode(), binary)))):032x}"


class BinariesOnAmd(RunCase):
    """A fake AMD GPU, whose driver reads code objects and executes nothing."""

    def test_code_objects_are_loaded_without_a_compiler(self):
        self.env.update(LD_LIBRARY_PATH=os.environ["GRETA_FAKE_AMD"], GRETA_FAKE_ARCHITECTURE="gfx90a",
                        XDG_CACHE_HOME=str(self.folder / "cache"))
        # It is known to the database without any result.
        tuned = self.run_tune("argmax", "--rows", 1, "--cols", 64, "--device", "hip:0", "--budget", 1, "--db", self.db)
        self.assertIn("no configuration passed", tuned.stdout, tuned.stderr)
        capture, ship = self.folder / "run.jsonl", self.folder / "ship.db"
        words = ("--model", MODEL, "--prompt", "Once", "--tokens", 3, "--device", "hip:0", "--no-shipped")
        result = self.run_greta(*words, "--capture", capture)
        self.assertEqual(result.returncode, 0, result.stderr)
        result = self.run_db("export", "--ship", "--binaries", "gfx90a", "--problems", capture, "--out", ship)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"\d+ kernels compiled for gfx90a")
        (self.folder / "empty").mkdir()
        self.env.update(PATH=str(self.folder / "empty"), XDG_CACHE_HOME=str(self.folder / "cold"))
        result = self.run_greta(*words)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("no database carries it compiled for this device", result.stderr)
        result = self.run_greta(*words, "--shipped", ship, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        told = json.loads(result.stdout)
        self.assertEqual((told["kernels_compiled"], result.stderr), (0, ""))
        self.assertGreater(told["kernels_loaded"], 10)


class Binaries(RunCase):
    def setUp(self):
        super().setUp()
        self.ship = self.folder / "ship.db"
        made = made_once("binaries.db", self.make)
        shutil.copy(made, self.ship)
        self.ship.chmod(0o600)
        # Compiled kernels of other tests must not be found.
        self.env["XDG_CACHE_HOME"] = str(self.folder / "cache")

    def make(self, file):
        """Tunes one problem of the model on two devices, and ships the kernels of all its problems."""
        self.know_ceilings(f"{LAVAPIPE},{HOST}")
        captures = []
        for device in (HOST, LAVAPIPE):
            tuned = self.run_tune(*TUNED, "--device", device, "--budget", 1, "--db", self.db)
            self.assertEqual(tuned.returncode, 0, tuned.stderr)
            captures += ["--problems", self.folder / f"{device}.jsonl"]
            result = self.story("--tokens", TOKENS, "--db", self.db, "--capture", captures[-1], device=device)
            self.assertEqual(result.returncode, 0, result.stderr)
        result = self.run_db("export", "--ship", "--binaries", "host-sm_80,lavapipe", *captures, "--out", file)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"\d+ kernels compiled for host-sm_80 \S+ \w+ \(.*\), \d+ kernels compiled for spirv")

    def generated(self, device, *words):
        """Returns what --json tells, and standard error."""
        result = self.story("--tokens", TOKENS, "--json", "--shipped", self.ship, "--no-shipped", *words, device=device)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout), result.stderr

    def without_compilers(self):
        """Empties the path: neither a C++ compiler nor a helper for hiprtc and NVRTC is found."""
        empty = self.folder / "empty"
        empty.mkdir()
        self.env["PATH"] = str(empty)
        self.env.pop("LD_LIBRARY_PATH", None)

    def test_a_machine_without_any_compiler(self):
        self.without_compilers()
        result = self.story("--tokens", TOKENS, "--no-shipped", device=HOST)
        self.refused(result, 1, "no database carries it compiled for this device, and it can't be compiled here",
                     "no C++ compiler")
        for device in (HOST, LAVAPIPE):
            told, errors = self.generated(device)
            self.assertEqual(told["ids"], STORY[:TOKENS])
            self.assertEqual(told["kernels_compiled"], 0)
            self.assertGreater(told["kernels_loaded"], 10)
            self.assertEqual(errors, "")
        self.assertFalse((self.folder / "cache" / "greta" / "kernels").exists(), "nothing was compiled")
        result = self.story("--tokens", TOKENS, "--shipped", self.ship, "--no-shipped", device=HOST)
        self.assertRegex(result.stderr, r"; \d+ kernels of databases, 0 compiled\n$")
        # A vendor's library needs no compiler either.
        told, _ = self.generated(HOST, "--allow", "vendor", "--use", "gemm m=1 n=512 prologue=none: vendor")
        self.assertEqual((told["ids"], told["kernels_compiled"]), (STORY[:TOKENS], 1), "its call counts as a kernel")
        # What is not carried is one line that says so, and tuning does not begin.
        result = self.story("--shipped", self.ship, "--no-shipped", "--use", "argmax: split", device=HOST)
        self.assertEqual(result.returncode, 1, result.stderr)
        said, end = result.stderr.splitlines()
        self.assertRegex(said, "argmax/split: the databases carry compiled kernels for host-sm_80 .* but no usable one")
        self.assertRegex(end, "argmax/split: no database carries it compiled for this device")
        self.refused(self.run_tune(*TUNED, "--device", HOST, "--db", self.db), 2, "no compiler for its kernels")

    def lost(self, *words):
        """Runs on hip-host without compilers, which lacks a kernel. Returns standard error."""
        self.without_compilers()
        result = self.story("--tokens", TOKENS, "--shipped", self.ship, "--no-shipped", *words, device=HOST)
        self.assertEqual(result.returncode, 1, result.stderr)
        return result.stderr

    def test_a_damaged_binary_is_refused_and_compiled(self):
        damage(self.ship, "UPDATE binaries SET binary = zeroblob(length(binary)) WHERE target = 'spirv' AND"
               " name = 'argmax/row'")
        told, errors = self.generated(LAVAPIPE)
        self.assertEqual(told["ids"], STORY[:TOKENS])
        self.assertEqual(told["kernels_compiled"], 1)
        self.assertRegex(errors, r"the binary of kernel \w+ for spirv is not used: it is damaged, as greta-db verify says")
        verified = self.run_db("verify", db=self.ship)
        self.assertEqual(verified.returncode, 1)
        self.assertIn("binaries", verified.stdout + verified.stderr)

    def test_a_binary_that_is_not_the_one_of_its_hash_is_refused(self):
        rewrite(self.ship, "UPDATE binaries SET binary = zeroblob(length(binary)) WHERE name = 'argmax/row'",
                tables=("binaries",))
        told, errors = self.generated(LAVAPIPE)
        self.assertEqual((told["ids"], told["kernels_compiled"]), (STORY[:TOKENS], 1))
        self.assertIn("its hash is not that of its contents", errors)
        self.assertIn("its hash is not that of its contents", self.lost())

    def test_a_binary_that_the_driver_refuses_is_compiled(self):
        import sqlite3
        with sqlite3.connect(self.ship) as connection:
            rows = connection.execute("SELECT content, target FROM binaries WHERE name = 'argmax/row'").fetchall()
        junk = struct.pack("<4I", 1, 2, 3, 4)
        for content, target in rows:
            rewrite(self.ship, "UPDATE binaries SET binary = ?, hash = ? WHERE content = ? AND target = ?",
                    (junk, hash_of(content, target, junk), content, target), tables=("binaries",))
        for device in (LAVAPIPE, HOST):
            told, errors = self.generated(device)
            self.assertEqual((told["ids"], told["kernels_compiled"]), (STORY[:TOKENS], 1))
            self.assertRegex(errors, r"argmax/row: its binary for .* is not used, so that it is compiled: ")

    def test_other_templates_and_targets_are_compiled(self):
        another = "content = CASE substr(content, 1, 1) WHEN 'f' THEN 'e' ELSE 'f' END || substr(content, 2)"
        for change in (another, "target = 'host-sm_80 other 01234567'"):
            with self.subTest(change=change):
                shutil.copy(made_once("binaries.db", self.make), self.ship)
                self.ship.chmod(0o600)
                shutil.rmtree(self.folder / "cache", ignore_errors=True)
                rewrite(self.ship, f"UPDATE binaries SET {change} WHERE name = 'argmax/row' AND target LIKE 'host%'",
                        tables=("binaries",))
                told, errors = self.generated(HOST)
                self.assertEqual((told["ids"], told["kernels_compiled"]), (STORY[:TOKENS], 1))
                self.assertIn("argmax/row: the databases carry compiled kernels for host-sm_80", errors)
                self.assertIn("what they lack is compiled", errors)

    def test_what_is_listed_and_bad_input(self):
        told = json.loads(self.run_db("info", "--json", db=self.ship).stdout)
        self.assertEqual([one["target"].split()[0] for one in told["binaries"]], ["host-sm_80", "spirv"])
        self.assertTrue(all(one["count"] > 10 and one["bytes"] > 1000 for one in told["binaries"]))
        self.assertIn("kernels compiled for spirv", self.run_db("info", db=self.ship).stdout)
        out = self.folder / "out.db"
        export = ("export", "--out", out)
        for words, message in (
                (["--ship", "--binaries", "gfx942"], "--binaries gfx942: the database has devices of host-sm_80, lavapipe"),
                (["--format", "csv", "--binaries", "lavapipe"], "--binaries: only with --ship"),
                (["--ship", "--problems", MODEL], "--problems: only with --binaries"),
                (["--ship", "--binaries", "lavapipe", "--problems", MODEL], "--problems ")):
            with self.subTest(words=words):
                self.refused(self.run_db(*export, *words, db=self.ship), 2, message)
                self.assertFalse(out.exists())


if __name__ == "__main__":
    import unittest
    unittest.main()
