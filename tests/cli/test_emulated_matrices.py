"""Protects: verify, and nothing else, runs kernels on cooperative matrices on a CPU's Vulkan device without them."""
import json
import unittest

from cli_case import Case

CONFIG = "matrix BM=16 BN=16 WM=16 WN=16 BK=16 INSTR=16 VA=8 VB=8 PAD=0 STAGES=1 SWIZZLE=1 SPLIT=1 ALIGN=0 SUBGROUP=8"
PROBLEM = ["gemm", "--m", 64, "--n", 48, "--k", 40, "--dtype", "f16", "--device", "vulkan:0"]
REFUSAL = "the device has no cooperative matrices of f16"


class EmulatedMatrices(Case):
    def setUp(self):
        super().setUp()
        backends = json.loads(self.run_tune("devices", "--json").stdout)
        (device,) = [one for backend in backends for one in backend["devices"] if one["id"] == "vulkan:0"]
        if device["matrix_operations"]:
            self.skipTest("vulkan:0 has cooperative matrices")

    def verified(self, *words):
        result = self.run_tune("verify", *words, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual(report["device"]["matrix_operations"], [])
        return report

    def right(self, report):
        return {name: sum(one["right"] for one in report["variants"] if one["variant"] == name)
                for name in {one["variant"] for one in report["variants"]}}

    def test_random_problems_of_them_follow_the_others(self):
        words = ["gemm", "--device", "vulkan:0", "--problems", 3, "--seed", 1]
        report = self.verified(*words)
        self.assertEqual(report["emulated"], ["matrix"])
        counts = self.right(report)
        self.assertEqual((counts.pop("matrix"), sum(counts.values())), (1, 3))
        sources = self.folder / "sources"
        self.assertEqual(self.run_tune("verify", *words, "--sources", sources).returncode, 0)
        by_matrices = {file.name.split("-")[0] for file in sources.iterdir() if "coopMatMulAddNV" in file.read_text()}
        self.assertEqual(by_matrices, {"4"})

    def test_a_variant_a_configuration_and_the_text(self):
        self.assertEqual(self.right(self.verified("tree_attention", "--device", "vulkan:0", "--problems", 1,
                                                  "--variant", "matrix")), {"matrix": 1})
        self.assertEqual(self.right(self.verified(*PROBLEM, "--config", CONFIG)), {"matrix": 1})
        text = self.run_tune("verify", *PROBLEM, "--config", CONFIG).stdout
        self.assertRegex(text, r"(?m)^  emulated +the cooperative matrices of matrix$")
        self.assertNotIn("emulated", self.run_tune("verify", "add", "--device", "vulkan:0", "--problems", 1).stdout)

    def test_wrong_kernels_are_found_and_not_kept(self):
        templates = self.planted_templates("planted", "gemm/matrix.comp", "if (row < ROWS_M) put4(row, col, sum);",
                                           "if (row < ROWS_M) put4(row, col, 2.0 * sum);")
        kept = self.folder / "kept"
        result = self.run_tune("verify", *PROBLEM, "--config", CONFIG, "--templates", templates, "--keep-failed", kept,
                               "--json")
        self.assertEqual(result.returncode, 1)
        (failure,) = json.loads(result.stdout)["failures"]
        self.assertEqual(failure["status"], "correctness")
        self.assertIn("failures with emulated matrices are not kept", result.stderr)
        self.assertFalse(kept.exists() and list(kept.iterdir()))

    def test_a_tune_has_none(self):
        for words in (["--variant", "matrix"], ["--try", CONFIG]):
            result = self.run_tune(*PROBLEM, *words, "--db", self.db)
            self.assertEqual(result.returncode, 2, result.stdout)
            self.assertIn(REFUSAL, result.stderr)


if __name__ == "__main__":
    unittest.main()
