"""Protects: what the tools say of a vendor's library, and that its results stay beside GRETA's own, on hip-host's
library with the same interface."""
import json
import unittest

from cli_case import Case

PROBLEM = ("gemm", "--m", "9", "--n", "8", "--k", "16")
ALGORITHM = (r"algorithm (0, tile 8x8, stages 16x1, (1 slice|[248] slices summed in [fi]32)|1, tile 8x8, stages 16x1, 1 slice), "
             r"cluster 1x1x1")
ATTENTION = ("attention", "--batch", "1", "--heads", "2", "--kv_heads", "1", "--q", "3", "--kv", "9", "--dim", "16")
SCALED = ("scaled_gemm", "--m", "9", "--n", "16", "--k", "32")


class Vendor(Case):
    known_devices = "hip-host:0"

    def tune(self, *more, problem=PROBLEM, budget=4):
        result = self.run_tune(*problem, "--device", "hip-host:0", "--db", self.db, "--budget", budget, "--seed", "1",
                               *more)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def results(self):
        return [one["winner"]["config"]["variant"]
                for one in json.loads(self.run_db("list", "--json").stdout)]

    def test_it_is_compared_stored_and_kept_beside_the_winner(self):
        text = self.tune("--allow", "vendor")
        self.assertRegex(text, r"vs hip-host +0\.\d+× as fast \(0\.\d+ to 0\.\d+\); hip-host [\d.]+ takes ")
        self.assertRegex(text, ALGORITHM)
        self.assertIn("stored beside the winner", text)
        own, vendor = self.results()
        self.assertNotEqual(own, "vendor")
        self.assertEqual(vendor, "vendor")
        compilers = self.query("SELECT compiler FROM circumstances WHERE compiler LIKE 'hip-host %'")
        self.assertEqual(len(compilers), 1)
        # Its fastest algorithms are tried with other slices of K than their own, too.
        sliced = self.query("SELECT count(*) FROM trials WHERE config LIKE 'vendor % SPLITK=2' AND status = 'ok'")
        self.assertGreater(sliced[0][0], 0)
        shown = self.run_tune("show", "--db", self.db).stdout
        self.assertRegex(shown, r"peer +[\d.]+ .s, vendor RANK=\d+ WORKSPACE_MIB=\d+ SPLITK=\d \(algorithm [01], tile ")
        self.assertEqual(self.run_db("verify").returncode, 0)
        self.assertIn("0 stale", self.run_db("list").stdout)
        # A merge keeps both, and its answer without the library is GRETA's own.
        other = self.db.with_name("other.db")
        merged = self.run_db("merge", str(self.db), db=other)
        self.assertEqual(merged.returncode, 0, merged.stderr)
        self.db = other
        self.assertEqual(self.results(), [own, vendor])
        # It is no later version of the same result, so neither supersedes the other.
        pruned = self.run_db("prune", "--superseded")
        self.assertEqual(pruned.returncode, 0, pruned.stderr)
        self.assertEqual(self.results(), [own, vendor])

    def test_scaled_products_are_compared_where_the_library_computes_them(self):
        # The default is enough to compare with, and the only kernel that must be compiled.
        blocks = ("scaled_gemm", "--m", "12", "--n", "16", "--k", "144", "--scales", "block")
        for problem in (SCALED, (*SCALED, "--scales", "row"), blocks, (*SCALED, "--format", "int8")):
            report = json.loads(self.tune("--allow", "vendor", "--json", problem=problem, budget=1))
            self.assertGreater(report["vendor"]["ratio"], 0)
            self.assertRegex(report["vendor"]["algorithm"], f"^{ALGORITHM}$")
        for more in (("--scales", "block"), ("--format", "e5m2"), ("--format", "int8", "--scales", "block")):
            report = json.loads(self.tune("--allow", "vendor", "--json", *more, problem=SCALED, budget=1))
            self.assertIsNone(report["vendor"], more)

    def test_scaled_products_are_right(self):
        result = self.run_tune("verify", "scaled_gemm", "--variant", "vendor", "--problems", "24", "--seed", "1",
                               "--device", "hip-host:0")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        for dtype in ("bf16", "f16", "f32"):
            self.assertRegex(result.stdout, rf"vendor +{dtype} to {dtype}: [1-9]\d* passed, 0 failed")

    def test_scales_of_blocks_and_sums_of_integers_are_right(self):
        """Rows, columns and k that fill neither tiles nor blocks, nor fours of blocks."""
        for more in (("--m", "4", "--n", "8", "--k", "16", "--scales", "block"),
                     ("--m", "68", "--n", "264", "--k", "784", "--scales", "block", "--dtype", "f16"),
                     ("--m", "100", "--n", "132", "--k", "4240", "--scales", "block", "--dtype", "f32"),
                     ("--m", "1", "--n", "4", "--k", "16", "--format", "int8"),
                     ("--m", "37", "--n", "260", "--k", "400", "--format", "int8", "--scales", "row", "--dtype", "f16"),
                     ("--m", "67", "--n", "76", "--k", "8192", "--format", "int8", "--scales", "row", "--dtype", "f32")):
            with self.subTest(more):
                result = self.run_tune("verify", "scaled_gemm", *more, "--variant", "vendor", "--sample", "4", "--seed", "1",
                                       "--device", "hip-host:0", "--json")
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                of_vendor, = json.loads(result.stdout)["variants"]
                self.assertEqual(of_vendor["wrong"], 0)
                self.assertGreater(of_vendor["right"], 0)

    def test_scaled_products_that_it_does_not_compute_are_refused(self):
        for more, reason in ((("--m", "9", "--scales", "block"), "rows_of_blocks: "),
                             (("--m", "8", "--scales", "block", "--format", "int8"), "scales_of_blocks: "),
                             (("--m", "8", "--format", "e5m2"), "format: ")):
            refused = self.run_tune("verify", "scaled_gemm", "--n", "16", "--k", "32", *more, "--variant", "vendor",
                                    "--device", "hip-host:0")
            self.refused(refused, 2, "--variant vendor", reason)
        refused = self.run_tune("verify", "scaled_gemm", "--m", "8", "--n", "18", "--k", "32", "--format", "int8",
                                "--variant", "vendor", "--device", "hip-host:0")
        self.refused(refused, 2, "--variant vendor", "alignment: n must be a multiple of 4")

    def test_attention_is_right_and_compared(self):
        result = self.run_tune("verify", "attention", "--variant", "vendor", "--problems", "40", "--seed", "1",
                               "--device", "hip-host:0")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        for dtype in ("bf16", "f16"):
            self.assertRegex(result.stdout, rf"vendor +{dtype} to {dtype}: [1-9]\d* passed, 0 failed")
        report = json.loads(self.tune("--allow", "vendor", "--json", problem=ATTENTION, budget=2))
        self.assertEqual(report["vendor"]["algorithm"].rstrip("01"), "algorithm ")
        for more in (("--page-size", "16"), ("--dtype", "f32")):
            report = json.loads(self.tune("--allow", "vendor", "--json", *more, problem=ATTENTION, budget=1))
            self.assertIsNone(report["vendor"], more)

    def test_a_given_problem_is_verified(self):
        for problem in (PROBLEM, SCALED):
            for more in (("--variant", "vendor"), ("--variant", "vendor", "--sample", "3"),
                         ("--config", "vendor RANK=0 WORKSPACE_MIB=4 SPLITK=8")):
                with self.subTest(problem[0], more=more):
                    result = self.run_tune("verify", *problem, "--device", "hip-host:0", "--seed", "1", "--json", *more)
                    self.assertEqual(result.returncode, 0, result.stderr)
                    report = json.loads(result.stdout)
                    of_vendor, = report["variants"]
                    self.assertEqual((of_vendor["variant"], of_vendor["wrong"]), ("vendor", 0))
                    self.assertGreater(of_vendor["right"], 0)
                    self.assertEqual(of_vendor["right"] + report["not_ranked"], 3 if "3" in more else 1)
        # Its slices need memory.
        unranked = self.run_tune("verify", *PROBLEM, "--config", "vendor RANK=0 WORKSPACE_MIB=0 SPLITK=2", "--device",
                                 "hip-host:0", "--json")
        self.assertEqual(json.loads(unranked.stdout)["not_ranked"], 1, unranked.stderr)
        self.assertEqual(unranked.returncode, 1)
        self.assertRegex(unranked.stderr, r"^greta-tune: nothing was verified: hip-host [\d.]+: 2 slices of K need 288 bytes "
                                          r"of workspace\n$")
        self.refused(self.run_tune("verify", *PROBLEM, "--config", "vendor RANK=99 WORKSPACE_MIB=4 SPLITK=0", "--device",
                                   "hip-host:0"), 2, "--config: ", "RANK=99 is not one of")
        # GRETA's own compilers have no library.
        self.refused(self.run_tune("compile", *PROBLEM, "--arch", "gfx942", "--variant", "vendor"), 2,
                     "--variant vendor", "library: ")

    def test_on_a_cpu_it_is_not_compared_unless_it_is_allowed(self):
        report = json.loads(self.tune("--json"))
        self.assertIsNone(report["vendor"])
        self.assertEqual(len(self.results()), 1)
        self.assertEqual(self.query("SELECT count(*) FROM trials WHERE config LIKE 'vendor %'"), [(0,)])

    def test_what_it_does_not_compute_is_not_compared(self):
        report = json.loads(self.tune("--epilogue", "silu", "--allow", "vendor", "--json"))
        self.assertIsNone(report["vendor"])

    def test_an_operation_without_it_is_refused(self):
        """Of a preset or a model, it is for the operations that have it."""
        for words in (("softmax", "--rows", 2, "--cols", 3), ("quantized_gemm", "--m", 1, "--n", 8, "--k", 128)):
            result = self.run_tune(*words, "--allow", "vendor", "--db", self.db)
            self.assertEqual(result.returncode, 2)
            self.assertRegex(result.stderr, "^greta-tune: --allow vendor: only [a-z_, ]*scaled_gemm[a-z_, ]* have that variant\n$")
        self.assertNotIn("--allow WORD", self.run_tune("softmax", "--help").stdout)
        self.assertIn("--allow WORD", self.run_tune("preset", "--help").stdout)

    def test_other_words_are_refused(self):
        result = self.run_tune(*PROBLEM, "--allow", "everything", "--db", self.db)
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"^greta-tune: --allow[^\n]*vendor[^\n]*\n$")
        self.assertEqual(self.query("SELECT count(*) FROM sessions"), [(0,)])


if __name__ == "__main__":
    unittest.main()
