"""Protects: greta-run as a user runs it: text from a real model, the report of what runs and why,
and rejected input."""
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import termios
import time
import unittest

from cli_case import SOURCE, Case, limit, whole

RUN = os.environ["GRETA_RUN"]
F_SETPIPE_SZ = 1031  # fcntl's since Python 3.10
MODEL = SOURCE / "tests/data/stories260K/stories260K.bin"
STORY = [432, 383, 286, 261, 376, 298, 315, 421, 395, 317, 426, 338, 401, 396, 267, 337, 410, 408,
         419, 292, 411, 322, 265, 282, 295, 433, 426, 385, 328, 432, 358, 394, 261, 370, 432, 352,
         266, 268, 388, 426, 338, 391, 266, 267, 337, 335, 312, 432, 398, 312, 286, 267, 414, 270,
         333, 415, 426, 13, 438, 310]
TINY = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
        "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "vocab_size": 256, "max_position_embeddings": 256,
        "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
        "tie_word_embeddings": False}


class RunCase(Case):
    def run_greta(self, *words, timeout=120):
        return self.run_words(RUN, *map(str, words), timeout=timeout)

    def story(self, *words, prompt="Once upon a time", device="lavapipe"):
        return self.run_greta("--model", MODEL, "--prompt", prompt, "--device", device, *words)

    def told(self, *words, **options):
        result = self.story("--json", *words, **options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def config(self, **changes):
        file = self.folder / "config.json"
        file.write_text(json.dumps({**TINY, **changes}))
        return file


class Run(RunCase):
    def test_the_published_story_on_two_apis(self):
        for device in ("lavapipe", "hip-host:0"):
            told = self.told("--tokens", 60, device=device)
            self.assertEqual(told["prompt_ids"], [1, 403, 407, 261, 378])
            self.assertEqual(told["ids"], STORY)
            self.assertTrue(told["text"].startswith(", there was a little girl named Lily."))

    def test_the_text_streams_and_standard_error_has_the_times(self):
        result = self.story("--tokens", 10)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, "Once upon a time, there was a little girl named Lily\n")
        self.assertIn("tokens/s", result.stderr)

    def test_an_empty_prompt_begins_at_the_beginning(self):
        told = self.told("--tokens", 4, prompt="")
        self.assertEqual(told["prompt_ids"], [1])
        self.assertEqual(told["ids"], [403, 407, 261, 378])

    def test_a_prompt_may_begin_with_dashes(self):
        for prompt in ("--x=", "--tokens", "-h", "--", "-", "--prompt"):
            for words in (("--prompt", prompt), (f"--prompt={prompt}",)):
                result = self.run_greta("--model", MODEL, "--device", "lavapipe", "--tokens", 1,
                                        "--json", *words)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(json.loads(result.stdout)["prompt"], prompt)

    def test_the_largest_seed(self):
        options = ("--tokens", 3, "--temperature", 1, "--seed")
        self.assertEqual(len(self.told(*options, 2 ** 64 - 1)["ids"]), 3)

    def test_what_the_caller_ignores_stays_ignored(self):
        def ignore():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        for before, code in ((ignore, 0), (None, 1)):
            # A pipe with room for a few words, so that it can't end before the signal.
            end, begin = os.pipe()
            full = b"." * (fcntl.fcntl(begin, F_SETPIPE_SZ, 4096) - 32)
            os.write(begin, full)
            running = subprocess.Popen(
                [RUN, "--model", MODEL, "--device", "lavapipe", "--tokens", "200"], env=self.env,
                stdout=begin, stderr=subprocess.PIPE, preexec_fn=before)
            os.close(begin)
            while int.from_bytes(fcntl.ioctl(end, termios.FIONREAD, bytes(4)), sys.byteorder) < len(full) + 8:
                self.assertIsNone(running.poll())
                time.sleep(0.01)
            running.send_signal(signal.SIGINT)
            with open(end, "rb") as output:
                self.assertTrue(output.read().startswith(full))
            _, errors = running.communicate(timeout=limit(120))
            self.assertEqual(running.returncode, code, errors)

    def test_seeds_make_texts_repeat(self):
        options = ("--tokens", 24, "--temperature", 1.1, "--top-p", 0.9, "--seed")
        first, again, other = (self.told(*options, seed)["ids"] for seed in (3, 3, 4))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)

    def test_penalties_of_tokens_that_the_text_has(self):
        """Without a temperature, the text is the same on both devices, with a graph or without."""
        prompt = self.told("--tokens", 1)["prompt_ids"]
        texts = []
        for words in (("--presence-penalty", 100), ("--frequency-penalty", 100), ("--repetition-penalty", 90)):
            texts.append(self.told("--tokens", 24, *words)["ids"])
            # A repeated token's logit would have to be far above all others'.
            self.assertEqual(len(set(prompt + texts[-1])), len(set(prompt)) + 24, words)
        self.assertEqual(texts[0], texts[1])  # each token occurs once
        self.assertNotEqual(texts[0], STORY[:24])
        # Presence is of the token, frequency of each of its occurrences.
        once, each = (self.told("--tokens", 24, f"--{name}-penalty", -5)["ids"] for name in ("presence", "frequency"))
        self.assertNotEqual(once, each)
        for words, device in (("--no-graph",), "lavapipe"), ((), "hip-host:0"):
            self.assertEqual(self.told("--tokens", 24, "--presence-penalty", 100, *words, device=device)["ids"], texts[0])
        off = ("--presence-penalty", 0, "--frequency-penalty", 0, "--repetition-penalty", 1)
        self.assertEqual(self.told("--tokens", 24, *off)["ids"], STORY[:24])
        self.assertLess(len(set(each)), 5)  # the more often, the likelier
        drawn = ("--tokens", 12, "--temperature", 1, "--seed", 3, "--frequency-penalty", 1)
        self.assertEqual(self.told(*drawn)["ids"], self.told(*drawn, device="hip-host:0")["ids"])

    def test_a_full_cache_ends_the_text_and_says_so(self):
        result = self.story("--tokens", 60, "--capacity", 16)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("the KV cache of 16 tokens is full", result.stderr)
        self.assertEqual(len(self.told("--tokens", 60, "--capacity", 16)["ids"]), 12)

    def test_half_precision_tells_the_same(self):
        self.assertEqual(self.told("--tokens", 40, "--dtype", "f16")["ids"], STORY[:40])

    def test_explain_names_every_operation_and_its_origin(self):
        result = self.story("--explain")
        self.assertEqual(result.returncode, 0, result.stderr)
        for word in ("prefill of 16 tokens", "decode of 1 token", "embedding", "qkv", "attention",
                     "ffn_out", "head", "argmax", "default", "memory:"):
            self.assertIn(word, result.stdout)
        launches = [int(count) for count in re.findall(r"of which (\d+) in each layer", result.stdout)]
        self.assertEqual(launches, [10, 6])

    def test_explanations_and_traces_are_json_as_well(self):
        told = self.told("--explain")
        self.assertEqual([one["tokens"] for one in told["passes"]], [16, 1])
        self.assertEqual([one["launches_of_a_layer"] for one in told["passes"]], [10, 6])
        self.assertEqual(told["format"], "greta-run explain 1")
        one, = [row for row in told["passes"][1]["operations"] if row["operation"] == "attention"]
        self.assertEqual((one["runs"], one["origin"]), (5, "default"))
        self.assertIn("alternative", told["passes"][1]["chains"][0])
        told = self.told("--trace-layers")
        self.assertEqual((told["format"], told["passed"], told["wrong"]), ("greta-run trace-layers 1", True, None))
        self.assertIn("logits", [one["stage"] for one in told["closest"]])

    def test_what_is_tuned_is_found_and_explained(self):
        self.know_ceilings()
        tuned = self.run_tune("gemm", "--m", 1, "--n", 128, "--k", 64, "--layout", "nt",
                              "--prologue", "rmsnorm", "--device", "lavapipe", "--budget", 8,
                              "--db", self.db)
        self.assertEqual(tuned.returncode, 0, tuned.stderr)
        result = self.story("--explain", "--db", self.db)
        self.assertEqual(result.returncode, 0, result.stderr)
        qkv = [line for line in result.stdout.splitlines() if "qkv " in line and " gemm " in line]
        self.assertEqual(len(qkv), 2, result.stdout)  # of the prompt, and of one token
        self.assertIn("exact", qkv[1])
        self.assertEqual(self.told("--tokens", 20, "--db", self.db)["ids"], STORY[:20])

    def test_layers_are_checked_against_fp64(self):
        result = self.story("--trace-layers")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("all within their bounds", result.stdout)

    @whole
    def test_what_is_precompiled_is_all_that_text_of_any_length_runs(self):
        """Precompiled kernels are not compiled again, either."""
        for number, (capacity, texts) in enumerate((
                ((), ((0, 2), (30, 4), (45, 3))), (("--capacity", 100), ((5, 30), (45, 300))))):
            self.env["XDG_CACHE_HOME"] = str(self.folder / f"cache{number}")
            first = self.run_greta("--model", MODEL, "--precompile", "--device", "lavapipe",
                                   *capacity)
            self.assertEqual(first.returncode, 0, first.stderr)
            self.assertNotIn(" 0 of them new", first.stdout)
            if not capacity:
                self.assertIn(" 0 of them new", self.story("--precompile").stdout)
            for words, tokens in texts:
                told = self.told("--tokens", tokens, *capacity, prompt="one " * words)
                self.assertEqual(told["kernels_compiled"], 0, (words, tokens, capacity))
        self.assertGreater(len(told["prompt_ids"]), 64)

    def test_a_trace_has_host_and_device(self):
        file = self.folder / "trace.json"
        result = self.story("--tokens", 4, "--trace", file)
        self.assertEqual(result.returncode, 0, result.stderr)
        trace = json.loads(file.read_text())
        self.assertIn("layer 0 attention", {event.get("name") for event in trace["traceEvents"]})
        self.assertEqual(trace["otherData"]["configurations"], "tuned")
        self.assertTrue(trace["otherData"]["device"])
        self.assertEqual(self.story("--tokens", 2, "--untuned", "--trace", file).returncode, 0)
        self.assertEqual(json.loads(file.read_text())["otherData"]["configurations"], "default")

    def test_a_capture_is_tuned(self):
        file = self.folder / "capture.jsonl"
        result = self.story("--tokens", 4, "--capture", file)
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        self.assertEqual(lines[0]["greta_capture"], 1)
        self.assertTrue(all(line["count"] > 0 for line in lines[1:]))
        # One problem is enough here.
        self.know_ceilings()
        file.write_text("\n".join(map(json.dumps, lines[:2])) + "\n")
        tuned = self.run_tune("from-capture", file, "--device", "lavapipe", "--budget", 5, "--db",
                              self.db, "--no-lock")
        self.assertEqual(tuned.returncode, 0, tuned.stderr)
        self.assertIn(lines[1]["problem"].split(" m=")[0], tuned.stdout)
        self.assertNotIn("captured on", tuned.stderr)
        lines[0].update(device="Another GPU", fingerprint="another")
        file.write_text("\n".join(map(json.dumps, lines[:2])) + "\n")
        tuned = self.run_tune("from-capture", file, "--device", "lavapipe", "--budget", 5, "--db",
                              self.db, "--no-lock")
        self.assertEqual(tuned.returncode, 0, tuned.stderr)
        told = [line for line in tuned.stderr.splitlines() if "captured on" in line]
        self.assertEqual(len(told), 1, tuned.stderr)
        self.assertIn("captured on Another GPU, tuned on llvmpipe", told[0])


class RunBadInput(RunCase):
    def test_options(self):
        for words, told in (
                ((), "--model"),
                (("--model", self.folder / "none.bin"), "none.bin"),
                (("--model", MODEL, "--tokens", 0), "--tokens 0: must be a whole number, at least 1"),
                (("--model", MODEL, "--tokens", 2 ** 63), f"--tokens {2 ** 63}: must be"),
                (("--model", MODEL, "--seed", -1), "--seed -1: must be a whole number below 2^64"),
                (("--model", MODEL, "--seed", 2 ** 64), f"--seed {2 ** 64}: must be"),
                (("--model", MODEL, "--seed", "1x"), "--seed 1x: must be"),
                (("--model", MODEL, "--capacity", -5), "--capacity -5: must be"),
                (("--model", MODEL, "--top-p", "1e999"), "--top-p 1e999: must be a number"),
                (("--model", MODEL, "--temperature", "warm"), "--temperature warm: must be"),
                (("--model", MODEL, "--prompt="), "--prompt=: the value is empty"),
                (("bench", "--rounds", 0), "--rounds 0: must be a whole number between 1 and"),
                (("bench", "--rounds", 2 ** 32 + 1), f"--rounds {2 ** 32 + 1}: must be"),
                (("bench", "--seed", -1), "--seed -1: must be a whole number below 2^64"),
                (("bench", "--batch", 2 ** 70), f"--batch {2 ** 70}: must be"),
                (("bench", "--layers", 0), "--layers 0: must be"),
                (("--model", MODEL, "--temperature", -1),
                 "--temperature -1: must be a number of at least 0"),
                (("--model", MODEL, "--top-p", 0), "--top-p 0: must be a number above 0 and at most 1"),
                (("--model", MODEL, "--repetition-penalty", "1.2e-38"),
                 "--repetition-penalty 1.2e-38: must be a number of at least 0.01 and at most 100"),
                (("--model", MODEL, "--repetition-penalty", 101), "--repetition-penalty 101: must be a number"),
                (("--model", MODEL, "--frequency-penalty", "often"), "--frequency-penalty often: must be a number"),
                (("--model", MODEL, "--presence-penalty", 101), "--presence-penalty 101: must be a number"),
                (("--model", MODEL, "--presence-penalty", 1, "--sample", "host"), "--sample host: not with penalties"),
                (("--model", MODEL, "--dtype", "i8"), "i8"),
                (("--model", MODEL, "--capacity", 513), "--capacity"),
                (("--model", MODEL, "--device", "nonesuch"), "nonesuch"),
                (("--model", MODEL, "--db", self.folder / "none.db"), "none.db"),
                (("--model", MODEL, "--tokenizer", MODEL), "stories260K.bin"),
                (("bench",), "--config"),
                (("bench", "--config", "llama-9"), "llama-9"),
                (("bench", "--config", "llama-2-7b", "--prompt-len", 5000), "--prompt-len")):
            with self.subTest(words=words):
                result = self.run_greta(*words)
                self.refused(result, result.returncode, told)
                self.assertIn(result.returncode, (1, 2))

    def test_a_prompt_longer_than_the_model(self):
        result = self.story(prompt="one two three " * 200)
        self.refused(result, 2, "--prompt", "512")

    def test_a_prompt_beyond_the_vocabulary_is_spelled_in_bytes(self):
        told = self.told("--tokens", 2, prompt="\u96ea \U0001f600")
        self.assertGreater(len(told["prompt_ids"]), 5)

    def test_a_prompt_that_is_no_text(self):
        result = self.run_words(RUN, "--model", str(MODEL), "--prompt", b"\xff\xfe")
        self.refused(result, result.returncode, "UTF-8")

    def test_damaged_models(self):
        whole = MODEL.read_bytes()
        file = self.folder / "tok512.bin"
        shutil.copy(MODEL.parent / "tok512.bin", file)
        for size in (0, 5, 28, len(whole) // 2, len(whole) - 1):
            damaged = self.folder / "damaged.bin"
            damaged.write_bytes(whole[:size])
            with self.subTest(size=size):
                self.refused(self.run_greta("--model", damaged), 2, "damaged.bin")

    def test_a_model_whose_weights_are_broken_gives_no_text(self):
        broken = bytearray(MODEL.read_bytes())
        broken[28:28 + 4 * 512 * 64] = b"\xff" * (4 * 512 * 64)  # NaN in the whole embedding
        file = self.folder / "broken.bin"
        file.write_bytes(broken)
        result = self.run_greta("--model", file, "--tokenizer", MODEL.parent / "tok512.bin",
                                "--device", "lavapipe", "--tokens", 3)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("logits are not finite", result.stderr)
        result = self.run_greta("--model", file, "--tokenizer", MODEL.parent / "tok512.bin",
                                "--device", "lavapipe", "--trace-layers", "--json")
        self.assertEqual(result.returncode, 1, result.stderr)
        wrong = json.loads(result.stdout)["wrong"]
        self.assertEqual((wrong["stage"], wrong["only_nan"]), ("embedding", True))

    def test_captures_replace_files_only(self):
        target = self.folder / "target"
        target.write_text("old")
        link = self.folder / "link"
        link.symlink_to(target)
        result = self.story("--tokens", 2, "--capture", link)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(link.is_symlink())
        self.assertIn("greta_capture", target.read_text())
        self.refused(self.story("--tokens", 2, "--capture", self.folder), 2, "not a regular file")
        self.refused(self.story("--capture", target, "--explain"), 2, "excludes")
        self.refused(self.run_tune("from-capture", "/dev/zero"), 2, "not a regular file")

    def test_databases_that_can_not_be_opened(self):
        garbage = self.folder / "garbage.db"
        garbage.write_text("no database")
        for option in ("--db", "--shipped"):
            self.refused(self.story(option, garbage), 2, option, "garbage.db")

    def test_a_model_that_does_not_fit(self):
        config = self.config(hidden_size=16384, intermediate_size=65536, num_hidden_layers=2000)
        result = self.run_greta("bench", "--config", config, "--prompt-len", 20, "--gen-len", 4,
                                "--device", "lavapipe", "--no-lock")
        self.refused(result, 1, "does not fit", "it needs", "weights", "caches", "passes")

    def test_heads_that_attention_does_not_take(self):
        config = self.config(head_dim=20)
        for run, words in ((self.run_greta, ["bench", "--no-lock"]), (self.run_tune, ["model"])):
            result = run(*words, "--config", config, "--prompt-len", 20, "--gen-len", 4, "--device", "lavapipe")
            self.refused(result, 2, f"{config}: heads have 20 elements; allowed: multiples of 8")


class RunBench(RunCase):
    def test_ways_to_run_stand_beside_each_other(self):
        file = self.folder / "bench.csv"
        result = self.run_greta("bench", "--config", self.config(), "--prompt-len", 20, "--gen-len",
                                4, "--rounds", 2, "--device", "lavapipe", "--no-lock", "--export",
                                file)
        self.assertEqual(result.returncode, 0, result.stderr)
        for word in ("tuned", "default", "on", "off", "decode tok/s", "weights"):
            self.assertIn(word, result.stdout)
        rows = file.read_text().splitlines()
        self.assertEqual(len(rows), 1 + 4 * 5)
        self.assertTrue(all("layers=2 batch=1 prompt=20 generated=4" in row for row in rows[1:]))
        result = self.run_greta("bench", "--config", self.config(), "--prompt-len", 20, "--gen-len", 4, "--rounds", 1,
                                "--device", "lavapipe", "--no-lock", "--untuned", "--json", "--explain")
        told = json.loads(result.stdout)
        self.assertEqual((told["format"], told["device"]), ("greta-run bench 1", "vulkan:0"))
        self.assertEqual([row["measurement"] for row in told["rows"]][:2], ["model_prefill", "model_decode"])
        self.assertEqual({(row["graph"], row["layers"]) for row in told["rows"]}, {("on", 2), ("off", 2)})
        self.assertEqual([one["pass"] for one in told["passes"]], ["pass of 32 tokens", "pass of 1 token"])

    def test_a_model_is_tuned_in_one_command(self):
        self.know_ceilings()
        result = self.run_tune("model", "--config", self.config(), "--prompt-len", 20, "--gen-len", 8,
                               "--budget", "20s", "--device", "lavapipe", "--dtype", "f32", "--db",
                               self.db, "--no-lock", "--verbose", timeout=240)
        self.assertEqual(result.returncode, 0, result.stderr)
        for phase in ("opening the device", "loading the model's weights", "compiling the model",
                      "measuring what a comparison takes", "timing each operation", "tuning problems",
                      "comparing"):
            self.assertRegex(result.stderr, rf"after \d+\.\d s: \d+\.\d s {phase}")
        self.assertRegex(result.stderr, r": \d+ s in all")
        self.assertRegex(result.stderr, r"\d+ s of --budget 20s")
        self.refused(self.run_tune("model", "--config", self.config(), "--prompt-len", 20, "--gen-len", 8,
                                   "--budget", "0.001s", "--device", "lavapipe", "--db", self.db, "--no-lock"),
                     1, "before anything was tuned")
        for word in ("share", "micro", "end to end", "the model:", "alternative", "instead of"):
            self.assertIn(word, result.stdout)
        self.assertRegex(result.stderr, r"alternatives? compared in the model in about \d+ s: \d+ s in all")
        tried = set(re.findall(r"^(gate_up|qkv|rope_kv|residual_norm) dtype=.*=\d+ +(\w+) ", result.stdout, re.MULTILINE))
        self.assertTrue({("gate_up", "gated"), ("qkv", "split"), ("residual_norm", "add_norm")} <= tried, tried)
        kept = [line for line in result.stdout.splitlines() if re.search(r" yes(, together)?$", line)]
        self.assertEqual(self.query("SELECT count(*) FROM winners")[0][0], len(kept))
        self.assertEqual([file.name for file in self.folder.glob("tuned.db.*")
                          if not file.name.endswith(("-wal", "-shm"))], [])


if __name__ == "__main__":
    unittest.main()
