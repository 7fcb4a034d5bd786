"""Protects: greta-run and greta-tune take a GGUF file as a model: the published story from plain and from quantised
weights, which stay as the file has them or are quantised on loading, stages that agree with FP64, timing, and one line for a damaged file. docs/gguf.md, which is run in full by
GgufWalk, tunes one."""
import json
import re
import subprocess
import unittest

from cli_case import SOURCE, limit
from test_greta_run import MODEL, STORY, RunCase

# The converter needs numpy, which scripts/setup.sh test installs for the system's interpreter.
CONVERT = ["/usr/bin/python3", "-B", SOURCE / "scripts/gguf_of_llama2c.py", MODEL, MODEL.parent / "tok512.bin"]


class Gguf(RunCase):
    def model(self, kind="f32"):
        file = self.folder / f"{kind}.gguf"
        if not file.exists():
            subprocess.run([*map(str, CONVERT), str(file), "--type", kind], check=True, timeout=limit(60))
        return file

    def told_of(self, kind, *words):
        return self.told_of_file(self.model(kind), *words)

    def told_of_file(self, file, *words):
        result = self.run_greta("--model", file, "--prompt", "Once upon a time", "--device", "lavapipe",
                                "--json", *words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_the_published_story(self):
        told = self.told_of("f32", "--tokens", 60)
        self.assertEqual(told["prompt_ids"], [1, 403, 407, 261, 378])
        self.assertEqual(told["ids"], STORY)
        self.assertTrue(told["text"].startswith(", there was a little girl named Lily."))

    def test_quantised_weights_tell_a_story(self):
        self.assertEqual(self.told_of("f16", "--tokens", 40)["ids"], STORY[:40])
        self.assertEqual(self.told_of("q8_0", "--tokens", 20)["ids"], STORY[:20])
        self.assertEqual(self.told_of("q4_0", "--tokens", 20)["text"][:12], ", there was ")

    def test_types_that_no_product_reads_are_numbers_or_others_with_the_same_weights(self):
        self.assertEqual(self.told_of("q5_1", "--tokens", 20)["ids"], STORY[:20])
        told = self.told_of("iq4_nl", "--tokens", 20)
        self.assertEqual((told["text"][:12], told["quantised"]), (", there was ", "q8_0"))
        words = ("--prompt", "Once", "--tokens", 1, "--device", "lavapipe", "--untuned")
        told = "q5_1.gguf: matrices in formats that no product reads are numbers of f16: 30 of q5_1; "
        result = self.run_greta("--model", self.model("q5_1"), *words)
        self.assertRegex(result.stderr, re.escape(told) + r"[\d.]+ KiB\n")
        for file, more in (("q5_1", ("--quantize", "none")), ("q5_1", ("--quantize", "q4_0")), ("iq4_nl", ())):
            self.assertNotIn("no product reads", self.run_greta("--model", self.model(file), *words, *more).stderr)

    def test_the_blocks_of_other_tests_are_those_of_numpy(self):
        script, made = SOURCE / "scripts/gguf_blocks.py", self.folder / "blocks.json"
        subprocess.run([*CONVERT[:2], str(script), str(made)], check=True, timeout=limit(60))
        self.assertEqual(made.read_text(), (SOURCE / "tests/data/gguf_blocks.json").read_text())

    def test_stages_of_quantised_weights_agree_with_fp64(self):
        for kind in ("q8_0", "q4_0", "q5_1", "iq4_nl"):
            result = self.run_greta("--model", self.model(kind), "--prompt", "Once upon", "--device", "lavapipe",
                                    "--untuned", "--trace-layers", timeout=limit(200))
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertRegex(result.stdout, r"(?m)^logits +\d")

    def test_weights_of_prompts_are_rounded_where_it_is_allowed(self):
        """In passes of more than 128 rows."""
        prompt = "Once upon a time there was a girl. " * 13
        model = ("--model", self.model("q8_0"), "--prompt", prompt, "--device", "lavapipe", "--allow", "rounded_weights")
        explained = self.run_greta(*model, "--untuned", "--tokens", 3, "--explain")
        self.assertEqual(explained.stderr, "")
        found = re.search(r"(?m)^qkv .* weights=q8_0 math=rounded_weights m=(\d+) ", explained.stdout)
        self.assertTrue(found, explained.stdout)
        self.assertGreater(int(found[1]), 128)
        self.assertRegex(explained.stdout, r"(?m)^qkv .* weights=q8_0 m=1 ")
        self.assertRegex(explained.stdout, r"(?m)^qkv dtype=f16 .* weights=quantised math=rounded_weights rows=\d{3} ")
        result = self.run_greta(*model, "--untuned", "--trace-layers", timeout=limit(200))
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

    def test_a_permission_without_effect_is_told(self):
        told = "--allow rounded_weights: has no effect"
        for words, why in ((("--model", self.model("f16")), "no projection has weights of a format that is rounded"),
                           (("--model", self.model("f16"), "--quantize", "mxfp4"), "of a format that is rounded"),
                           (("--model", self.model("q8_0"), "--dtype", "f32"), "activations of f32")):
            result = self.run_greta(*words, "--prompt", "Once", "--tokens", 1, "--device", "lavapipe", "--untuned",
                                    "--allow", "rounded_weights")
            self.assertEqual(result.returncode, 0, result.stderr)
            lines = [line for line in result.stderr.splitlines() if line.startswith(told)]
            self.assertEqual(len(lines), 1, result.stderr)
            self.assertIn(why, lines[0])

    def test_norms_are_prologues_of_quantised_products(self):
        forced = ("--use", "gate_up rows=1: fused", "--use", "qkv rows=1: fused")
        self.assertEqual(self.told_of("q8_0", "--tokens", 12, *forced)["ids"], STORY[:12])
        result = self.run_greta("--model", self.model("q8_0"), "--prompt", "Once upon", "--device", "lavapipe",
                                "--untuned", "--trace-layers", *forced, timeout=limit(200))
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        explained = self.run_greta("--model", self.model("q8_0"), "--explain", "--device", "lavapipe", *forced)
        self.assertRegex(explained.stdout, r"(?m)^attn_norm \+ qkv .*quantized_gemm .* prologue=rmsnorm m=1 n=128 k=64")

    def test_a_file_is_explained(self):
        result = self.run_greta("--model", self.model("q8_0"), "--explain", "--device", "lavapipe")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^qkv .*quantized_gemm dtype=f16 out=f16 weights=q8_0 m=1 n=128 k=64")
        self.assertRegex(result.stdout, r"(?m)^ffn_out .* gemm dtype=f16")  # 172 weights are no whole blocks

    def test_weights_are_quantised_on_loading(self):
        for file, word, formats in ((MODEL, "q8_0", "q8_0"), (self.model("f16"), "q4_0", "q4_0"),
                                    (self.model("q8_0"), "none", "")):
            with self.subTest(file=file, word=word):
                told = self.told_of_file(file, "--quantize", word, "--tokens", 10)
                self.assertEqual(told["quantised"], formats)
                self.assertTrue(told["text"].startswith(", there was"), told["text"])
        result = self.run_greta("--model", MODEL, "--quantize", "q8_0", "--tokens", 1, "--device", "lavapipe")
        self.assertIn("5 of 35 projections are not quantised, as their rows are not whole blocks of 32", result.stderr)
        self.assertIn("with weights in q8_0", result.stderr)
        result = self.run_greta("--model", self.model("q8_0"), "--quantize", "q4_0", "--tokens", 1, "--device",
                                "lavapipe")
        self.assertIn("30 of 35 projections stay in the formats that the model has", result.stderr)

    def test_quantisation_that_is_not_possible(self):
        self.refused(self.run_greta("--model", MODEL, "--quantize", "q5", "--device", "lavapipe"), 2,
                     "--quantize q5: must be none, q8_0, q4_0, mxfp4, int4, fp8")
        self.refused(self.run_greta("--model", MODEL, "--quantize", "int4", "--device", "lavapipe"), 2,
                     "no projection has rows of whole groups of 128 weights")
        self.refused(self.run_greta("--model", self.model("q8_0"), "--use", "qkv: split", "--device", "lavapipe"),
                     2, "dense: a projection with quantised weights is one product")

    def test_an_architecture_is_quantised(self):
        config = self.folder / "config.json"
        config.write_text(json.dumps({
            "model_type": "llama", "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 300, "max_position_embeddings": 64,
            "torch_dtype": "float16"}))
        words = ("--config", config, "--quantize", "int4", "--prompt-len", 16, "--gen-len", 4, "--device", "lavapipe")
        result = self.run_greta("bench", *words, "--rounds", 1, "--no-lock", "--explain")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^gate_up \+ silu_mul .*quantized_gemm dtype=f16 out=f16 epilogue=swiglu m=1 n=256 "
                                       r"k=128")
        weights = 2 * 128 * (128 + 2 * 64 + 128 + 3 * 256)  # in 4 bits and a sixty-fourth of 16
        self.assertIn(f"memory: {(weights * (0.5 + 2 / 128) + 2 * 128 * (2 * 300 + 5)) / 1024:.0f} KiB weights",
                      result.stdout)
        tuned = self.run_tune("model", *words, "--budget", "4s", "--db", self.folder / "own.db", timeout=limit(200))
        self.assertEqual(tuned.returncode, 0, tuned.stderr)
        self.assertRegex(tuned.stdout, r"(?m)^quantized_gemm dtype=f16 out=f16 epilogue=swiglu m=1 n=256 k=128 +\d+ %")
        self.assertNotRegex(tuned.stdout, r"weights=quantised .*can't run")

    def test_a_file_is_its_architecture(self):
        result = self.run_greta("bench", "--config", self.model(), "--prompt-len", 20, "--gen-len", 4, "--rounds", 1,
                                "--device", "lavapipe", "--no-lock")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("decode tok/s", result.stdout)

    def test_damaged_files(self):
        whole = self.model().read_bytes()
        damaged = self.folder / "damaged.gguf"
        for data, told in ((whole[:100], "is not a GGUF file that can be read"), (whole[:-4000], "that the file has"),
                           (whole.replace(b"llama.block_count", b"llama.block_xxxxx"), "llama.block_count is missing"),
                           (whole.replace(b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0gemma", 1),
                            "is 'gemma'; allowed: llama, qwen2, qwen2moe, qwen3, qwen3moe")):
            damaged.write_bytes(data)
            with self.subTest(told=told):
                self.refused(self.run_greta("--model", damaged), 2, "damaged.gguf", told)
        self.refused(self.run_tune("model", damaged, "--device", "lavapipe"), 2, "damaged.gguf", told)


if __name__ == "__main__":
    unittest.main()
