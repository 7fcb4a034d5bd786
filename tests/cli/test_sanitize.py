"""Protects: greta-tune verify --sanitize runs kernels under AddressSanitizer and UBSan. A finding
is one trial's crash with its report, and all kernels of all variants are clean on every emulated
GPU."""
import json
import os
import unittest

from cli_case import WHOLE, Case, limit

GPUS = 4
PROBLEMS = 2 if WHOLE else 1  # of each variant and each operation
PROBLEM = ["--m", 33, "--n", 17, "--k", 40]
# What a variant is for, where that is not any product.
KINDS = {"matrix": ["--dtype", "f16"], "tma": ["--dtype", "f16"], "tf32x3": ["--math", "tf32x3"],
         "tf32x3_tma": ["--math", "tf32x3"]}


class SanitizeCase(Case):
    def verify(self, *arguments, operation="gemm", code=0, env=None):
        result = self.run_tune("verify", operation, "--sanitize", "--json", *arguments,
                               env=env or self.env, timeout=limit(280))
        self.assertEqual(result.returncode, code, result.stderr)
        report = json.loads(result.stdout)
        self.assertTrue(report["device"]["compiler"].endswith("with sanitizers"), report["device"])
        return report

    def environment_with_compiler(self, script):
        """Returns an environment in which c++ is this script, with an empty cache."""
        compiler = self.folder / "bin" / "c++"
        compiler.parent.mkdir()
        compiler.write_text("#!/bin/sh\n" + script)
        compiler.chmod(0o755)
        return dict(self.env, PATH=f"{compiler.parent}:{os.environ['PATH']}",
                    XDG_CACHE_HOME=str(self.folder / "cache"))


class Sanitize(SanitizeCase):
    def variants(self, device):
        """Returns the variants that an error message lists."""
        result = self.run_tune("verify", "gemm", *PROBLEM, "--dtype", "f16", "--variant", "none",
                               "--device", device)
        self.refused(result, 2, "must be one of ")
        return result.stderr.strip().split("must be one of ")[1].split(", ")

    def run_variant(self, device, variant):
        """Verifies a variant, also of random problems in the whole suite; returns whether the device has
        configurations of it. What is drawn for a problem that is given takes a tenth of the time."""
        library = variant == "vendor"  # which has some problems, and few algorithms of each
        problems = 20 if library else PROBLEMS if WHOLE else 1
        given = ["--m", 2 if variant == "gemv" else 33, "--n", 64, "--k", 80, *KINDS.get(variant, []), "--sample", 1]
        words = [*(["--problems", problems] if WHOLE or library else given), "--device", device, "--variant", variant,
                 "--seed", 1]
        result = self.run_tune("verify", "gemm", "--sanitize", "--json", *words, timeout=limit(280))
        if result.returncode == 2:
            self.refused(result, 2, "has no valid configuration of gemm ")
            return False
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual({entry["variant"] for entry in report["variants"]}, {variant})
        right = sum(entry["right"] for entry in report["variants"])
        self.assertGreater(right, 0)
        self.assertEqual(right + report["not_ranked"], problems)
        return True

    def test_every_variant_on_every_imitated_gpu(self):
        """By default each variant runs on one of the GPUs that have it, and each GPU runs at least
        one variant."""
        gpus = [f"hip-host:{i}" for i in range(GPUS)]
        ran = {}
        for number, variant in enumerate(sorted(self.variants(gpus[0]))):
            for device in gpus[number % GPUS:] + gpus[:number % GPUS]:
                with self.subTest(device=device, variant=variant):
                    if self.run_variant(device, variant):
                        ran.setdefault(variant, set()).add(device)
                if variant in ran and not WHOLE:
                    break
        # The tensor copies of `tma` and `tf32x3_tma` are of sm_90, which no imitated GPU is.
        self.assertEqual(set(ran), set(self.variants(gpus[0])) - {"tma", "tf32x3_tma"})
        self.assertEqual(set.union(*ran.values()), set(gpus))
        if WHOLE:
            self.assertEqual(ran["matrix"], set(gpus))

    def test_every_operation(self):
        result = self.run_tune("verify")
        self.refused(result, 2, "needs an operation first: ")
        operations = result.stderr.strip().split("first: ")[1].split(", ")
        self.assertIn("gemm", operations)
        # Every variant of gemm runs above.
        for operation in operations if WHOLE else operations[2::2]:
            with self.subTest(operation=operation):
                self.verify("--device", "hip-host:1", "--problems", PROBLEMS, "--seed", 2,
                            operation=operation)

    def test_outputs_that_pass_through_memory_of_copies(self):
        """Copies that nobody awaits are those of sequences without keys."""
        report = self.verify("--device", "hip-host:0", "--problems", 8, "--seed", 2, "--variant", "matrix",
                             operation="latent_attention")
        self.assertEqual(sum(entry["right"] for entry in report["variants"]), 8)

    # A compiler that breaks one kernel simulates a wrong kernel.
    def test_an_overrun_is_one_crash_with_its_report(self):
        env = self.environment_with_compiler(
            "case $1 in -*version|-print*) exec /usr/bin/c++ \"$@\";; esac\n"
            "exec sed '/define THREADS 64$/,$ s/if (id >= u64(tiles_m)/if (id > u64(tiles_m)/' | "
            "/usr/bin/c++ \"$@\"\n")
        arguments = [*PROBLEM, "--variant", "naive", "--sample", 3, "--device", "hip-host:1"]
        report = self.verify(*arguments, "--seed", 1, code=1, env=env)
        self.assertEqual(report["variants"],
                         [{"variant": "naive", "types": "f32 to f32", "right": 2, "wrong": 1}])
        (failure,) = report["failures"]
        self.assertIn("64", str(failure["config"]))
        self.assertEqual(failure["status"], "crash")
        self.assertRegex(failure["message"], "^AddressSanitizer: heap-buffer-overflow at "
                         "gemm/naive:[0-9]+ in gemm_naive$")
        self.assertIn("READ of size 4", failure["log"])
        # 33 x 17 elements, 64 in a block
        self.assertIn("it was thread (49,0,0) of block (8,0,0)", failure["log"])

    def test_loads_of_many_bytes_are_checked(self):
        """16 bytes at once past the end of A, of which nothing is used: the result is right."""
        templates = self.planted_templates("wide", "gemm/align.hip", "chunk + 32 <=", "chunk + 16 <=")
        report = self.verify("--m", 64, "--n", 64, "--k", 100, "--dtype", "f16", "--layout", "nt", "--variant", "matrix",
                             "--sample", 6, "--seed", 2, "--first", "--device", "hip-host:0", "--templates", templates,
                             code=1)
        (failure,) = report["failures"]
        self.assertRegex(failure["message"], "^AddressSanitizer: heap-buffer-overflow at gemm/align:")

    def test_only_where_there_are_sanitizers(self):
        result = self.run_tune("verify", "gemm", "--sanitize", "--device", "vulkan:0")
        self.refused(result, 2, "--sanitize", "vulkan:0", "hip-host")


class NoSanitizers(SanitizeCase):
    """Skipped in programs built with sanitizers, which contain them."""

    def test_a_compiler_without_their_runtime_is_one_line(self):
        env = self.environment_with_compiler(
            "case $1 in -print*) echo ${1#*=}; exit;; esac\nexec /usr/bin/c++ \"$@\"\n")
        result = self.run_tune("verify", "gemm", "--sanitize", "--device", "hip-host:0", env=env)
        self.refused(result, 2, "--sanitize", "no runtime of AddressSanitizer")


if __name__ == "__main__":
    unittest.main()
