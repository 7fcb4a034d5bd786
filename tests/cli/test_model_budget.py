"""Protects: greta-tune model ends with its budget, whatever the lengths of prompt and output are, and soon after an
interrupt; what it does is printed before and after."""
import json
import signal
import threading
import unittest

from cli_case import Case, HeldCompiler, limit

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 96,
          "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 128,
          "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "torch_dtype": "float32", "hidden_act": "silu",
          "rope_theta": 10000.0}


class ModelBudget(Case):
    def words(self, budget, *more, **changes):
        config = self.folder / "config.json"
        config.write_text(json.dumps({**CONFIG, **changes}))
        return ["model", "--config", config, "--device", "hip-host:0", "--no-shipped", "--flush", "1", "--db", self.db,
                "--budget", f"{budget}s", "--verbose", *more]

    def test_a_prompt_longer_than_what_follows_is_no_obstacle_and_an_interrupt_ends_it_soon(self):
        # Passes of a prompt were looked for in a cache that had no room for them any more, for ever.
        run = self.start(*self.words(3000, "--prompt-len", 128, "--gen-len", 16))
        self.addCleanup(run.kill)
        stuck = threading.Timer(limit(90), run.kill)
        stuck.start()
        said = ""
        for line in run.stderr:
            said += line
            if "finding the problems of" in line:
                break
        stuck.cancel()
        self.assertIn("finding the problems of", said)
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=limit(30))
        self.assertEqual(run.returncode, 1, errors)
        self.assertIn("interrupted", errors)

    def test_a_budget_that_is_too_short_is_kept(self):
        for budget in (3, "0.05"):
            result = self.run_tune(*self.words(budget, "--prompt-len", 64, "--gen-len", 2))
        self.assertEqual(result.returncode, 1)
        self.assertIn("the budget of 0.05s ended after", result.stderr)
        self.assertNotIn("timing each operation", result.stderr)

    def test_a_step_that_does_not_end_is_named_and_can_be_interrupted(self):
        held = HeldCompiler(self.folder, self.env)
        run = self.start(*self.words(3000), env=held.env)
        self.addCleanup(run.kill)
        held.wait_until_it_holds(run)
        run.send_signal(signal.SIGINT)
        _, errors = run.communicate(timeout=limit(30))
        self.assertEqual(run.returncode, 1, errors)
        self.assertIn("interrupted; what was stored before is kept", errors)
        late = self.start(*self.words(10), env=held.env)  # enough to load the weights
        self.addCleanup(late.kill)
        _, errors = late.communicate(timeout=limit(30))
        self.assertEqual(late.returncode, 1, errors)
        self.assertIn("--budget 10s ended 5 s ago, and compiling the model and running it once has not ended", errors)


if __name__ == "__main__":
    unittest.main()
