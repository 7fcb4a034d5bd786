"""Protects: greta-tune compile reports the statistics of kernels compiled for absent GPUs, and
errors are one line. Cases that it writes can be run and checked on their GPU."""
import json
import os
import struct
import unittest

from cli_case import SOURCE, Case

SMALL = ["compile", "gemm", "--m", "64", "--n", "48", "--k", "40"]


class Compile(Case):
    def compiled(self, *arguments, code=0):
        result = self.run_tune(*arguments)
        self.assertEqual(result.returncode, code, result.stderr + result.stdout)
        return result

    def test_the_table_and_the_files_of_the_default(self):
        code, listing = self.folder / "kernel.co", self.folder / "kernel.s"
        result = self.compiled(*SMALL, "--dtype", "f16", "--arch", "gfx942", "--variant", "matrix",
                               "--code-object", code, "--listing", listing)
        lines = result.stdout.splitlines()
        self.assertRegex(lines[0], "^gfx942: .*clang")
        columns = lines[1].split()
        self.assertEqual(columns[:3], ["kernel", "VGPR", "AGPR"])
        self.assertIn("gemm dtype=f16 out=f16 m=64 n=48 k=40", lines[2])
        self.assertTrue(lines[3].strip().startswith("matrix "))
        figures = lines[4].split()
        self.assertGreater(int(figures[columns.index("VGPR")]), 0)
        self.assertEqual(code.read_bytes()[:4], b"\x7fELF")
        self.assertIn("v_mfma_f32", listing.read_text())
        self.assertIn("s_endpgm", listing.read_text())

    def test_json_has_the_figures_of_every_kernel(self):
        result = self.compiled(*SMALL, "--arch", "gfx1100", "--variant", "split_k", "--json")
        report = json.loads(result.stdout)
        self.assertEqual(report["architecture"], "gfx1100")
        self.assertIn("clang", report["compiler"])
        (entry,) = report["configurations"]
        self.assertEqual(entry["status"], "ok")
        self.assertEqual(entry["config"]["variant"], "split_k")
        self.assertGreaterEqual(len(entry["kernels"]), 1)
        for kernel in entry["kernels"]:
            self.assertGreater(kernel["registers"], 0)
            self.assertGreater(kernel["code_bytes"], 0)
            self.assertGreater(kernel["occupancy"]["waves"], 0)
            self.assertLessEqual(kernel["occupancy"]["waves"], kernel["occupancy"]["max_waves"])

    def test_samples_are_different_and_the_seed_repeats_them(self):
        sample = [*SMALL, "--arch", "gfx942", "--variant", "tiled", "--sample", 3, "--json"]
        texts = [[entry["config_text"] for entry in json.loads(
            self.compiled(*sample, "--seed", seed).stdout)["configurations"]] for seed in (1, 1, 2)]
        self.assertEqual(len(set(texts[0])), 3)
        self.assertEqual(texts[0], texts[1])
        self.assertNotEqual(texts[0], texts[2])

    def test_a_ranking_is_ordered_by_predicted_times(self):
        words = [*SMALL, "--dtype", "f16", "--arch", "gfx942", "--rank", "5", "--json"]
        report = json.loads(self.compiled(*words).stdout)
        predicted = [entry["predicted"] for entry in report["configurations"]]
        self.assertEqual(len(predicted), 5)
        self.assertEqual(predicted[0], 1)
        self.assertEqual(predicted, sorted(predicted))
        one = json.loads(self.compiled(*words[:-3], "--rank", "1", "--variant", "tiled", "--json").stdout)
        self.assertEqual([entry["config"]["variant"] for entry in one["configurations"]], ["tiled"])
        self.assertIn("   predicted 1.00\n", self.compiled(*words[:-1]).stdout)

    def test_a_configuration_by_its_text(self):
        text = "naive THREADS=128"
        result = self.compiled(*SMALL, "--arch", "gfx90a", "--config", text)
        self.assertIn(text, result.stdout)
        self.assertIn("gemm/naive", result.stdout)

    def test_glsl_for_an_amd_gpu_through_its_driver(self):
        listing = self.folder / "kernel.s"
        result = self.compiled(*SMALL, "--arch", "radv:gfx1103_r1", "--listing", listing)
        self.assertIn("GFX1103_R1", result.stdout)
        self.assertRegex(result.stdout, "latency [0-9]+, inverse throughput [0-9]+")
        self.assertIn("s_endpgm", listing.read_text())

    def test_what_does_not_compile_is_exit_code_1_with_the_log(self):
        compiler = self.folder / "clang"
        compiler.write_text("#!/bin/sh\n"
                            "case $1 in --version|-v) echo 'clang version 22.0.0'; exit 0;; esac\n"
                            "cat >$0.text\n"
                            "grep -q gemm_ $0.text || exec $(command -v clang-22 || echo clang) "
                            "\"$@\" <$0.text\n"
                            "echo 'kernel:1:1: error: I do not like this' >&2\n"
                            "echo 'a second line' >&2\nexit 1\n")
        compiler.chmod(0o755)
        result = self.compiled(*SMALL, "--arch", "gfx942", "--compiler", compiler, code=1)
        self.assertIn("failed: ", result.stdout)
        self.assertIn("I do not like this", result.stdout)
        self.assertIn("a second line", result.stderr)


class CompileNvrtc(Case):
    """Runs if NVRTC is installed."""

    def test_figures_come_from_the_cubin(self):
        cubin = self.folder / "kernel.cubin"
        for architecture in ("sm_80", "sm_90"):
            result = self.run_tune(*SMALL, "--dtype", "f16", "--arch", architecture, "--variant",
                                   "matrix", "--json", "--code-object", cubin)
            self.assertEqual(result.returncode, 0, result.stderr)
            report = json.loads(result.stdout)
            self.assertRegex(report["compiler"], "^NVRTC 1")
            (entry,) = report["configurations"]
            matrix = [kernel for kernel in entry["kernels"] if "matrix" in kernel["name"]]
            self.assertEqual(len(matrix), 1)
            self.assertGreater(matrix[0]["matrix_instructions"], 0)
            for kernel in entry["kernels"]:
                self.assertTrue(kernel["counted"])
                self.assertGreater(kernel["registers"], 0)
                self.assertGreater(kernel["code_bytes"], 0)
                self.assertGreater(kernel["occupancy"]["waves"], 0)
            self.assertEqual(cubin.read_bytes()[:4], b"\x7fELF")


class CompileWithoutNvrtc(Case):
    def test_is_one_line(self):
        self.refused(self.run_tune(*SMALL, "--arch", "sm_90"), 2, "--arch sm_90", "libnvrtc")


class CompileBadInput(Case):
    def check(self, arguments, *words):
        result = self.run_tune(*arguments)
        self.refused(result, 2, *words)
        self.assertEqual(result.stdout, "")

    def test_architectures_and_compilers(self):
        self.check(SMALL, "--arch is missing")
        for name in ("gfx000", "sm_1", "", "host-gfx000"):
            with self.subTest(name=name):
                self.check([*SMALL, f"--arch={name}" if name else "--arch="], "--arch")
        self.check([*SMALL, "--arch", "gfx943"], "gfx943", "gfx942", "gfx1201")
        self.check([*SMALL, "--arch", "radv:gfx000"], "--arch", "gfx000")
        self.check([*SMALL, "--arch", "sm_90", "--compiler", "clang"], "--compiler", "NVRTC")
        self.check([*SMALL, "--arch", "sm_90", "--listing", self.folder / "f"], "--listing")
        missing = self.folder / "nowhere" / "clang"
        self.check([*SMALL, "--arch", "gfx942", "--compiler", missing], "--compiler", str(missing))
        self.check([*SMALL, "--arch", "gfx942", "--compiler", "/bin/true"], "--compiler")

    def test_problems_and_configurations(self):
        arch = ["--arch", "gfx942"]
        self.check(["compile", "gemm", *arch, "--m", "8"], "--n")
        self.check([*SMALL, *arch, "--layout", "xx"], "--layout", "xx", "nt")
        self.check([*SMALL, *arch, "--config", "tiled BM=3"], "--config", "BM")
        self.check([*SMALL, *arch, "--config", "naive THREADS=64", "--sample", "2"], "--config")
        self.check([*SMALL, *arch, "--variant", "magic"], "--variant", "magic")
        self.check([*SMALL, *arch, "--random", "2"], "--random")
        self.check(["compile", "gemm", *arch, "--random", "2", "--sample", "2"], "--sample")
        self.check([*SMALL, *arch, "--seed", "x"], "--seed", "x")
        for count in ("0", "-1", "x", "1e9"):
            with self.subTest(count=count):
                self.check([*SMALL, *arch, f"--sample={count}"], "--sample", count)

    def test_a_variant_without_valid_configurations_names_the_constraint(self):
        self.check([*SMALL, "--arch", "gfx942", "--variant", "gemv"], "--variant gemv", "few_rows: ")
        self.check(["verify", "gemm", "--device", "vulkan:0", "--variant", "tf32x3"],
                   "--variant tf32x3", "matrix_cores: ")
        self.check(["verify", "gemm", "--device", "vulkan:0", "--variant", "magic"],
                   "--variant magic", "must be one of", "tiled")

    def test_words_in_the_place_of_an_operation(self):
        for command in ("compile", "verify"):
            with self.subTest(command=command):
                self.check([command, "gemmm", "--m", 8], f"{command} gemmm:", "gemm")
                self.check([command], command, "gemm")
                self.check([command, "--m", 8, "gemm"], command, "gemm")
        self.check(["gemmm"], "gemmm: no such command; did you mean gemm?")
        self.check(["devices", "gemm"], "gemm")
        result = self.run_tune("compile", "--help")
        self.assertEqual(result.returncode, 0)
        self.assertIn("gemm", result.stdout)

    # A table on standard output would show that something was compiled.
    def test_problems_that_are_too_large_for_a_case(self):
        folder = self.folder / "case"
        for extents in ((100000,) * 3, (1, 1, 2**29), (8192, 4096, 1), (2048, 1024, 1025)):
            with self.subTest(extents=extents):
                dims = [word for name, extent in zip("mnk", extents)
                        for word in (f"--{name}", extent)]
                self.check(["compile", "gemm", "--arch", "gfx942", *dims, "--emit-case", folder],
                           "--emit-case", f"m={extents[0]}", "too large")
                self.assertFalse(folder.exists())
        attention = ["--heads", 64, "--q", 4096, "--dim", 128, "--mask", "causal", "--window", 8]
        self.check(["compile", "attention", "--arch", "gfx942", *attention, "--emit-case", folder],
                   "--emit-case", "q=4096", "too large")
        self.assertFalse(folder.exists())

    def test_a_case_has_no_constant_memory(self):
        result = self.run_tune("compile", SOURCE / "tests/data/kernels/scale.jsonc", "--n", 100, "--arch", "gfx942",
                               "--emit-case", self.folder / "case")
        self.refused(result, 2, "--emit-case", "its variable factors in constant memory")

    def test_files_and_folders(self):
        arch = ["--arch", "gfx942"]
        taken = self.folder / "taken"
        taken.mkdir()
        (taken / "notes.txt").write_text("mine")
        self.check([*SMALL, *arch, "--emit-case", taken], "--emit-case", str(taken))
        self.check([*SMALL, *arch, "--sample", 2, "--emit-case", taken], "--emit-case", str(taken))
        self.check([*SMALL, *arch, "--emit-case", "/proc/nowhere"], "--emit-case", "/proc/nowhere")
        for option in ("--code-object", "--listing"):
            self.check([*SMALL, *arch, option, "/proc/nowhere"], option, "/proc/nowhere")
            self.check([*SMALL, *arch, option, taken], option, str(taken))
            self.check([*SMALL, *arch, "--sample", 2, option, self.folder / "f"], option)
        self.check([*SMALL, "--arch", "radv:gfx1103_r1", "--emit-case", self.folder / "c"],
                   "--emit-case")
        self.assertEqual([entry.name for entry in taken.iterdir()], ["notes.txt"])


class Cases(Case):
    """hip-host takes the place of a GPU."""

    def emit(self, folder, *arguments):
        result = self.run_tune("compile", "gemm", *arguments, "--emit-case", folder)
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)

    def test_random_cases_pass_and_a_wrong_one_fails(self):
        folder = self.folder / "cases"
        self.emit(folder, "--random", 3, "--arch", "host-gfx1100")
        cases = sorted(folder.iterdir())
        self.assertEqual([case.name for case in cases], ["0001", "0002", "0003"])
        result = self.run_tune("run-case", "--device", "host-gfx1100", *cases)
        self.assertEqual((result.returncode, result.stdout), (0, "3 passed, 0 failed, 0 unusable\n"),
                         result.stderr)
        expected = cases[1] / "C.expected.f64"
        first, = struct.unpack_from("<d", expected.read_bytes())
        expected.write_bytes(struct.pack("<d", first + 1) + expected.read_bytes()[8:])
        (cases[2] / "case.json").unlink()
        result = self.run_tune("run-case", "--device", "host-gfx1100", *cases)
        self.assertEqual(result.returncode, 2)
        wrong, unusable, total = result.stdout.splitlines()
        self.assertTrue(wrong.startswith(f"{cases[1]}: gemm host-gfx1100 gemm dtype="), wrong)
        self.assertIn("worst at 0", wrong)
        self.assertIn("case.json: No such file", unusable)
        self.assertEqual(total, "1 passed, 1 failed, 1 unusable")
        self.assertEqual(self.run_tune("run-case", "--device", "host-gfx1100", cases[1]).returncode, 1)

    def test_the_device_is_one_of_the_case_s_architecture(self):
        here, elsewhere = self.folder / "here", self.folder / "elsewhere"
        self.emit(here, "--random", 1, "--arch", "host-gfx1100")
        result = self.run_tune("run-case", here / "0001")
        self.assertEqual((result.returncode, result.stdout), (0, "1 passed, 0 failed, 0 unusable\n"))
        self.emit(elsewhere, "--m", 8, "--n", 8, "--k", 8, "--arch", "gfx1032")
        result = self.run_tune("run-case", elsewhere)
        self.assertEqual(result.returncode, 2)
        self.assertIn("compiled for gfx1032, and no device here is one: ", result.stdout)

    def test_a_case_for_a_gpu_is_complete_and_needs_that_gpu(self):
        folder = self.folder / "case"
        for _ in range(2):  # the second run replaces the case
            self.emit(folder, "--m", 40, "--n", 33, "--k", 70, "--beta", "0.5", "--variant",
                      "split_k", "--arch", "gfx90a")
        case = json.loads((folder / "case.json").read_text())
        self.assertEqual((case["schema"], case["op"], case["arch"]), (1, "gemm", "gfx90a"))
        self.assertEqual(os.path.getsize(folder / case["buffers"]["C"]["expected"]), 40 * 33 * 8)
        self.assertEqual(os.path.getsize(folder / case["buffers"]["C"]["file"]), 40 * 33 * 4)
        self.assertEqual(len(case["launches"]), 2)  # of slices, and of their sums
        for launch in case["launches"]:
            self.assertEqual((folder / launch["code_object"]).read_bytes()[:4], b"\x7fELF")
        result = self.run_tune("run-case", "--device", "host-gfx1100", folder)
        self.assertEqual(result.returncode, 2)
        self.assertIn("compiled for gfx90a", result.stdout)
        self.assertIn("host-gfx1100", result.stdout)

    def test_bad_usage(self):
        self.refused(self.run_tune("run-case"), 2, "FOLDER")
        self.refused(self.run_tune("run-case", self.folder, "--device", "hip:99"), 2, "hip:99")


if __name__ == "__main__":
    unittest.main()
