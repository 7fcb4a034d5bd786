"""Protects: greta-bench soak as a user runs it. Every result is checked for as long as it runs; a wrong result, a drift of
the time and growth of memory are each found while the rest is stable; an interrupt reports what there is.

The faults are planted in a kernel on hip-host, which runs on the CPU, and so can look for a file: without the file, which
the test creates after the soak has begun, the kernel is right and steady."""
import csv
import json
import signal
import subprocess
import time
import unittest

from bench_case import GEMM, BenchCase
from cli_case import BENCH, SOURCE, limit

KERNEL = """
extern "C" int access(const char*, int);
extern "C" void* calloc(unsigned long, unsigned long);

extern "C" __global__ void NAME(const float* a, float* c, int n) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= n) return;
  c[at] = 2.0f * a[at];
  if (at != 77 || access("FILE", 0) != 0) return;
  FAULT
}

extern "C" __global__ void doubled(const float* a, float* c, int n) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < n) c[at] = 2.0f * a[at];
}
"""
DESCRIPTION = {
    "greta": 1, "summary": "twice a vector", "language": "hip",
    "dimensions": {"n": {"default": 300, "help": "elements", "examples": [1, 300]}},
    "parameters": {"BLOCK": [64]}, "defaults": {"BLOCK": 64},
    "operands": [{"name": "a", "role": "input", "type": "f32", "shape": "n"},
                 {"name": "c", "role": "output", "type": "f32", "shape": "n"}],
    "scalars": {"n": {"type": "i32"}},
    "grid": "ceil_div(n, BLOCK)", "workgroup": "BLOCK", "arguments": ["a", "c", "n"],
    "reference": {"entry": "doubled", "grid": "ceil_div(n, 256)", "workgroup": 256, "arguments": ["a", "c", "n"],
                  "tolerance": {"ulp": 0}}}
FAULTS = {
    "wrong": "c[at] += 1.0f;",
    "unordered": "c[at] += 1.0f;",
    "outside": "c[n + 8] = 1.0f;",
    "drift": "volatile float sum = 0.0f; for (int i = 0; i < 1000000; ++i) sum = sum + 1.0f;",
    "leak": "volatile char* lost = (volatile char*)calloc(1, 1 << 15); "
            "for (int i = 0; i < 1 << 15; i += 4096) lost[i] = 1;",
}


class BenchSoak(BenchCase):
    known_devices = "hip-host:0"

    def words(self, *options):
        return self.bench_words(["soak", "--device", "hip-host:0", "--db", self.db, "--no-lock", "--seed", 1,
                                 *options], True)

    def soak(self, *options):
        return self.run_words(*self.words(*options))

    def faulty(self, names):
        """Returns a preset of faulty kernels and a right one."""
        kernels = self.folder / "kernels"
        kernels.mkdir(exist_ok=True)
        for name in names:
            (kernels / f"{name}.jsonc").write_text(json.dumps(
                {**DESCRIPTION, "name": name, "entry": name, "source": f"{name}.hip", "unordered": name == "unordered"}))
            text = KERNEL.replace("FILE", str(self.folder / "planted")).replace("NAME", name)
            (kernels / f"{name}.hip").write_text(text.replace("FAULT", FAULTS[name]))
        problems = [*({"op": name} for name in names), dict(GEMM, m=16, n=16)]
        return ["--preset", self.preset("faults", problems=problems), "--kernels", kernels]

    def complete_rows(self, file):
        text = file.read_text()
        return list(csv.DictReader(text[:text.rfind("\n") + 1].splitlines()))

    def with_faults(self, names, seconds):
        """Plants faults before the middle of a soak, and returns its exit code, report and errors."""
        file = self.folder / "soak.csv"
        for earlier in (file, self.folder / "planted"):
            earlier.unlink(missing_ok=True)
        words = self.words(*self.faulty(names), "--for", f"{seconds}s", "--export", file, "--json", "--drift", 1000,
                           "--growth", 8)
        process = subprocess.Popen(words, env=self.env, cwd=self.folder, text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        end = time.time() + limit(60)
        while time.time() < end and process.poll() is None:
            if file.exists() and any(float(row["seconds"]) > 0.45 * seconds for row in self.complete_rows(file)):
                break
            time.sleep(0.05)
        (self.folder / "planted").touch()
        output, errors = process.communicate(timeout=limit(60))
        report = json.loads(output)
        rows = self.rows(file)
        self.assertEqual(sum(int(row["launches"]) for row in rows),
                         sum(kernel["launches"] for kernel in report["kernels"]))
        return process.returncode, report, errors

    def test_steady_work_is_stable(self):
        file = self.folder / "soak.csv"
        # Tests run beside others, so that times vary by any factor.
        result = self.soak("--preset", self.preset(problems=[dict(GEMM, m=16), {"op": "add_rmsnorm", "rows": 5, "cols": 33,
                                                                               "dtype": "f16"}]),
                           "--for", "2s", "--drift", 3000, "--export", file)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertRegex(result.stdout, r"kernel/gemm/f32\S* +\d+ +0 .* stable\n")
        self.assertRegex(result.stdout.splitlines()[-1], r"^stable after \d+\.\d s$")
        rows = self.rows(file)
        self.assertGreater(len(rows), 6)
        self.assertEqual({row["wrong"] for row in rows}, {"0"})
        self.assertTrue(all(float(row["host_mib"]) > 1 for row in rows))
        self.assertTrue(all(float(row["median_us"]) > 0 for row in rows[:-2]))
        self.assertEqual([row["median_us"] for row in rows[-2:]], ["", ""])  # the checks at the end
        self.assertGreater(len({row["benchmark"] for row in rows}), 1)

    def test_on_vulkan_and_one_problem(self):
        size = ["--m", 16, "--n", 17, "--k", 18, "--dtype", "f16"]
        result = self.run_words(BENCH, *map(str, ["soak", "gemm", *size, "--for", "1s", "--device", "vulkan:0", "--config",
                                                  "naive THREADS=64", "--drift", 3000, "--db", self.db, "--no-lock"]))
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("/chosen/naive,THREADS=64", result.stdout)

    def test_operands_that_begin_between_words(self):
        """Results are compared, and inputs restored, byte for byte."""
        size = ["--m", 17, "--n", 17, "--k", 18, "--dtype", "f16", "--c-offset", 1, "--beta", 2]
        for device in ("hip-host:0", "vulkan:0"):
            with self.subTest(device=device):
                result = self.run_words(BENCH, *map(str, ["soak", "gemm", *size, "--for", "0.5s", "--device", device, "--seed",
                                                          1, "--drift", 3000, "--db", self.db, "--no-lock", "--json"]))
                self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
                kernel, = json.loads(result.stdout)["kernels"]
                self.assertEqual((kernel["verdict"], kernel["wrong"], kernel["compared"]), ("stable", 0, "bits"))
                self.assertGreater(kernel["launches"], 2)

    def test_each_fault_is_found_in_its_kernel(self):
        # Beside other work, a few seconds have too few turns for a significant drift.
        for seconds in (9, 30):
            code, report, errors = self.with_faults(["wrong", "unordered", "outside", "drift", "leak"], seconds)
            self.assertEqual(code, 1, errors)
            if "drifts" in [kernel["verdict"] for kernel in report["kernels"]]:
                break
        self.assertEqual((report["verdict"], report["format"]), ("wrong results", "greta-soak 1"))
        kernels = {kernel["benchmark"].split("/")[1]: kernel for kernel in report["kernels"]}
        self.assertEqual({name: kernel["verdict"] for name, kernel in kernels.items()},
                         {"wrong": "wrong results", "unordered": "wrong results", "outside": "wrong results",
                          "drift": "drifts", "leak": "memory grows", "gemm": "stable"})
        self.assertEqual(kernels["outside"]["wrong"], 1)  # of the last check, which looks at guard zones
        for name, compared in (("wrong", "bits"), ("unordered", "with the reference")):
            self.assertTrue(0 < kernels[name]["wrong"] < kernels[name]["launches"], kernels[name])
            self.assertGreater(kernels[name]["first_wrong_s"], 2)
            self.assertEqual(kernels[name]["compared"], compared)
            self.assertRegex(errors, rf"kernel/{name}/\S*: the first wrong results after \d.* s, \d+ of \d+\n")
        self.assertGreater(kernels["drift"]["drift_low"], 2)
        self.assertGreater(kernels["leak"]["growth_bytes"], 8 << 20)

    def test_the_exit_code_of_a_leak_is_4(self):
        code, report, errors = self.with_faults(["leak"], 2)
        self.assertEqual(code, 4, errors)
        self.assertEqual(report["verdict"], "memory grows")
        self.assertGreater(report["host_growth_bytes"], 8 << 20)

    def test_an_interrupt_reports_what_there_is(self):
        file = self.folder / "soak.csv"
        process = subprocess.Popen(self.words("--preset", self.preset(problems=[GEMM]), "--for", "1h", "--export", file,
                                              "--drift", 3000),
                                   env=self.env, cwd=self.folder, text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        end = time.time() + limit(60)
        while time.time() < end and not (file.exists() and self.complete_rows(file)):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=limit(30))
        self.assertEqual(process.returncode, 1, errors)
        self.assertRegex(errors.splitlines()[-1], r"^greta-bench: interrupted after \d.* of 1 h 0 min$")
        self.assertRegex(output, r"kernel/gemm\S* +\d+ +0 ")

    def test_a_described_kernel_by_its_file_or_name(self):
        faulty = SOURCE / "tests/data/faulty"
        for words in ([str(faulty / "product.jsonc")], ["product", "--kernels", str(faulty)]):
            result = self.bench("soak", *words, "--config", "described FAULT=none", "--device", "hip-host:0", "--for",
                                "0.5s", "--drift", 100000, "--growth", 4096)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            self.assertIn("product", result.stdout)
        result = self.bench("soak", str(faulty / "product.jsonc"), "--config", "described FAULT=foo", "--device",
                            "hip-host:0", "--for", "1s")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("FAULT: must be one of none, transposed_operand", result.stdout + result.stderr)

    def test_bad_input(self):
        self.refused(self.run_words(BENCH, "soak", "--for", "1s", "gemm", "--m", "1", "--n", "1", "--k", "1"), 2,
                     "--for: belongs after the operation gemm")
        preset = self.preset(problems=[GEMM])
        old = self.folder / "old.csv"
        old.touch()
        self.refused(self.run_words(BENCH, "soak"), 2, "--for: a time is needed")
        for options, expected in ((["--for", "5"], "--for 5: must be a time"), (["--for", "soon"], "--for soon"),
                                  (["--drift", "0"], "--drift 0"), (["--growth", "-1"], "--growth -1"),
                                  (["--for", "1s", "--export", old], "--export"),
                                  (["--for", "1s", "--filter", "nonesuch"], "--filter nonesuch"),
                                  (["--for", "1s", "--device", "hip-host:0,hip-host:1"], "--device"),
                                  (["--for", "1s", "--preset", self.preset("empty", runtime=["allocate"])],
                                   "no kernel")):
            with self.subTest(options=options):
                words = ["--preset", preset] if "--preset" not in options else []
                if "--device" in options:
                    result = self.run_words(*self.bench_words(["soak", *words, "--db", self.db, *options], True))
                else:
                    result = self.soak(*words, *options)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(expected, result.stderr.splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
