"""Protects: greta-run runs random checkpoints of every architecture in every quantisation, with stages that agree with
FP64. GRETA_SEED repeats the sizes and weights of a failure; with GRETA_WHOLE all combinations run on two devices."""
import os
import random
import unittest

from cli_case import limit
from random_checkpoint import ARCHITECTURES, Checkpoint, random_sizes
from test_greta_run import MODEL, RunCase

QUANTISATIONS = ("none", "q8_0", "q4_0", "int4", "fp8", "mxfp4")
DEVICES = ("lavapipe", "hip-host:0")


class RandomCheckpoints(RunCase):
    def setUp(self):
        super().setUp()
        self.seed = int(os.environ.get("GRETA_SEED") or random.SystemRandom().randrange(1 << 32))
        print(f"GRETA_SEED={self.seed}", flush=True)

    def draws(self):
        """Architectures with their combinations of a quantisation and a device. The short form has six of the seven
        architectures' quantisations in a random order, so that each occurs."""
        draw = random.Random(self.seed)
        if os.environ.get("GRETA_WHOLE"):
            return [(kind, [(q, device) for q in QUANTISATIONS for device in DEVICES]) for kind in ARCHITECTURES]
        several = draw.sample(QUANTISATIONS, 6) + [draw.choice(QUANTISATIONS)]
        return [(kind, [(q, "lavapipe")]) for kind, q in zip(ARCHITECTURES, several)]

    def trace(self, folder, quantisation, device):
        result = self.run_greta("--model", folder, "--tokenizer", MODEL.parent / "tok512.bin", "--prompt",
                                "Once upon a time", "--untuned", "--trace-layers", "--quantize", quantisation,
                                "--device", device, timeout=limit(120))
        told = result.stdout + result.stderr
        self.assertEqual(result.returncode, 0, told)
        self.assertRegex(result.stdout, r"(?m)^logits +\d", told)
        self.assertNotIn("are not quantised", told)

    def test_stages_of_every_architecture_agree_with_fp64(self):
        for kind, combinations in self.draws():
            own = random.Random(f"{self.seed} {kind}")
            sizes = random_sizes(own)
            folder = self.folder / kind
            Checkpoint(kind, sizes, own).write(folder)
            for quantisation, device in combinations:
                with self.subTest(seed=self.seed, kind=kind, quantisation=quantisation, device=device, sizes=sizes):
                    self.trace(folder, quantisation, device)


if __name__ == "__main__":
    unittest.main()
