"""Protects: greta-run and greta-tune take a GGUF file as a model: the published story from plain and from quantised
weights, stages that agree with FP64, timing, and one line for a damaged file. docs/gguf.md, which is run in full by
GgufWalk, tunes one."""
import json
import subprocess
import unittest

from cli_case import SOURCE, patient
from test_greta_run import MODEL, STORY, RunCase

# The converter needs numpy, which scripts/setup.sh test installs for the system's interpreter.
CONVERT = ["/usr/bin/python3", "-B", SOURCE / "scripts/gguf_of_llama2c.py", MODEL, MODEL.parent / "tok512.bin"]


class Gguf(RunCase):
    def model(self, kind="f32"):
        file = self.folder / f"{kind}.gguf"
        if not file.exists():
            subprocess.run([*map(str, CONVERT), str(file), "--type", kind], check=True, timeout=patient(60))
        return file

    def told_of(self, kind, *words):
        result = self.run_greta("--model", self.model(kind), "--prompt", "Once upon a time", "--device", "lavapipe",
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

    def test_stages_of_quantised_weights_agree_with_fp64(self):
        for kind in ("q8_0", "q4_0"):
            result = self.run_greta("--model", self.model(kind), "--prompt", "Once upon", "--device", "lavapipe",
                                    "--untuned", "--trace-layers", timeout=patient(200))
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertRegex(result.stdout, r"(?m)^logits +\d")

    def test_a_file_is_explained(self):
        result = self.run_greta("--model", self.model("q8_0"), "--explain", "--device", "lavapipe")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("dtype=f16", result.stdout)

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
                           (whole.replace(b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0qwen3", 1),
                            "is 'qwen3'; allowed: llama")):
            damaged.write_bytes(data)
            with self.subTest(told=told):
                self.refused(self.run_greta("--model", damaged), 1, "damaged.gguf", told)
        self.refused(self.run_tune("model", damaged, "--device", "lavapipe"), 1, "damaged.gguf", told)


if __name__ == "__main__":
    unittest.main()
