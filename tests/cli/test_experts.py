"""Protects: greta-run runs models with experts: the published story from a Mixtral whose experts are copies, stages
that agree with FP64, a wrong kernel at its stage, random weights of an architecture, and one line for what can't run."""
import json
import subprocess
import sys
import unittest

from cli_case import SOURCE, limit
from test_greta_run import MODEL, STORY, RunCase

CONVERT = [sys.executable, "-B", SOURCE / "scripts/experts_of_llama2c.py", MODEL]
QWEN = {"model_type": "qwen2_moe", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 256, "max_position_embeddings": 64,
        "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
        "shared_expert_intermediate_size": 48, "mlp_only_layers": [0], "torch_dtype": "float32"}


class Experts(RunCase):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "mixtral"
        subprocess.run([*map(str, CONVERT), str(self.model)], check=True, timeout=limit(60))

    def run_model(self, *words, device="lavapipe"):
        return self.run_greta("--model", self.model, "--tokenizer", MODEL.parent / "tok512.bin", "--device", device,
                              *words)

    def change(self, **members):
        file = self.model / "config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **members}))

    def test_the_published_story(self):
        result = self.run_model("--prompt", "Once upon a time", "--tokens", 30, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout)["ids"], STORY[:30])
        prompts = self.folder / "prompts.txt"
        prompts.write_text("Once upon a time\nThe dog\n")
        result = self.run_model("--prompts", prompts, "--tokens", 8)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"^Once upon a time, there was a little .*\nThe dog")

    def test_stages_agree_with_fp64(self):
        result = self.run_model("--prompt", "Once upon", "--trace-layers", "--use", "expert_ffn: parts")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        for stage in ("router", "experts", "expert_weights", "expert_rows", "expert_gate", "expert_out", "expert_sum"):
            self.assertRegex(result.stdout, rf"(?m)^{stage} +\d")
        result = self.run_model("--prompt", "Once upon", "--trace-layers", "--use", "expert_ffn: fused")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r"(?m)^expert_sum +\d")
        self.assertNotIn("expert_out", result.stdout)

    def test_a_wrong_kernel_is_found_at_its_stage(self):
        templates = self.planted_templates("wrong", "permute/copy_row.hip", "u64(u32(place[k])) * dim",
                                           "u64(u32(place[0])) * dim")
        result = self.run_model("--prompt", "Once upon", "--trace-layers", "--templates", templates, "--use",
                                "expert_ffn: parts",
                                "--keep-failed", self.folder / "failed", device="hip-host:0")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r"^tokens 0 to \d: layer 0 expert_rows: row \d+, column \d+ is ")
        self.assertIn("layer 0 permute runs permute ", result.stdout)
        self.assertIn("alone, on random inputs: correctness", result.stdout)

    def test_an_architecture_with_random_weights(self):
        config = self.folder / "config.json"
        config.write_text(json.dumps(QWEN))
        words = ("bench", "--config", config, "--prompt-len", 16, "--gen-len", 4, "--rounds", 1, "--device",
                 "lavapipe", "--no-lock")
        result = self.run_greta(*words, "--explain")
        self.assertEqual(result.returncode, 0, result.stderr)
        for line in (r"route .* experts=8 top_k=2", r"permute .* experts=8 top_k=2 dim=64",
                     r"expert_gate_up .*grouped_gemm .*groups=8 m=32 n=64 k=64",
                     r"expert_down .*grouped_gemm .*groups=8 m=32 n=64 k=32", r"unpermute .* rows=32 top_k=2 dim=64",
                     r"experts .*experts .*tokens=1 experts=8 top_k=2 dim=64 hidden=32",
                     r"expert_ffn .*rows=1 experts=8 .* fused +default", r"expert_ffn .*rows=16 experts=8 .* parts +default",
                     r"shared_route .*score=sigmoid", r"gate_up .* gemm .* n=192 k=64"):
            self.assertRegex(result.stdout, rf"(?m)^{line}")
        attention = 64 * (2 * 64 + 2 * 32) + 64 + 2 * 32 + 2 * 64
        weights = (2 * 256 + 1) * 64 + 2 * attention + 3 * 64 * 96 + 64 * (8 + 1) + 3 * 64 * (8 * 32 + 48)
        self.assertIn(f"memory: {4 * weights / 1024:.0f} KiB weights", result.stdout)
        result = self.run_greta(*words, "--quantize", "q8_0", "--explain")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^experts .*experts .*weights=q8_0 tokens=16 ")
        result = self.run_greta(*words, "--quantize", "q8_0", "--use", "expert_ffn: quantised", "--explain")
        self.assertEqual(result.returncode, 0, result.stderr)
        for line in (r"expert_gate_up \+ expert_silu_mul .*quantized_grouped_gemm .*weights=q8_0 epilogue=swiglu groups=8 "
                     r"m=32 n=32 k=64", r"expert_down .*quantized_grouped_gemm .*weights=q8_0 groups=8 m=32 n=64 k=32"):
            self.assertRegex(result.stdout, rf"(?m)^{line}")
        self.assertNotIn("dequantize", result.stdout)
        result = self.run_greta(*words, "--quantize", "fp8", "--explain")
        self.assertEqual(result.returncode, 0, result.stderr)
        for line in (r"expert_gate_up \+ expert_silu_mul .*scaled_grouped_gemm .*scales=row epilogue=swiglu groups=8 m=32 "
                     r"n=32 k=64", r"expert_down .*scaled_grouped_gemm .*scales=row groups=8 m=32 n=64 k=32",
                     r"experts .*experts .*scales=row tokens=1 ",
                     r"expert_ffn .*scales=row rows=16 experts=8 .* scaled +default",
                     r"expert_ffn .*scales=row rows=1 experts=8 .* fused +default"):
            self.assertRegex(result.stdout, rf"(?m)^{line}")
        result = self.run_greta(*words, "--quantize", "mxfp4", "--explain")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^experts .*experts .*weights=mxfp4 tokens=16 ")
        huge = self.folder / "huge.json"
        huge.write_text(json.dumps({**QWEN, "num_experts": 1024, "moe_intermediate_size": 1 << 20,
                                    "mlp_only_layers": []}))
        self.refused(self.run_greta(*words[:2], huge, *words[3:]), 1, "does not fit", "weights 1536")

    def test_gguf_files(self):
        script = ["/usr/bin/python3", "-B", str(SOURCE / "scripts/gguf_of_llama2c.py"), str(MODEL),
                  str(MODEL.parent / "tok512.bin")]
        file = self.folder / "experts.gguf"
        subprocess.run([*script, str(file), "--experts", "8", "--type", "q8_0"], check=True, timeout=limit(60))
        words = ("--model", file, "--prompt", "Once upon a time", "--tokens", 12, "--device", "lavapipe")
        for more in ((), ("--quantize", "q4_0")):
            self.refused(self.run_greta(*words, *more), 2, "the experts of a layer are stored in numbers and q8_0, which "
                                                           "their products can't read; "
                                                           "--quantize none decodes all weights")
        result = self.run_greta(*words, "--quantize", "none", "--dtype", "f32", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout)["ids"], STORY[:12])

    def test_models_that_can_not_run(self):
        self.change(num_experts_per_tok=9)
        self.refused(self.run_model("--prompt", ""), 2, "config.json", "num_experts_per_tok is 9; allowed: 1 to 8")
        self.change(num_experts_per_tok=2, num_local_experts=9)
        self.refused(self.run_model("--prompt", ""), 2, "block_sparse_moe.gate.weight' is [8, 64]",
                     "by its config it must be [9, 64]")
        self.change(num_local_experts=7)
        self.refused(self.run_model("--prompt", ""), 2, "by its config it must be [7, 64]")


if __name__ == "__main__":
    unittest.main()
