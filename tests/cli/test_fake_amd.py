"""The tools on a fake AMD GPU whose kernels are not executed, and what becomes of a device that fails."""
import json
import os
import pathlib
import re
import subprocess
import unittest

from cli_case import BENCH, SOURCE, TUNE, Case, patient

RUN = os.environ["GRETA_RUN"]
LIBRARY = os.environ["GRETA_FAKE_AMD"]
MODEL = SOURCE / "tests/data/stories260K/stories260K.bin"
OPERATIONS = ("gemm", "softmax", "layernorm", "rmsnorm", "add_rmsnorm", "layernorm_rmsnorm", "attention",
              "rope", "kv_update", "silu_mul", "gelu", "add", "embedding", "argmax")
GEMM = ("gemm", "--m", "16", "--n", "16", "--k", "16")


class FakeAmd(Case):
    def setUp(self):
        super().setUp()
        self.env.update(LD_LIBRARY_PATH=LIBRARY, GRETA_FAKE_ARCHITECTURE="gfx90a")

    def tool(self, *words, faults="", timeout=120):
        """Runs a tool to its end. It ends by itself, in time, and makes no call that a device could
        not have taken."""
        self.env["GRETA_FAKE_FAULTS"] = faults
        result = self.run_words(*map(str, words), timeout=timeout)
        self.assertGreaterEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("fake HIP:", result.stderr)
        return result

    def verify(self, *words, **options):
        result = self.tool(TUNE, "verify", *words, "--device", "hip:0", "--seed", 1, "--json", **options)
        return result.returncode, json.loads(result.stdout or "{}"), result.stderr


class FakeDevice(FakeAmd):
    def test_is_listed_as_what_it_is(self):
        listed = json.loads(self.tool(TUNE, "devices", "--json").stdout)
        devices = {device["id"]: device for device in json.loads(json.dumps(listed["devices"]))}
        self.assertEqual(devices["hip:0"]["name"], "Fake gfx90a (executes nothing)")
        self.assertEqual(devices["hip:0"]["architecture"], "gfx90a")

    def test_every_operation_compiles_loads_and_launches_and_is_found_wrong(self):
        # Nothing is executed, so that a check which passes here checks nothing.
        for operation in OPERATIONS:
            code, told, errors = self.verify(operation, "--problems", 1)
            self.assertEqual(code, 1, (operation, errors))
            self.assertEqual([trial["failure"] for trial in told["failures"]], ["correctness"], operation)

    def test_a_tune_finds_no_winner(self):
        result = self.tool(TUNE, *GEMM, "--device", "hip:0", "--db", self.db, "--budget", 2, "--flush", 1,
                           "--no-lock")
        self.assertNotEqual(result.returncode, 0, result.stdout)
        self.assertEqual(self.query("SELECT count(*) FROM winners"), [(0,)])
        self.assertEqual({status for status, in self.query("SELECT DISTINCT status FROM trials")},
                         {"correctness"})

    def test_doctor_finds_that_kernels_do_nothing(self):
        result = self.tool(BENCH, "doctor", "--device", "hip:0", "--db", self.db, "--no-lock")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^  fill +passed")
        for check in ("ultrasafe", "default", "f16", "matrix"):
            self.assertRegex(result.stdout, rf"(?m)^  {check} +FAILED, correctness")

    def test_a_model_runs_to_its_last_token(self):
        told = json.loads(self.story().stdout)
        self.assertEqual(len(told["ids"]), 3)

    def story(self, **options):
        return self.tool(RUN, "--model", MODEL, "--prompt", "Once", "--tokens", 3, "--device", "hip:0", "--json",
                         **options)


if __name__ == "__main__":
    unittest.main()
