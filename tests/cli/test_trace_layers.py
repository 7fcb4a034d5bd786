"""Protects: greta-run --trace-layers finds a wrong kernel at its stage, also at the scores, the softmax and the weighted
sum inside attention, keeps the kernel as a case, and names the cause."""
import concurrent.futures
import json
import os

import unittest

from cli_case import SOURCE, Case, limit

RUN = os.environ["GRETA_RUN"]
MODEL = SOURCE / "tests/data/stories260K/stories260K.bin"
PROMPT = "Once upon a time there was a little girl who liked to play"  # more keys than a tile has
# File, text, mutant, the stage that is named, the first cause, and rules. No cause: several explain as much.
PLANTED = [
    ("attention/vector.hip", "for (u32 d = 0; d < DIM; d += 4)", "for (u32 d = 0; d + 4 < DIM; d += 4)", "attn_scores",
     "missing tail: dim \\(columns of K\\) 4 to 7 is skipped", []),
    ("attention/operands.hip", "count + query + 1;", "count + query;", "attn_softmax", "off-by-one mask", []),
    ("attention/vector.hip", "value[i][e] *= kept;", "value[i][e] *= 1.0f;", "attn_softmax", "", []),
    ("attention/vector.hip", "values + (j + u32(l)) * value_pitch", "values + (j + u32(l) / 2 * 2) * value_pitch",
     "attention", "", []),
    ("common/rms.hip", "total / count", "total / (count + 1)", "attn_norm", "wrong row statistic", []),
    ("gemm/naive.hip", "sum = multiply_add(x, to_float", "sum = multiply_add(0.9f * x, to_float", "q", "wrong factor",
     ["qkv: split", "gemm: naive"]),
]


class TraceLayers(Case):
    def planted(self, number, *more):
        file, text, mutant, *_, rules = PLANTED[number]
        templates = self.planted_templates(f"templates-{number}", file, text, mutant)
        return self.run_words(RUN, "--model", MODEL, "--prompt", PROMPT, "--device", "hip-host:0", "--untuned",
                              "--trace-layers", "--templates", templates, "--keep-failed",
                              self.folder / f"kept-{number}", *(word for rule in rules for word in ("--use", rule)),
                              *more, timeout=limit(280))

    def test_planted_bugs_are_found_at_their_stage(self):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            results = list(pool.map(self.planted, range(len(PLANTED))))
        for number, (result, (*_, stage, cause, _)) in enumerate(zip(results, PLANTED)):
            with self.subTest(plant=PLANTED[number][2]):
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertRegex(result.stdout, rf"(?m)^tokens 0 to \d+: layer 0 {stage}: ")
                self.assertRegex(result.stdout, r"(?m)^layer 0 [a-z_ +]+ runs (attention|rmsnorm|gemm) ")
                if cause:
                    self.assertRegex(result.stdout, rf"(?m)^{cause}")
                self.assertIn("where\n", result.stdout)  # the map
                (case,) = (self.folder / f"kept-{number}").iterdir()
                self.assertTrue((case / "failure.json").exists())

    def test_json_has_the_stages_before_the_wrong_one_and_what_its_kernel_does_alone(self):
        result = self.planted(4, "--json")
        self.assertEqual(result.returncode, 1, result.stderr)
        told = json.loads(result.stdout)
        self.assertGreater(told["stages"], 1)
        self.assertEqual((told["passed"], told["passes"], told["wrong"]["stage"]), (False, 1, "attn_norm"))
        (examined,) = told["wrong"]["examined"]
        self.assertRegex(examined["problem"], "^rmsnorm ")
        self.assertEqual(examined["diagnoses"][0]["causes"][0]["kind"], "wrong row statistic")
        (case,) = (self.folder / "kept-4").iterdir()
        self.assertTrue((case / "failure.json").exists())

    def test_right_kernels_pass_with_all_stages(self):
        result = self.run_words(RUN, "--model", MODEL, "--prompt", "Once", "--device", "hip-host:0", "--untuned",
                                "--trace-layers")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        for stage in ("attn_scores", "attn_softmax", "attention"):
            self.assertRegex(result.stdout, rf"(?m)^{stage} +\d")
        self.assertFalse((self.folder / "home/.cache/greta/failed").exists())


if __name__ == "__main__":
    unittest.main()
