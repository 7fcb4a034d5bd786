"""Protects: libgreta-capture.so counts every product that a program asks of cuBLAS, cuBLASLt, rocBLAS, hipBLAS and
hipBLASLt, forwards each call with all bits of its arguments, and changes nothing else in the program."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import fake_libraries
from vendor_functions import FILES, FUNCTIONS

LIBRARY = os.environ["GRETA_CAPTURE_LIBRARY"]
COMPILER = os.environ["GRETA_C_COMPILER"]
TUNE = os.environ["GRETA_TUNE"]
HANGS_S = 300  # a time limit that only ends what hangs
HERE = pathlib.Path(__file__).resolve().parent


class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="greta_fakes_")
        cls.addClassCleanup(folder.cleanup)
        cls.fakes = pathlib.Path(folder.name)
        fake_libraries.build(cls.fakes, COMPILER, HERE / "application.c")
        cls.linked, cls.loading = cls.fakes / "linked", cls.fakes / "loading"

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="greta_capture_"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.file = self.folder / "gemms.jsonl"

    def run_program(self, *words, captured=True, file=None, **env):
        settings = {"LD_PRELOAD": LIBRARY, "GRETA_CAPTURE": str(file or self.file)} if captured else {}
        return subprocess.run(list(map(str, words)), env=os.environ | settings | env, cwd=self.folder,
                              capture_output=True, text=True, timeout=HANGS_S)

    def rows(self, file=None):
        head, *rows = map(json.loads, (file or self.file).read_text().splitlines())
        self.assertEqual(head["greta_capture"], 2)
        return rows

    def counts(self, file=None):
        """Returns the number of calls by m."""
        return {row["m"]: row["count"] for row in self.rows(file)}


class Forwarding(Programs):
    def calls(self, captured, **env):
        log = self.folder / f"log-{captured}"
        result = self.run_program(self.loading, "load", self.fakes / "calls.so", captured=captured, FAKE_LOG=str(log), **env)
        self.assertEqual(result.returncode, 0, result.stderr)
        # Addresses of a library's own data differ between runs: the kernel maps it within 2^40 bytes below 2^47.
        mapped = re.compile("(?!7f11223300)7[ef][0-9a-f]{10}")
        words = [[word for word in line.split() if not mapped.fullmatch(word)]
                 for line in log.read_text().splitlines()]
        return result.stdout, words

    def test_every_function_gets_every_bit_of_every_argument(self):
        said, words = self.calls(False)
        self.assertEqual([line[0] for line in words], list(FILES))
        self.assertEqual(self.calls(True), (said, words))
        counts = {}
        for row in self.rows():
            counts[row["function"]] = counts.get(row["function"], 0) + row["count"]
        # A call of two groups counts as two; the descriptors of both *Lt libraries are no memory here.
        self.assertEqual(counts, {name: 2 if "Grouped" in name else 1 for name in FILES if not name.endswith("LtMatmul")})

    def test_errors_are_forwarded_and_not_counted(self):
        self.assertEqual(self.calls(True, FAKE_STATUS="7"), self.calls(False, FAKE_STATUS="7"))
        self.assertFalse(self.file.exists())

    def test_rows_hold_what_was_asked_for(self):
        self.calls(True, FAKE_MATH_MODE="3", FAKE_POINTER_MODE="0")
        rows = {row["function"]: row for row in self.rows()}
        wide = 1 << 34
        self.assertEqual(rows["cublasSgemmStridedBatched_64"], {
            "library": "cuBLAS", "function": "cublasSgemmStridedBatched_64", "op_a": "?", "op_b": "?",
            "m": wide + 103, "n": wide + 104, "k": wide + 105, "a_type": "f32", "b_type": "f32", "c_type": "f32",
            "d_type": "f32", "compute": "f32", "scale": "f32", "lda": wide + 108, "ldb": wide + 111, "ldc": wide + 115,
            "ldd": wide + 115, "batch_kind": "strided", "batch": wide + 117, "stride_a": wide + 109,
            "stride_b": wide + 112, "stride_c": wide + 116, "stride_d": wide + 116, "alpha": 0.5, "beta": 0.5,
            "tf32": 1, "count": 1})
        self.assertEqual({row["m"] for row in self.rows() if row["function"] == "cublasGemmGroupedBatchedEx"}, {40, 50})
        self.assertEqual(rows["cublasDgemm_v2"]["scale"], "f64")
        self.assertEqual(rows["rocblas_gemm_ex"]["out_of_place"], 1)
        self.assertEqual(rows["cublasHgemmBatched"]["batch_kind"], "pointers")

    def test_factors_in_device_memory_are_not_read(self):
        self.calls(True, FAKE_POINTER_MODE="1")
        for row in self.rows():
            self.assertEqual((row["alpha"], row["beta"]), ("device", "device"))


class Loading(Programs):
    def test_of_libraries_that_call_each_other_the_programs_own_call_counts(self):
        result = self.run_program(self.linked, "gemm", 12, FAKE_NESTED="1", FAKE_LOG=str(self.folder / "log"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([line.split()[0] for line in (self.folder / "log").read_text().splitlines()],
                         ["cublasLtMatmul", "cublasGemmEx"])
        row, = self.rows()
        self.assertEqual((row["function"], row["m"], row["op_a"], row["op_b"], row["count"]), ("cublasGemmEx", 12, "T", "N", 1))
        self.assertEqual(json.loads(self.file.read_text().splitlines()[0])["libraries"],
                         [str(self.fakes / "libcublas.so.12"), str(self.fakes / "libcublasLt.so.12")])

    def test_dlsym(self):
        self.run_program(self.loading, "find", self.fakes / "libcublas.so.12", "gemm", 7, "gemm", 7)
        self.assertEqual(self.counts(), {7: 2})

    def test_a_second_copy_of_a_library_is_called_by_who_found_it(self):
        copy = self.folder / "copy"
        copy.mkdir()
        shutil.copy(self.fakes / "libcublas.so.12", copy / "libcublas.so.11")
        words = ("find", self.fakes / "libcublas.so.12", "gemm", 7, "find", copy / "libcublas.so.11", "gemm", 8)
        result = self.run_program(self.loading, *words, FAKE_LOG=str(self.folder / "log"))
        self.assertEqual(result.stdout, "0\n0\n", result.stderr)
        self.assertEqual(self.counts(), {7: 1})  # the second one is not captured, rather than called by the wrong library

    def test_what_is_not_there_stays_away(self):
        with_it, without = (self.run_program(self.loading, "probe", captured=captured) for captured in (True, False))
        self.assertEqual(with_it.stdout, "none error\n1\n")
        self.assertEqual(with_it.stdout, without.stdout)
        self.assertEqual(with_it.stderr, "")

    def test_matmul_of_descriptors(self):
        self.run_program(self.linked, "matmul", "matmul")
        self.assertEqual(self.rows(), [{
            "library": "cuBLASLt", "function": "cublasLtMatmul", "op_a": "T", "op_b": "N", "m": 4096, "n": 16, "k": 1024,
            "a_type": "bf16", "b_type": "bf16", "c_type": "bf16", "d_type": "bf16", "compute": "f32", "scale": "f32",
            "lda": 1024, "ldb": 1024, "ldc": 4096, "ldd": 4096, "alpha": 1, "beta": 0, "epilogue": "gelu_bias",
            "bias_type": "bf16", "count": 2, "timed": 1, "least_us": 125}])


class Times(Programs):
    """Calls 2, 8, 32, … of a kind have events before and after them, in their stream."""

    def logged(self, *words, **env):
        log = self.folder / "log"
        log.unlink(missing_ok=True)
        self.file.unlink(missing_ok=True)
        result = self.run_program(*words, FAKE_LOG=str(log), **env)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [line.split() for line in log.read_text().splitlines()]

    def test_few_calls_have_events_and_the_least_time_is_recorded(self):
        words = self.logged(self.linked, "often", 40)
        order = "".join("R" if line[0] == "cuEventRecord" else "m" for line in words)
        self.assertEqual(order, "m" + "RmR" + 5 * "m" + "RmR" + 23 * "m" + "RmR" + 8 * "m")
        # The first ones are the shortest here; handle 0 has no stream of its own.
        self.assertEqual([line[1:] for line in words if line[0] == "cuEventRecord"][:2], [["1", "0"], ["2", "0"]])
        row, = self.rows()
        self.assertEqual((row["count"], row["timed"], row["least_us"]), (40, 3, 125))

    def test_of_streams_of_descriptors_and_handles(self):
        words = self.logged(self.linked, "matmul", "matmul")
        self.assertEqual([line[0] for line in words], ["cublasLtMatmul", "cuEventRecord", "cublasLtMatmul", "cuEventRecord"])
        self.assertEqual(self.rows()[0]["timed"], 1)
        words = self.logged(self.loading, "find", self.fakes / "librocblas.so.4", "sgemm", 2)
        self.assertEqual([line[0] for line in words], ["rocblas_sgemm", "hipEventRecord", "rocblas_sgemm", "hipEventRecord"])
        self.assertEqual([line[2] for line in words if line[0] == "hipEventRecord"], ["510", "510"])
        self.assertEqual(self.rows()[0]["least_us"], 125)

    def test_no_events_where_they_would_disturb(self):
        """A stream that is recorded into a graph, an error that the program has not read, and no wish for times."""
        rocblas = (self.loading, "find", self.fakes / "librocblas.so.4", "sgemm", 2)
        for words, env in (((self.linked, "often", 40), {"FAKE_IN_GRAPH": "1"}), (rocblas, {"FAKE_IN_GRAPH": "1"}),
                           (rocblas, {"FAKE_LAST_ERROR": "3"}), ((self.linked, "often", 40), {"GRETA_CAPTURE_TIMES": "0"})):
            with self.subTest(env):
                self.assertEqual({line[0] for line in self.logged(*words, **env)}, {"rocblas_sgemm" if words is rocblas else "cublasGemmEx"})
                self.assertNotIn("timed", self.rows()[0])

    def test_what_the_device_has_not_reached_is_not_waited_for(self):
        for env in ({"FAKE_NOT_READY": "1"}, {"FAKE_EVENT_ERROR": "700"}, {"FAKE_RESET": "1"}):
            with self.subTest(env):
                self.logged(self.linked, "often", 40, **env)
                self.assertEqual(self.counts(), {64: 40})
                self.assertNotIn("timed", self.rows()[0])

    def test_times_without_further_calls_reach_the_file(self):
        result = self.run_program(self.linked, "often", 2, "quick_exit")
        self.assertEqual((result.returncode, self.rows()[0]["timed"]), (6, 1))

    def test_events_are_not_read_where_a_signal_handler_may_be(self):
        result = self.run_program(self.linked, "often", 2, "_exit")
        self.assertEqual((result.returncode, self.rows()[0].get("timed")), (5, None))

    def test_children_have_no_events_of_their_parent(self):
        self.logged(self.linked, "often", 2, "fork", 1, "fork", 2, "spawn")
        self.assertEqual(sorted(row.get("timed", 0) for file in self.folder.glob("*.jsonl") for row in self.rows(file)), [0, 0, 0, 1])


class Processes(Programs):
    def test_threads_lose_no_call(self):
        self.run_program(self.linked, "threads", 20000)
        self.assertEqual(self.counts(), {64 + i: 8 * 5000 for i in range(4)})

    def test_children_have_files_of_their_own(self):
        """fork, _exit after fork, and a program that is started: none counts what its parent did."""
        result = self.run_program(self.linked, "gemm", 1, "fork", 1, "fork", 2, "spawn")
        self.assertEqual(result.stdout, "0\n0\n", result.stderr)
        found = sorted((tuple(self.counts(file).items()) for file in self.folder.glob("*.jsonl")))
        self.assertEqual(found, [((1, 1),), ((1001, 1),), ((1002, 1),), ((2000, 1),)])

    def test_a_program_that_replaces_itself(self):
        for word in ("exec", "execl", "execlp", "execle"):
            with self.subTest(word):
                result = self.run_program(self.linked, "gemm", 1, word)
                self.assertEqual((result.returncode, result.stdout.split()[-1:]), (0, ["0"]), result.stderr)
                files = list(self.folder.glob("*.jsonl"))
                self.assertEqual(sorted(tuple(self.counts(file)) for file in files), [(1,), (3000,)])
                for file in files:
                    file.unlink()

    def test_ways_to_end(self):
        for word, code in (("_exit", 5), ("quick_exit", 6), ("", 0)):
            with self.subTest(word):
                self.file.unlink(missing_ok=True)
                result = self.run_program(self.linked, "gemm", 3, word)
                self.assertEqual(result.returncode, code)
                self.assertEqual(self.counts(), {3: 1})

    def test_crashes_keep_what_was_written_before(self):
        for word, code in (("abort", -signal.SIGABRT), ("kill", -signal.SIGKILL)):
            with self.subTest(word):
                self.file.unlink(missing_ok=True)
                result = self.run_program(self.linked, "gemm", 3, "await", self.file, "gemm", 4, word, GRETA_CAPTURE_INTERVAL="0.1")
                self.assertEqual(result.returncode, code)
                self.assertIn(3, self.counts())

    def test_readers_never_see_half_a_file(self):
        process = subprocess.Popen([self.linked, "threads", str(10**12)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                   env=os.environ | {"LD_PRELOAD": LIBRARY, "GRETA_CAPTURE": str(self.file),
                                                     "GRETA_CAPTURE_INTERVAL": "0.01"})
        seen, end = set(), time.time() + HANGS_S
        while process.poll() is None and time.time() < end and len(seen) < 5:
            if self.file.exists():
                seen.add(sum(self.counts().values()))
        process.kill()
        process.wait()
        self.assertEqual(len(seen), 5)


class Files(Programs):
    def test_a_last_line_says_where_the_calls_are(self):
        self.assertEqual(self.run_program(self.linked, "gemm", 1, "gemm", 1, "gemm", 2).stderr,
                         f"greta-capture: {self.file}: 3 calls of 2 different GEMMs\n")
        self.file.unlink()
        self.assertEqual(self.run_program(self.linked, "gemm", 1, GRETA_CAPTURE_QUIET="1").stderr, "")
        self.assertTrue(self.file.exists())

    def test_programs_without_gemms_write_nothing(self):
        result = self.run_program(self.linked, "probe")
        self.assertEqual((result.stderr, list(self.folder.iterdir())), ("", []))

    def test_nothing_is_overwritten(self):
        self.file.write_text("mine")
        self.run_program(self.linked, "gemm", 1)
        self.assertEqual(self.file.read_text(), "mine")
        other, = set(self.folder.glob("gemms.*.jsonl"))
        self.assertEqual(self.counts(other), {1: 1})

    def test_names(self):
        result = self.run_program(self.linked, "chdir", "gemm", 1, file="%p-here.json")  # of the folder at the start
        number, = (file.name.split("-")[0] for file in self.folder.iterdir())
        self.assertTrue(number.isdigit(), result.stderr)
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        self.run_program(self.linked, "gemm", 1, file=self.folder)
        self.assertRegex([file.name for file in self.folder.iterdir()][0], r"^gemms\.\d+\.jsonl$")

    def test_what_can_t_be_written_is_one_line_and_the_program_goes_on(self):
        for file, why in ((self.folder / "none/x.jsonl", "No such file or directory"), ("/proc/x.jsonl", ""),
                          (self.folder / ("x" * 300), "File name too long"), ("y" * 5000, "File name too long"),
                          ("/dev/full/x", "Not a directory")):
            with self.subTest(file):
                result = self.run_program(self.linked, "gemm", 1, "sleep", 150, "gemm", 2, file=file, GRETA_CAPTURE_INTERVAL="0.05")
                self.assertEqual((result.returncode, result.stdout), (0, "0\n0\n"))
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
                self.assertRegex(result.stderr, f"^greta-capture: .*{why}; GEMMs are not recorded")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_bad_interval_is_one_line(self):
        for text in ("fast", "0", "-1", "1e99", "nan"):
            self.file.unlink(missing_ok=True)
            result = self.run_program(self.linked, "gemm", 1, GRETA_CAPTURE_INTERVAL=text, GRETA_CAPTURE_QUIET="1")
            self.assertEqual(result.stderr, "greta-capture: GRETA_CAPTURE_INTERVAL must be a number of seconds above 0; it is 10\n")
            self.assertEqual(self.counts(), {1: 1})


class Reading(Programs):
    def test_greta_tune_reads_every_row_that_it_records(self):
        """greta-tune capture runs the program, and the reader finds no row damaged."""
        words = ["capture", "--output", self.file, self.linked, "gemm", 64, "matmul", "load", self.fakes / "calls.so"]
        result = self.run_program(TUNE, *words, captured=False)
        self.assertEqual((result.returncode, result.stdout.split()[:2]), (0, ["0", "0"]), result.stderr)
        self.assertIn(f"greta-capture: {self.file}: ", result.stderr)
        made = self.run_program(TUNE, "preset", "--from", self.file, "--output", self.folder / "p.json", captured=False)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(len(made.stderr.splitlines()), len(self.rows()) - 2, made.stderr)  # those of calls.so have odd operations
        self.assertEqual(json.loads((self.folder / "p.json").read_text())["problems"], [
            {"op": "gemm", "dtype": "bf16", "layout": "nt", "m": 4, "n": 64, "k": 8},
            {"op": "gemm", "dtype": "bf16", "layout": "nt", "epilogue": "bias,gelu", "m": 16, "n": 4096, "k": 1024}])

    def test_mistakes_are_one_line(self):
        self.file.write_text("")
        for words, code, message in ((("--output", self.file, "ls"), 2, "exists"), ((), 2, "needs a program to run"),
                                     (("--output", self.folder / "none/x", "ls"), 2, "there is no folder"),
                                     (("--output", self.folder, "/no/program"), 2, "/no/program: No such file"),
                                     (("--interval", "0", "ls"), 2, "--interval")):
            result = self.run_program(TUNE, "capture", *words, captured=False)
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
            self.assertIn(message, result.stderr)

    def test_other_preloaded_libraries_stay(self):
        result = self.run_program(TUNE, "capture", "--output", self.file, "env", captured=False, LD_PRELOAD="libm.so.6")
        self.assertRegex(result.stdout, "(?m)^LD_PRELOAD=/.*/libgreta-capture.so:libm.so.6$")


class Overhead(Programs):
    def test_is_printed_and_every_call_counted(self):
        """The time is not compared with anything: machines differ, and noise may exceed it. docs/capture.md has figures."""
        calls = 200000
        for what in ("cublasGemmEx", "cublasLtMatmul"):
            self.file.unlink(missing_ok=True)
            with_it, without = (min(map(float, self.run_program(self.linked, "measure", what, calls, captured=captured)
                                        .stdout.split())) for captured in (True, False))
            print(f"{what}: {with_it - without:.0f} ns a call")
            self.assertGreaterEqual(sum(self.counts().values()), calls)


if __name__ == "__main__":
    unittest.main()
