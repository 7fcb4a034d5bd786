"""Protects: greta-run --use forces what runs, refuses what does not exist or is not allowed here, and reports rules that
decided about nothing; --matrix checks and times each operation of a model in each variant."""
import csv
import json
import unittest

from test_greta_run import MODEL, STORY, RunCase

OPERATIONS = ["attn_norm + qkv", "attn_out", "ffn_out", "head"]


class Rules(RunCase):
    def explained(self, *rules, options=()):
        """Returns the lines of --explain of decoding, by operation, and standard error."""
        words = [word for rule in rules for word in ("--use", rule)]
        result = self.story("--explain", *words, *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stdout.split("decode of 1 token:")[1].splitlines()
        return {line.split("  ")[0]: line for line in lines if "  " in line}, result.stderr

    def test_rules_decide_what_runs_and_the_text_stays_the_same(self):
        lines, errors = self.explained("gemm m=1 n>=512: gemv THREADS=128", "gemm m=1: naive", "rmsnorm: streamed")
        for name in OPERATIONS[:-1]:
            self.assertRegex(lines[name], r"naive THREADS=\d+ +forced")
        self.assertRegex(lines["head"], r"gemv THREADS=128 .* forced")
        self.assertRegex(lines["final_norm"], r"streamed .* forced")
        self.assertRegex(lines["argmax"], r"row .* default")
        self.assertEqual(errors, "")
        self.assertEqual(self.told("--tokens", 20, "--use", "*: naive")["ids"], STORY[:20])

    def test_rules_that_decide_nothing_are_reported(self):
        _, errors = self.explained("gemm m=7: naive", "gemm m<=16: naive", "gemm m=16: tiled")
        self.assertEqual(errors.splitlines(),
                         ['--use "gemm m=7: naive": no problem of this run matches it',
                          '--use "gemm m=16: tiled": earlier rules decide about each problem that it matches'])
        result = self.story("--tokens", 2, "--use", "softmax: held")
        self.assertIn('--use "softmax: held": no problem of this run matches it', result.stderr)

    def test_a_file_of_rules(self):
        file = self.folder / "rules.txt"
        file.write_text("# decoding\ngemm m=1: naive\n\nargmax: split\n")
        lines, _ = self.explained(f"@{file}")
        self.assertRegex(lines["head"], "naive .* forced")
        self.assertRegex(lines["argmax"], "split .* forced")
        file.write_text("gemm m=1: naive\ngemm m=1: nope\n")
        self.refused(self.story("--use", f"@{file}"), 2, f"--use: {file}:2: rule", "nope: must be one of gemv")
        self.refused(self.story("--use", f"@{self.folder}/none"), 2, "--use: ", "No such file")

    def test_what_a_recorded_variant_runs(self):
        """The best known configuration of a variant is the fastest that was recorded, although another variant won."""
        self.know_ceilings()
        tuned = self.run_tune("gemm", "--m", 1, "--n", 512, "--k", 64, "--layout", "nt", "--device", "lavapipe",
                              "--variant", "naive", "--budget", 4, "--strategy", "exhaustive", "--db", self.db, "--json")
        self.assertEqual(tuned.returncode, 0, tuned.stderr)
        lines, _ = self.explained("gemm m=1 n=512: naive", options=("--db", self.db))
        self.assertRegex(lines["head"], r"naive THREADS=\d+ +forced")

    def test_what_is_not_allowed_here_ends_the_run_with_the_constraint(self):
        self.refused(self.story("--use", "gemm m=1: tiled BM=3"), 2, 'rule "gemm m=1: tiled BM=3": gemm dtype=f32',
                     "domain: BM=3 is not one of 16")
        self.refused(self.story("--use", "gemm: vendor"), 2, 'rule "gemm: vendor": gemm dtype=f32', "vendor")
        self.refused(self.story("--use", "gem: naive"), 2, "did you mean gemm?")

    def test_an_alternative_of_a_chain_is_forced_and_shown(self):
        result = self.story("--explain", "--use", "gate_up: parts", "--use", "qkv: split")
        self.assertEqual(result.returncode, 0, result.stderr)
        decode = result.stdout.split("decode of 1 token:")[1]
        self.assertRegex(decode, r"\ngate_up dtype=f32 .* parts +forced ")
        self.assertRegex(decode, r"\nqkv dtype=f32 .* split +forced ")
        self.assertRegex(decode, r"\nrope_kv dtype=f32 .* fused +default ")
        operations = {line.split("  ")[0] for line in decode.splitlines()}
        self.assertLessEqual({"q", "k", "v", "ffn_norm", "gate_up", "silu_mul"}, operations)
        self.assertEqual(self.told("--tokens", 12, "--use", "gate_up rows>8: gated", "--use",
                                   "residual_norm: add_norm")["ids"], STORY[:12])
        self.refused(self.story("--use", "gate_up: fused"), 2, 'rule "gate_up: fused": gate_up dtype=f32',
                     "few_rows: the norm of a row is part of products of at most 8 rows")
        self.refused(self.story("--use", "gate_up: fuse"), 2, "did you mean fused?")

    def test_the_quantisation_of_rows_is_part_of_the_norm_or_forced_apart(self):
        """By default of few rows, a norm quantises its result for products with fp8 weights."""
        for rules, alternative, operations in (
                ((), "fused +default", {"attn_norm + quantize", "residual + ffn_norm + quantize"}),
                (("norm_quantize", "add_norm_quantize"), "parts +forced", {"attn_norm", "residual + ffn_norm", "quantize"})):
            words = [word for rule in rules for word in ("--use", f"{rule}: parts")]
            result = self.story("--quantize", "fp8", "--tokens", 2, "--explain", *words)
            self.assertEqual(result.returncode, 0, result.stderr)
            decode = result.stdout.split("decode of 1 token:")[1]
            self.assertRegex(decode, rf"\nnorm_quantize dtype=f32 out=f32 rows=1 cols=64 +{alternative} ")
            self.assertRegex(decode, rf"\nadd_norm_quantize dtype=f32 out=f32 rows=1 cols=64 +{alternative} ")
            self.assertLessEqual(operations, {line.split("  ")[0] for line in decode.splitlines()})

    def test_a_benchmark_sets_rules_beside_defaults(self):
        result = self.run_greta("bench", "--config", self.config(), "--prompt-len", 4, "--gen-len", 2, "--rounds", 1,
                                "--layers", 1, "--device", "lavapipe", "--no-lock", "--use", "gemm m=1: naive",
                                "--explain")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([line.split()[0] for line in result.stdout.splitlines()[1:5]],
                         ["forced", "forced", "default", "default"])
        forced, default = (part.split("memory:")[0] for part in result.stdout.split("pass of 1 token:")[1:])
        self.assertIn(" forced ", forced)
        self.assertNotIn(" forced ", default)


class Matrix(RunCase):
    def matrix(self, *words):
        return self.run_greta("bench", "--config", self.config(), "--prompt-len", 1, "--gen-len", 2, "--layers", 1,
                              "--device", "hip-host:0", "--matrix", "--seconds", 0.01, "--no-lock", *words, timeout=300)

    def test_each_operation_in_each_variant(self):
        file = self.folder / "matrix.csv"
        result = self.matrix("--json", "--export", file, "--use", "argmax: split", "--allow", "vendor")
        self.assertEqual(result.returncode, 0, result.stderr)
        told = json.loads(result.stdout)
        self.assertEqual(told["format"], "greta-run matrix 1")
        decode = {row["operations"][0]: row for row in told["problems"] if row["tokens"] == 1}
        self.assertLessEqual(set(OPERATIONS), set(decode))
        ways = 0
        for row in told["problems"]:
            variants = [way["variant"] for way in row["ways"]]
            self.assertEqual(sum(way["runs"] for way in row["ways"]), 1, row)
            for way in row["ways"]:
                self.assertEqual(way["status"], "ok", way)
                self.assertLessEqual(way["error"], way["bound"])
                self.assertGreater(way["median_us"], 0)
                self.assertGreaterEqual(way["relative"], 1)
            self.assertEqual(row["ways"][0]["relative"], 1, "the fastest comes first")
            absent = {one["variant"] for one in row["absent"]}
            self.assertEqual(absent & set(variants), set())
            ways += len(variants)
        self.assertLessEqual({"naive", "gemv", "vendor"}, {way["variant"] for way in decode["head"]["ways"]})
        self.assertIn("tma", {one["variant"] for one in decode["head"]["absent"]})
        self.assertTrue(next(way for way in decode["argmax"]["ways"] if way["variant"] == "split")["runs"])
        rows = list(csv.DictReader(file.read_text().splitlines()))
        self.assertEqual(len(rows), ways)
        self.assertEqual({row["origin"] for row in rows}, {"chosen"})

    def test_the_table_of_a_model(self):
        result = self.story("--matrix", "--seconds", 0.01, "--no-lock", prompt="")
        self.assertEqual(result.returncode, 0, result.stderr)
        header, *lines = result.stdout.splitlines()
        for title in ("operation", "pass", "configuration", "known", "× fastest", "error"):
            self.assertIn(title, header)
        self.assertRegex(result.stdout, r"\nattn_norm \+ qkv +1 token +5 ")
        self.assertIn("% of bound", result.stdout)
        self.assertRegex(result.stdout, r"(?s)without a configuration for some problems here:\n.*gemm tma: ")
        self.assertEqual(len([line for line in lines if " 1 token " in line]),
                         sum(", runs" in line for line in lines))

    def test_bad_input(self):
        self.refused(self.story("--export", "x.csv"), 2, "--export: needs --matrix")
        for words in (["--seconds", 1], ["--no-lock"]):
            self.refused(self.story(*words), 2, f"{words[0]} requires --matrix")
        self.refused(self.story("--keep-failed", self.folder), 2, "--keep-failed requires --trace-layers")
        self.refused(self.story("--matrix", "--use", "argmax: row THREADS=3"), 2, "domain: THREADS=3")


if __name__ == "__main__":
    unittest.main()
