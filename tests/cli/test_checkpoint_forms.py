"""Protects: folders in the forms that published checkpoints have run as numpy computes them in FP64 from the same files, token
by token. GRETA_SEED repeats the weights of a failure."""
import json
import os
import random
import subprocess
import unittest

from cli_case import SOURCE, limit
from test_greta_run import MODEL, RunCase

# Both scripts need numpy, which scripts/setup.sh test installs for the system's interpreter.
SCRIPTS = SOURCE / "tests/cli"
TOKENS = 12
LEAST = 1e-4  # between the logits of the first and the second choice, which roundings in f32 don't reach
# The same where a rounding can be the one between two numbers of eight bits.
LEAST_STATIC = 0.05


class CheckpointForms(RunCase):
    def setUp(self):
        super().setUp()
        self.seed = int(os.environ.get("GRETA_SEED") or random.SystemRandom().randrange(1 << 32))
        print(f"GRETA_SEED={self.seed}", flush=True)

    def script(self, name, *words):
        result = subprocess.run(["/usr/bin/python3", "-B", SCRIPTS / name, *map(str, words)], capture_output=True, text=True,
                                check=False, timeout=limit(60))
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def forms(self):
        return json.loads(self.script("checkpoint_forms.py"))

    def compare(self, form):
        folder = self.folder / form.replace(" ", "-")
        self.script("checkpoint_forms.py", form, self.seed, folder)
        # Numbers of eight bits are multiplied by activations with a scale for each row otherwise.
        static = form.endswith("static")
        eight = ("--quantize", "none") if form.startswith(("fp8", "int8")) and not static else ()
        result = self.run_greta("--model", folder, "--tokenizer", MODEL.parent / "tok512.bin", "--prompt", "Once upon a time",
                                "--tokens", TOKENS, "--dtype", "f32", "--untuned", "--device", "lavapipe", "--json", *eight,
                                timeout=limit(120))
        self.assertEqual(result.returncode, 0, result.stderr)
        told = json.loads(result.stdout)
        own = json.loads(self.script("fp64_llama.py", folder, TOKENS, *told["prompt_ids"]))
        # Tokens after the first one that differs follow from it.
        differ = [gap for ours, theirs, gap in zip(told["ids"], own["ids"], own["gaps"]) if ours != theirs]
        self.assertEqual(len(told["ids"]), len(own["ids"]))
        if differ:
            self.assertLess(differ[0], LEAST_STATIC if static else LEAST, (told["ids"], own))

    def test_a_form(self):
        form = random.Random(self.seed).choice(self.forms())
        with self.subTest(seed=self.seed, form=form):
            self.compare(form)

    def test_all_forms(self):
        for form in self.forms():
            with self.subTest(seed=self.seed, form=form):
                self.compare(form)


if __name__ == "__main__":
    unittest.main()
