"""Protects: greta-tune tunes a product with rows and with panels of weights and compares both, and greta-run stores
matrices in panels where it is told to, or where the database has winners of both packings of all their products."""
import json
import re
import unittest

from cli_case import limit
from test_greta_run import MODEL, RunCase

PRODUCT = "quantized_gemm dtype=f16 out=f16 weights=mxfp4 "


class Packing(RunCase):
    def run_model(self, *words):
        result = self.run_greta("--model", MODEL, "--quantize", "mxfp4", "--dtype", "f16", "--prompt", "Once upon a time",
                                "--tokens", 6, "--device", "lavapipe", *words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def packings(self, *words):
        told = json.loads(self.run_model("--explain", "--json", *words))
        return {one["weights"]: one for one in told["packing"]}

    def test_both_are_tuned_and_compared(self):
        result = self.run_tune("quantized_gemm", "--m", 1, "--n", 64, "--k", 64, "--weights", "mxfp4", "--packing", "any",
                               "--device", "lavapipe", "--budget", 6, "--db", self.db, "--json", timeout=limit(200))
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        keys = [session["problem"]["key"] for session in report["results"]]
        self.assertEqual(keys, [PRODUCT + "m=1 n=64 k=64", PRODUCT + "packing=panels m=1 n=64 k=64"])
        comparison = report["comparison"]
        self.assertEqual({comparison["fastest_problem"], comparison["others"][0]["problem"]}, set(keys))
        self.assertEqual(self.query("SELECT count(*) FROM winners"), [(2,)])
        self.assertEqual(self.query("SELECT count(*) FROM comparisons"), [(0,)])
        text = self.run_tune("quantized_gemm", "--m", 1, "--n", 64, "--k", 64, "--weights", "mxfp4", "--packing", "any",
                             "--device", "lavapipe", "--budget", 4, "--db", self.db, timeout=limit(200)).stdout
        self.assertRegex(text, r"(?m)^  (faster|inconclusive) +packing (rows|panels) (than|and) packing (rows|panels):")

    def test_what_has_no_panels_is_refused(self):
        def refused(words, reason):
            self.refused(self.run_tune(*words, "--packing", "any", "--device", "lavapipe"), 2, reason)

        refused(["quantized_gemm", "--m", 1, "--n", 24, "--k", 128], "--n 24: must be a multiple of 16")
        refused(["quantized_gemm", "--m", 1, "--n", 16, "--k", 128, "--weights", "q4_0"], "needs weights int4, int8 or mxfp4")
        refused(["repack_weights", "--n", 16, "--k", 128], "--packing any: must be awq, gptq, gptq_v2 or rows")
        self.refused(self.run_greta("--model", MODEL, "--packing", "panels", "--device", "lavapipe"), 2,
                     "--packing panels: no matrix of the model has rows of int4, int8 or mxfp4")

    def test_a_model_in_panels_tells_the_same_story(self):
        self.assertEqual(self.run_model("--packing", "panels"), self.run_model("--packing", "rows"))
        forced = self.packings("--packing", "panels")
        self.assertEqual({name: one["packing"] for name, one in forced.items()},
                         {"qkv": "panels", "attn_out": "panels", "gate_up": "rows"})
        self.assertEqual(forced["qkv"]["reason"], "panels: forced")
        self.assertIn("whole panels of 16 rows", forced["gate_up"]["reason"])
        explained = self.run_model("--explain", "--packing", "panels")
        self.assertRegex(explained, rf"(?m)^qkv .* {PRODUCT}packing=panels m=1 n=128 k=64 ")
        self.assertRegex(explained, r"(?m)^qkv +128 x 64 +mxfp4 +5 +panels: forced$")

    def test_without_winners_weights_stay_rows(self):
        own = self.packings("--untuned")
        self.assertEqual({one["packing"] for one in own.values()}, {"rows"})
        self.assertEqual(own["qkv"]["reason"], "rows: 2 of 2 products are not measured in both packings")
        explained = self.run_model("--explain", "--untuned")
        self.assertRegex(explained, r"(?m)^qkv: m=1 n=128 k=64: panels gemv .* \(default\), rows gemv .* \(default\): "
                                    r"1.000 times as long, predicted$")

    def test_a_model_is_tuned_in_both(self):
        """Winners that the model runs already are kept, too: the choice of a packing needs their times."""
        own = ("--device", "lavapipe", "--db", self.db)
        self.run_tune("quantized_gemm", "--m", 1, "--n", 128, "--k", 64, "--weights", "mxfp4", "--packing", "any",
                      "--budget", 6, *own, timeout=limit(200))
        model = ("model", MODEL, "--quantize", "mxfp4", "--dtype", "f16", "--prompt-len", 4, "--gen-len", 4)
        result = self.run_tune(*model, "--packing", "any", "--budget", "24s", "--no-lock", *own, timeout=limit(200))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(re.findall(r"(?m)^\d+ s of half of --budget 24s$", result.stderr)), 2, result.stderr)
        rows, panels = re.fullmatch(r"(?s)packing rows\n(.*)\npacking panels\n(.*)", result.stdout).groups()
        self.assertRegex(rows, rf"(?m)^{PRODUCT}m=1 n=128 k=64 .* (for --packing auto|yes)")
        self.assertNotIn("packing=panels", rows)
        self.assertRegex(panels, rf"(?m)^{PRODUCT}packing=panels m=1 n=128 k=64 .* (for --packing auto|yes)")
        self.assertNotRegex(panels, rf"(?m)^{PRODUCT}m=1 n=128 k=64 ")
        self.refused(self.run_tune("model", MODEL, "--packing", "panels", *own), 2,
                     "--packing panels: no matrix of the model has rows of int4, int8 or mxfp4")
        self.refused(self.run_tune(*model, "--packing", "auto", *own), 2, "--packing: auto not in {rows,panels,any}")

    def test_groups_and_experts_are_tuned_in_both(self):
        for words in (["quantized_grouped_gemm", "--groups", 2, "--m", 8, "--n", 32, "--k", 64],
                      ["experts", "--tokens", 1, "--experts", 2, "--top-k", 1, "--dim", 64, "--hidden", 32]):
            result = self.run_tune(*words, "--weights", "mxfp4", "--packing", "any", "--device", "lavapipe", "--budget", 4,
                                   "--db", self.db, "--json", timeout=limit(200))
            self.assertEqual(result.returncode, 0, result.stderr)
            keys = [session["problem"]["key"] for session in json.loads(result.stdout)["results"]]
            self.assertEqual(["packing=panels" in key for key in keys], [False, True])


if __name__ == "__main__":
    unittest.main()
