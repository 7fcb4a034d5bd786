"""Protects: sequences of different lengths as a user runs them: several prompts in one batch give
what each gives alone, a mix of lengths is benchmarked and tuned, and rejected input."""
import json
import os
import re
import signal
import subprocess
import unittest

from cli_case import SOURCE, Case, limit, wait_until_it_catches

RUN = os.environ["GRETA_RUN"]
MODEL = SOURCE / "tests/data/stories260K/stories260K.bin"
LONG = "Once upon a time, there was a little girl named Lily. She loved to play outside"
PROMPTS = ["Once upon a time", LONG + " with her dog", LONG + " in the park", "The dog"]
TINY = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
        "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": 128, "max_position_embeddings": 256,
        "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
        "tie_word_embeddings": False}


class Batch(Case):
    def run_greta(self, *words, timeout=120):
        return self.run_words(RUN, *map(str, words), timeout=timeout)

    def file(self, name, text):
        file = self.folder / name
        file.write_text(text)
        return file

    def several(self, *words, prompts="\n".join(PROMPTS) + "\n"):
        return self.run_greta("--model", MODEL, "--prompts", self.file("prompts", prompts), "--device", "lavapipe",
                              "--page-size", 16, *words)

    def config(self):
        return self.file("config.json", json.dumps(TINY))

    def mix(self, text="# of a chat\nprompt=40 generated=6 count=3 prefix=32\n\nprompt=7 generated=3 # short\n"):
        return self.file("mix", text)

    def test_each_prompt_gives_what_it_gives_alone(self):
        result = self.several("--tokens", 8, "--batch", 3, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        told = json.loads(result.stdout)
        self.assertEqual([told["format"], told["batch"], told["page_size"]], ["greta-run batch 1", 3, 16])
        self.assertEqual([one["prompt"] for one in told["sequences"]], PROMPTS)
        for one in told["sequences"]:
            alone = self.run_greta("--model", MODEL, "--prompt", one["prompt"], "--device", "lavapipe", "--tokens", 8,
                                   "--json")
            alone = json.loads(alone.stdout)
            self.assertEqual([one["ids"], one["text"]], [alone["ids"], alone["text"]])
            self.assertEqual(one["end"], "tokens")
        # Both long prompts begin with the same pages, and the last one waits for a place.
        self.assertGreaterEqual(told["sequences"][2]["shared_tokens"], 16)
        self.assertLess(told["most_pages"], 4 * 4)

    def test_what_ran_at_the_same_time_is_reported(self):
        result = self.several("--tokens", 2, "--pages", 1, "--json", prompts="Once\nThe dog\nA cat\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        told = json.loads(result.stdout)
        self.assertEqual([told["most_pages"], told["most_sequences"]], [1, 1])
        # A prompt's tokens are several lanes of one sequence.
        result = self.several("--tokens", 2, "--batch", 1, "--json", prompts="Once upon a time there was a dog\nA cat\n")
        self.assertEqual(json.loads(result.stdout)["most_sequences"], 1)

    def test_texts_are_written_in_the_order_of_the_file(self):
        result = self.several("--tokens", 5, "--record-mix", self.folder / "seen")
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stdout.splitlines()
        self.assertEqual(len(lines), 4)
        for prompt, line in zip(PROMPTS, lines):
            self.assertTrue(line.startswith(prompt) and len(line) > len(prompt), line)
        self.assertRegex(result.stderr, r"20 tokens after 4 prompts .* at most \d+ of \d+ pages of 16 tokens, \d+ tokens shared")
        # What was recorded is a mix.
        recorded = (self.folder / "seen").read_text()
        self.assertRegex(recorded, r"\Aprompt=5 generated=5 count=1\n")
        self.assertEqual(sum(int(count) for count in re.findall(r"count=(\d+)", recorded)), 4)
        bench = self.run_greta("bench", "--config", self.config(), "--batch-mix", self.folder / "seen", "--device",
                               "lavapipe", "--untuned", "--no-lock", "--rounds", 1, "--json")
        self.assertEqual(bench.returncode, 0, bench.stderr)
        row = json.loads(bench.stdout)["rows"][0]
        self.assertEqual((row["measurement"], row["mix"], row["sequences"]), ("model_mix", "seen", 4))

    def test_a_bench_of_a_mix_ends_by_an_interrupt(self):
        words = ("bench", "--config", self.config(), "--batch-mix", self.mix(), "--device", "lavapipe", "--untuned", "--no-lock",
                 "--rounds", 1000000)
        running = subprocess.Popen([RUN, *map(str, words)], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until_it_catches(running)
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=limit(60))
        # At once: what runs does not end first.
        self.assertEqual((running.returncode, errors), (1, "greta-run: interrupted; what was stored before is kept\n"))

    def test_seeds_repeat_and_differ_between_sequences(self):
        words = ("--tokens", 12, "--temperature", 3, "--seed", 5, "--json")
        twice = [json.loads(self.several(*words, prompts="Once\nOnce\n").stdout)["sequences"] for _ in range(2)]
        self.assertEqual(*([one["ids"] for one in told] for told in twice))
        self.assertNotEqual(twice[0][0]["ids"], twice[0][1]["ids"])
        alone = self.run_greta("--model", MODEL, "--prompt", "Once", "--device", "lavapipe", *words)
        self.assertEqual(json.loads(alone.stdout)["ids"], twice[0][0]["ids"])

    def test_penalties_are_of_each_sequence_alone(self):
        words = ("--tokens", 12, "--presence-penalty", 50, "--json")
        result = self.several(*words, "--batch", 2, prompts="Once upon\nOnce\nThe dog\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        for told in json.loads(result.stdout)["sequences"]:
            self.assertEqual(len(set(told["prompt_ids"] + told["ids"])), len(set(told["prompt_ids"])) + 12)
            alone = self.run_greta("--model", MODEL, "--prompt", told["prompt"], "--device", "lavapipe", *words)
            self.assertEqual(json.loads(alone.stdout)["ids"], told["ids"])

    def test_a_mix_is_benchmarked(self):
        file = self.folder / "bench.csv"
        result = self.run_greta("bench", "--config", self.config(), "--batch-mix", self.mix(), "--batch", 2, "--rounds", 2,
                                "--device", "lavapipe", "--page-size", 16, "--pages", 4, "--no-lock", "--export", file, "--explain")
        self.assertEqual(result.returncode, 0, result.stderr)
        for word in ("tuned", "default", "first token p50", "next token p50", "4 sequences, up to 2 at the same time",
                     "prompts of 127 tokens, of which 64 are shared, and 21 generated tokens", "pages of 16 tokens: at most 4 of 4 in use",
                     "decode pass of 2 x 1 token", 'page_size="16"'):
            self.assertIn(word, result.stdout)
        rows = file.read_text().splitlines()
        self.assertEqual(len(rows), 1 + 4 * 5)
        self.assertTrue(all("batch=2 sequences=4 prompt=127 generated=21 page=16" in row and "mix=mix" in row
                            for row in rows[1:]))

    def test_a_model_is_tuned_for_a_mix(self):
        self.know_ceilings()
        mix = self.mix("prompt=20 generated=4\nprompt=9 generated=4\n")
        result = self.run_tune("model", "--config", self.config(), "--batch-mix", mix, "--page-size", 16, "--budget",
                               "12s", "--device", "lavapipe", "--dtype", "f32", "--db", self.db, "--no-lock", timeout=240)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("of 2 sequences, prompts of 29 and 8 generated tokens in all", result.stderr)
        # Decoding of both sequences, and their packed prompts.
        for problem in (r"attention .*page_size=\"16\" lengths=ragged batch=2 heads=4 kv_heads=2 q=1 ",
                        r"attention .*mask=causal page_size=\"16\" lengths=ragged batch=4 heads=4 kv_heads=2 q=16 ",
                        r"rope_append .*page_size=\"16\""):
            self.assertRegex(result.stdout, problem)
        self.assertIn("the model: ", result.stdout)

    def test_files_that_are_no_mix(self):
        for text, words in (("", ": has no sequences"), ("# nothing\n", ": has no sequences"),
                            ("prompt=5 generated=1\nprompt=5\n", ":2: generated= is missing"),
                            ("generated=5\n", ":1: prompt= is missing"),
                            ("prompt=5 generated=1 prefix=6\n", ":1: prefix=6: is more than prompt=5"),
                            ("prompt=0 generated=1\n", ":1: prompt=0: must be between 1 and"),
                            ("prompt=5 generated=1 prompt=5\n", ":1: prompt occurs twice"),
                            ("prompt=5 generated=1 count=99999\n", ":1: count=99999: must be between 1 and 65536"),
                            ("prompt=5x generated=1\n", ":1: prompt=5x: must be between"),
                            ("length=5\n", ":1: length=5: must be prompt=, generated=, count= or prefix="),
                            ("prompt=250 generated=7\n", ": a sequence has 257 tokens, the model has 256 positions")):
            with self.subTest(text=text):
                self.refused(self.run_greta("bench", "--config", self.config(), "--batch-mix", self.mix(text), "--device",
                                            "lavapipe"), 2, "--batch-mix", words)
        self.refused(self.run_greta("bench", "--config", self.config(), "--batch-mix", self.folder / "no"), 2, "--batch-mix")

    def test_options(self):
        bench = ("bench", "--config", self.config(), "--batch-mix", self.mix(), "--device", "lavapipe")
        for words, refusal in ((("--prompt-len", 5), "not with --prompt-len"), (("--gen-len", 5), "not with --gen-len"),
                               (("--matrix",), "--matrix: not with --batch-mix"), (("--page-size", 24), "--page-size")):
            self.refused(self.run_greta(*bench, *words), 2, refusal)
        for words, refusal in ((("--prompt", "a"), "--prompt"), (("--explain",), "--prompts"),
                               (("--temperature", 1, "--sample", "host"), "--sample host: not with --prompts"),
                               (("--record-mix", self.folder), "is not a regular file"), (("--capacity", 3), "takes 3")):
            self.refused(self.several(*words), 2, refusal)
        # A sequence that can never have its pages is refused, not waited for.
        self.refused(self.run_greta(*bench, "--page-size", 16, "--pages", 2), 2, "--pages 2: a sequence of 45 tokens needs 3 pages of 16 tokens")
        self.refused(self.several("--pages", 1), 2, "--pages 1: a sequence of ")
        self.refused(self.several(prompts="\n  \n"), 2, "has no prompt")
        self.refused(self.several(prompts="\ufeff\n"), 2, "has no prompt")  # nothing but a byte order mark
        self.refused(self.run_greta("bench", "--config", self.config(), "--pages", 5), 2, "--pages", "--batch-mix")
        self.refused(self.several("--top-p", 0.5), 2, "--top-p: needs a --temperature above 0")
        self.refused(self.several(prompts="Once\n" + "a" * 2000), 2, ":2: has ", "tokens, the model takes 512")
        self.refused(self.run_greta("--model", MODEL, "--batch", 2), 2, "--prompts")


if __name__ == "__main__":
    unittest.main()
