"""Protects: --validate of every tool that opens devices. All processes of a run are checked, messages are counted by kind
on standard error and in JSON, errors fail the run, and where nothing can check a device, nothing runs."""
import json
import os
import pathlib
import shutil

import unittest

from cli_case import BENCH, SOURCE, Case

RUN = os.environ["GRETA_RUN"]
MODEL = SOURCE / "tests/data/stories260K/stories260K.bin"
CLEAN = "validation: VK_LAYER_KHRONOS_validation: 0 errors, 0 warnings"
BAD = "VUID-VkShaderModuleCreateInfo-pCode-01091"  # a capability of a shader that was not enabled

# Runs its command as compute-sanitizer does, and reports what FAKE_REPORTS has.
SANITIZER = """#!/bin/sh
echo "$@" > "$FAKE_WORDS"
while [ "$1" != --log-file ]; do shift; done
[ -z "$FAKE_REPORTS" ] || cp "$FAKE_REPORTS" "$(echo "$2" | sed s/%p/$$/)"
shift 2
[ -z "$FAKE_OUTPUT" ] || exec echo "$FAKE_OUTPUT"
exec "$@"
"""
REPORTS = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at greta_gemm+0x70
=========     by thread (1,0,0) in block (0,0,0)
=========     Address 0x7f0000000200 is out of bounds
=========
========= Invalid __global__ write of size 4 bytes
=========     at greta_gemm+0x70
=========     by thread (2,0,0) in block (0,0,0)
=========
========= Program hit CUDA_ERROR_NOT_FOUND (error 500) due to "named symbol not found" on CUDA API call to cuModuleGetFunction.
=========     Saved host backtrace up to driver entry point at error
=========
========= Warning: Race reported between Read access at greta_gemm+0x10 and Write access at greta_gemm+0x20 [4 hazards]
=========
========= ERROR SUMMARY: 5 errors
"""


class Validate(Case):
    def bad_kernel(self):
        """Returns a description whose kernel uses a feature of the device that is not enabled."""
        folder = self.folder / "kernels"
        shutil.copytree(SOURCE / "tests/data/kernels", folder)
        source = (folder / "stencil.comp").read_text()
        source = source.replace('#include "grid.glsl"', '#include "grid.glsl"\n'
                                "#extension GL_EXT_shader_atomic_int64 : require\n"
                                "#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require\n"
                                "shared uint64_t count;")
        (folder / "stencil.comp").write_text(source.replace("void tiled() {", "void tiled() { atomicAdd(count, 1UL);"))
        return folder / "stencil.jsonc"

    def cuda(self, tool=True, reports=REPORTS):
        """Makes hip:0 a fake NVIDIA GPU, for which compute-sanitizer is installed or not."""
        folder = self.folder / "cuda"
        folder.mkdir()
        (folder / "libcuda.so.1").symlink_to(os.environ["GRETA_FAKE_CUDA"])
        self.words = folder / "words"
        if tool:
            (folder / "compute-sanitizer").write_text(SANITIZER)
            (folder / "compute-sanitizer").chmod(0o755)
        (folder / "reports").write_text(reports)
        self.env.update(LD_LIBRARY_PATH=str(folder), GRETA_FAKE_ARCHITECTURE="sm_80", FAKE_WORDS=str(self.words),
                        FAKE_REPORTS=str(folder / "reports") if reports else "",
                        PATH=f"{folder}:{self.env['PATH']}")

    def sources_of(self, *words):
        """Opens the device, and writes sources."""
        return self.run_tune("verify", "softmax", "--rows", 3, "--cols", 5, "--sources", self.folder / "sources",
                             "--device", "hip:0", *words)

    def test_messages_of_a_tool_are_counted_and_fail_the_run(self):
        words = ["verify", self.bad_kernel(), "--height", 5, "--width", 7, "--device", "vulkan:0", "--sample", 1,
                 "--seed", 1]
        self.assertEqual(self.run_tune(*words).returncode, 0)
        result = self.run_tune(*words, "--validate", "--json")
        self.assertEqual(result.returncode, 1, result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual(report["failures"], [])
        found = report["validation"]["vulkan"]
        self.assertGreater(found["opened"]["vulkan:0"], 0)
        kinds = {kind["kind"]: kind for kind in found["kinds"]}
        self.assertTrue(kinds[BAD]["error"])
        self.assertIn("Int64Atomics", kinds[BAD]["first"])
        self.assertEqual(found["errors"], sum(kind["count"] for kind in found["kinds"] if kind["error"]))
        self.assertRegex(result.stderr, rf"(?m)^validation: .*: {found['errors']} errors, \d+ warnings in ")
        self.assertRegex(result.stderr, rf"(?m)^  {kinds[BAD]['count']}× {BAD}: .*Int64Atomics")

    def test_worker_processes_are_checked(self):
        # A tuner compiles and runs candidates in another process.
        result = self.run_tune("kernel", self.bad_kernel(), "--height", 5, "--width", 7, "--device", "vulkan:0", "--budget", 1,
                               "--no-lock", "--flush", 1, "--db", self.know_ceilings("auto,vulkan:0"), "--validate")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(result.stderr, rf"(?m)^  \d+× {BAD}: ")

    def test_other_tools_are_checked(self):
        preset = self.folder / "tiny.json"
        preset.write_text(json.dumps({"iterations": 1, "batch": 1, "problems": [{"op": "gelu", "rows": 4, "cols": 64}]}))
        bench = self.run_words(BENCH, "--preset", preset, "--untuned", "--no-lock", "--device", "vulkan:0", "--db",
                               self.know_ceilings("auto,vulkan:0"), "--validate", "--settle", "0", "--flush", "1")
        self.assertEqual(bench.returncode, 0, bench.stderr)
        # The one that verifies is another process.
        self.assertRegex(bench.stderr, rf"(?m)^{CLEAN} in 2 processes")
        run = self.run_words(RUN, "--model", MODEL, "--prompt", "--validate", "--tokens", "2", "--device", "vulkan:0",
                             "--validate", "--json")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(json.loads(run.stdout)["validation"]["vulkan"]["errors"], 0)
        self.assertIn(CLEAN, run.stderr)

    def test_events_end_with_what_was_found_and_a_usage_error_with_nothing(self):
        words = ["gelu", "--rows", 4, "--cols", 64, "--device", "vulkan:0", "--budget", 1, "--no-lock", "--db",
                 self.know_ceilings("auto,vulkan:0"), "--validate", "--json-lines"]
        result = self.run_tune(*words)
        self.assertEqual(result.returncode, 0, result.stderr)
        last = json.loads(result.stdout.splitlines()[-1])
        self.assertEqual(last["event"], "validation")
        self.assertEqual(last["validation"]["vulkan"]["errors"], 0)
        refused = self.run_tune(*words, "--strategy", "luck")
        self.refused(refused, 2, "luck")
        self.assertNotIn("validation:", refused.stderr)

    def test_without_the_layer_nothing_runs(self):
        drivers = [str(file) for file in pathlib.Path("/usr/share/vulkan/icd.d").glob("lvp*.json")]
        self.env.update(VK_LAYER_PATH=str(self.folder), XDG_DATA_DIRS=str(self.folder), VK_ICD_FILENAMES=drivers[0])
        result = self.run_tune("verify", "softmax", "--problems", 1, "--device", "vulkan:0", "--validate")
        self.refused(result, 1, "--validate", "vulkan:0 is not checked", "VK_LAYER_KHRONOS_validation is not installed")

    def test_devices_that_nothing_checks_are_refused(self):
        words = ["verify", "softmax", "--problems", 1, "--device"]
        self.refused(self.run_tune(*words, "hip-host:0", "--validate"), 2, "--validate", "hip-host:0", "--sanitize")
        self.refused(self.run_tune(*words, "hip-host:0,vulkan:0", "--validate"), 2, "--validate", "hip-host:0")
        self.refused(self.run_tune(*words, "vulkan:0", "--validate=racecheck"), 2, "racecheck", "vulkan:0")
        self.refused(self.run_tune(*words, "vulkan:0", "--validate=magic"), 2, "must be one of memcheck, racecheck")

    def test_cuda_devices_run_under_compute_sanitizer(self):
        self.cuda()
        result = self.sources_of("--validate=racecheck")
        self.assertEqual(result.returncode, 1, result.stderr)
        words = self.words.read_text()
        self.assertIn("--tool racecheck --target-processes all", words)
        self.assertNotIn("--validate", words)
        self.assertTrue(any((self.folder / "sources").iterdir()))
        self.assertIn("validation: compute-sanitizer racecheck: 5 errors, 1 warning in 1 report\n", result.stderr)
        for line in ["2× Invalid __global__ write of size 4 bytes", "2× Not printed: 2 errors that were not printed",
                     "1× Program hit CUDA_ERROR_NOT_FOUND (error 500)", "1× warning Warning: Race reported"]:
            self.assertIn(f"\n  {line}", result.stderr)
        self.env["FAKE_OUTPUT"] = '{"what": "ran"}'
        report = json.loads(self.sources_of("--validate", "--json").stdout)
        self.assertEqual(report["what"], "ran")
        found = report["validation"]["compute_sanitizer"]
        self.assertEqual((found["tool"], found["errors"], found["warnings"]), ("memcheck", 5, 1))
        self.assertIn("by thread (1,0,0)", found["kinds"][0]["first"])

    def test_clean_reports_pass_and_none_at_all_fail(self):
        self.cuda(reports="========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n")
        clean = self.sources_of("--validate")
        self.assertEqual(clean.returncode, 0, clean.stderr)
        self.assertIn("compute-sanitizer memcheck: 0 errors, 0 warnings in 1 report", clean.stderr)
        self.env["FAKE_REPORTS"] = ""
        none = self.sources_of("--validate")
        self.assertEqual(none.returncode, 1)
        self.assertIn("--validate: nothing was checked", none.stderr)

    def test_without_compute_sanitizer_nothing_runs(self):
        self.cuda(tool=False)
        if pathlib.Path("/usr/local/cuda/bin/compute-sanitizer").exists():
            self.skipTest("compute-sanitizer is installed")
        self.refused(self.sources_of("--validate"), 1, "--validate", "hip:0 is not checked",
                     "compute-sanitizer is not installed")
        self.assertFalse((self.folder / "sources").exists())


if __name__ == "__main__":
    unittest.main()
