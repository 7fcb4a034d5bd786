"""Protects: the tools on a fake AMD GPU that executes no kernels, on devices that fail, and the
process that executes kernels. GRETA_CASES sets the number of faults; by default a few."""
import concurrent.futures
import json
import os
import pathlib
import random
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from cli_case import BENCH, SOURCE, TUNE, Case, patient, whole

RUN = os.environ["GRETA_RUN"]
LIBRARY = os.environ["GRETA_FAKE_AMD"]
MODEL = SOURCE / "tests/data/stories260K/stories260K.bin"
OPERATIONS = ("gemm", "grouped_gemm", "softmax", "layernorm", "rmsnorm", "add_rmsnorm", "layernorm_rmsnorm",
              "attention", "attention_merge", "rope", "kv_update", "rope_append", "silu_mul", "gelu", "add",
              "embedding", "argmax")


class FakeAmd(Case):
    def setUp(self):
        super().setUp()
        self.env.update(LD_LIBRARY_PATH=LIBRARY, GRETA_FAKE_ARCHITECTURE="gfx90a")

    def tool(self, *words, faults="", timeout=120):
        """Runs a tool, which must end in time and make no invalid call."""
        self.env["GRETA_FAKE_FAULTS"] = faults
        result = self.run_words(*map(str, words), timeout=timeout)
        self.assertIn(result.returncode, (0, 1, 2, 3), result.stderr)
        self.assertNotIn("fake HIP:", result.stderr)
        return result

    def verify(self, operation, **options):
        return self.tool(TUNE, "verify", operation, "--problems", 1, "--device", "hip:0", "--seed",
                         1, "--json", **options)

    def tell(self, *words, **options):
        return self.tool(RUN, "--model", MODEL, "--prompt", "Once", "--tokens", 3, "--device",
                         "hip:0", "--json", *words, **options)

    def tune(self, *words, **options):
        return self.tool(TUNE, "gemm", "--m", 16, "--n", 16, "--k", 16, "--device", "hip:0", "--db",
                         self.db, "--budget", 1, "--flush", 1, "--no-lock", *words, **options)


class FakeDevice(FakeAmd):
    def test_is_listed_as_what_it_is(self):
        listed = json.loads(self.tool(TUNE, "devices", "--json").stdout)
        devices = {device["id"]: device for backend in listed for device in backend["devices"]}
        self.assertEqual(devices["hip:0"]["name"], "Fake gfx90a (executes nothing)")
        self.assertEqual(devices["hip:0"]["architecture"], "gfx90a")

    @whole
    def test_kernels_of_every_operation_are_launched_and_found_wrong(self):
        # Nothing is executed, so a check that passes here would check nothing.
        for operation in OPERATIONS:
            result = self.verify(operation)
            self.assertEqual(result.returncode, 1, (operation, result.stderr))
            failures = [trial["status"] for trial in json.loads(result.stdout)["failures"]]
            self.assertEqual(failures, ["correctness"], operation)

    def test_a_tune_finds_no_winner(self):
        result = self.tune()
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("no configuration passed", result.stdout)
        self.assertEqual(self.query("SELECT count(*) FROM winners"), [(0,)])
        self.assertEqual(self.query("SELECT DISTINCT status FROM trials"), [("correctness",)])

    def test_doctor_finds_that_kernels_do_nothing(self):
        result = self.tool(BENCH, "doctor", "--device", "hip:0", "--db", self.db, "--no-lock")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^  fill +passed")
        self.assertRegex(result.stdout, r"(?m)^  ultrasafe +FAILED, correctness")

    def test_a_model_runs_to_its_last_token(self):
        result = self.tell()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(json.loads(result.stdout)["ids"]), 3)


class FakeEmulator(unittest.TestCase):
    """The process that executes kernels for all connected processes, with a fake emulator."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.socket = pathlib.Path(folder.name) / "socket"
        hip = SOURCE / "tests/device/hip"
        server = subprocess.Popen([sys.executable, "-B", hip / "fake/emulator.py", hip / "stand_in",
                                   self.socket])
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        for _ in range(3000):
            if self.socket.exists():
                break
            time.sleep(0.01)

    def launch(self, count):
        """Connects, loads a code object and launches its kernel."""
        with socket.socket(socket.AF_UNIX) as end:
            end.connect(str(self.socket))
            for memory in socket.recv_fds(end, 100, 1)[1]:
                os.close(memory)
            stream = end.makefile("rwb")

            def answer(call, payload):
                stream.write(json.dumps(call | {"bytes": len(payload)}).encode() + b"\n" + payload)
                stream.flush()
                return stream.readline()

            work = {"call": "launch", "module": 1, "kernel": "work", "grid": [1, 1, 1],
                    "block": [64, 1, 1], "shared": 0}
            return (answer({"call": "load"}, b"\x7fELF"),
                    answer(work, struct.pack("<Qfi", 0, 0, count)))

    def test_launches_of_two_processes_are_executed_one_after_the_other(self):
        # Protects: an emulator may have process-wide state, and crashed when two processes
        # launched.
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for loaded, launched in pool.map(self.launch, [-4] * 4):
                self.assertEqual(json.loads(loaded), {"module": 1})
                self.assertEqual(json.loads(launched), {"instructions": 64000})


class FakeFaults(FakeAmd):
    """Any call may fail, lose the device or find it hung. The tool must end and name the cause."""
    QUICK = ("out_of_memory", "refused", "lost", "gone")

    def counts(self, run):
        """Returns how often each process of a run calls each function, and the run without a
        fault."""
        file = self.folder / "calls"
        self.env["GRETA_FAKE_CALLS"] = str(file)
        result = run()
        del self.env["GRETA_FAKE_CALLS"]
        most = {}
        for line in file.read_text().splitlines():
            for function, count in json.loads(line).items():
                most[function] = max(count, most.get(function, 0))
        file.unlink()
        return most, result

    def judge(self, run, usual, faults):
        result = run(faults=faults)
        if result.returncode == 0:  # it continued without the failed call
            self.assertEqual(json.loads(result.stdout)["ids"], json.loads(usual.stdout)["ids"])
            return
        said = result.stdout + result.stderr
        self.assertRegex(said, "hip[A-Z]|out of memory|device", said)
        self.assertNotRegex(said, "terminate called|Sanitizer|core dumped")

    def test_every_function_may_fail_at_any_call(self):
        generator = random.Random(5)
        cases = int(os.environ.get("GRETA_CASES", "0"))
        for run in (self.tell, self.verify_norm):
            counts, usual = self.counts(run)
            self.assertGreater(len(counts), 20)
            chosen = [(function, generator.choice((1, count, generator.randint(1, count))), kind)
                      for function, count in sorted(counts.items()) for kind in self.QUICK]
            generator.shuffle(chosen)
            for function, call, kind in chosen[:cases or 4]:
                with self.subTest(run=run.__name__, fault=f"{function}:{call}:{kind}"):
                    self.judge(run, usual, f"{function}:{call}:{kind}")

    def verify_norm(self, **options):
        return self.verify("rmsnorm", **options)

    def test_a_failed_trial_names_what_failed(self):
        for fault, status, words in (
                ("hipModuleLaunchKernel:1:refused", "launch", "hipErrorLaunchOutOfResources"),
                ("hipModuleLaunchKernel:1:lost", "launch", "hipErrorLaunchFailure")):
            result = self.verify_norm(faults=fault)
            self.assertEqual(result.returncode, 1, result.stderr)
            failure = json.loads(result.stdout)["failures"][0]
            self.assertEqual(failure["status"], status)
            self.assertIn(words, failure["message"])
            self.assertIn(fault.split(":")[0], failure["message"])

    def test_a_device_that_is_lost_while_its_rates_are_measured_is_opened_again(self):
        result = self.tune(faults="hipModuleLaunchKernel:150:lost")
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("no peaks", result.stdout)
        self.assertIn("hipModuleLaunchKernel: hipErrorLaunchFailure", " ".join(result.stdout.split()))
        self.assertEqual(self.query("SELECT DISTINCT status FROM trials"), [("correctness",)])

    def test_a_device_that_is_gone_leaves_its_candidate_and_a_failed_session(self):
        result = self.tune("--in-process", faults="hipModuleLaunchKernel:1:gone")
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertRegex(result.stderr, r"greta-tune: hip\w+: hipErrorLaunchFailure\n$")
        self.assertEqual(self.query("SELECT outcome FROM sessions"), [("failed",)])
        self.assertEqual(self.query("SELECT max(status), count(*) FROM trials"), [("launch", 1)])

    def test_a_device_that_is_gone_while_peaks_are_measured_costs_only_the_peaks(self):
        def run(**options):
            self.db.unlink(missing_ok=True)
            return self.tune("--in-process", **options)
        counts, _ = self.counts(run)
        outcome = self.query("SELECT outcome FROM sessions")
        trials = self.query("SELECT status, count(*) FROM trials GROUP BY status")
        result = run(faults=f"hipModuleLaunchKernel:{counts['hipModuleLaunchKernel']}:gone")
        self.assertRegex(result.stdout, r"note +no peaks, [^\n]+\s+hipErrorLaunchFailure")
        self.assertEqual(self.query("SELECT outcome FROM sessions"), outcome)
        self.assertEqual(self.query("SELECT status, count(*) FROM trials GROUP BY status"), trials)

    def test_a_profile_without_peaks_goes_on(self):
        result = self.tool(TUNE, "profile", "gemm", "--m", 16, "--n", 16, "--k", 16, "--default", "--device", "hip:0",
                           "--db", self.db, "--no-lock", faults="hipModuleLaunchKernel:1:lost")
        self.assertRegex(result.stderr, r"no peaks, so no share of the roofline: [^\n]*hipErrorLaunchFailure")
        self.assertIn("gemm dtype=f32", result.stdout)

    def test_a_run_does_not_wait_for_ever(self):
        short, long = round(patient(2)), round(patient(4))
        # Calls that never return, and a pass of the model that never ends.
        for function, call in (("hipInit", 1), ("hipMalloc", 1), ("hipModuleLoadData", 9),
                               ("hipGraphLaunch", 2)):
            with self.subTest(function=function):
                result = self.tell("--patience", short, faults=f"{function}:{call}:block", timeout=60)
                self.refused(result, 1, "the device does not answer", f"--patience {short} ")
        result = self.tool(RUN, "bench", "--config", "llama-2-7b", "--layers", 1, "--device", "hip:0",
                           "--patience", short, faults="hipInit:1:block", timeout=60)
        self.refused(result, 1, "the device does not answer", f"--patience {short} ")
        result = self.tell("--patience", long, faults="hipGraphLaunch:2:hang", timeout=60)
        self.refused(result, 1, f"the device did not finish within {long}000 ms")

    def test_what_fails_in_a_run_is_told_in_one_line(self):
        for fault, words in (("hipGraphLaunch:2:lost", "hipGraphLaunch"),
                             ("hipGraphInstantiateWithFlags:1:refused", "hipGraphInstantiate"),
                             ("hipMalloc:1:gone", "hipMalloc"),
                             ("hipHostMalloc:1:lost", "hipHostMalloc")):
            self.refused(self.tell(faults=fault), 1, words, "hipErrorLaunch")

    def test_a_module_that_is_refused_is_replaced_by_the_default_or_ends_the_run(self):
        ends = set()
        for call in range(1, 16):
            result = self.tell(faults=f"hipModuleLoadData:{call}:refused")
            ends.add(result.returncode)
            if result.returncode != 0:
                self.refused(result, 1, "hipModuleLoadData", "hipErrorLaunch")
            else:
                self.assertRegex(result.stderr, r"\Agreta-run: [^\n]* can't run, the default is used: [^\n]*hipModuleLoadData[^\n]*\n\Z")
            if ends == {0, 1}:
                return
        self.fail(f"exit codes {ends}")


if __name__ == "__main__":
    unittest.main()
