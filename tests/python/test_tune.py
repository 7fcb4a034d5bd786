"""Protects: greta.tune() tunes in worker processes as greta-tune does, returns what it found, stores
it where runtimes find it, passes events on, and stops when it is asked to."""

import ctypes
import io
import os
import pathlib
import shutil
import signal
import sys
import threading
import types
import unittest
from unittest import mock

from python_case import CACHE, TUNER, Case, greta

from greta import _abi
from sealed_database import rewrite

SMALL = {"m": 64, "n": 48, "k": 40}


class Tuned(Case):
    device = "hip-host:0"
    known = "hip-host:0"  # the database has the peaks of these devices

    def setUp(self):
        super().setUp()
        if self.known:
            self.know_ceilings(self.known)

    def options(self, **others):
        """Returns the options of a short run. Times don't matter, so nothing waits for the card."""
        return {"device": self.device, "db": self.folder / "tuned.db",
                "cache": CACHE, "flush_mib": 1, "lock": False, "shipped": False,
                "seed": 1, "budget": 3, **others}

    def tune(self, operation="gemm", **others):
        fields = SMALL if operation == "gemm" else {}
        return greta.tune(operation, **{**self.options(), **fields, **others})


class Results(Tuned):
    def test_a_result_is_complete_and_runtimes_find_it(self):
        events, progress = [], io.StringIO()
        show = greta.Progress(progress)
        result = self.tune(observer=lambda event: (events.append(event), show(event)))
        self.assertEqual(result.problem, "gemm dtype=f32 out=f32 m=64 n=48 k=40")
        self.assertEqual((result.device, result.outcome, result.interrupted),
                         (self.device, "done", False))
        self.assertEqual([trial["number"] for trial in result.trials], [1, 2, 3])
        low, high = result.time_interval_us
        self.assertTrue(0 < low <= result.time_us <= high)
        low, high = result.speedup_interval
        self.assertTrue(0 < low <= result.speedup <= high)
        kinds = [event["event"] for event in events]
        self.assertEqual((kinds[0], kinds[-1]), ("run", "end"))
        self.assertEqual(kinds.count("trial"), 3)
        self.assertIn("3 trials, best", progress.getvalue())
        self.assertTrue(progress.getvalue().endswith("\n"))
        self.check_texts(result)
        with greta.Runtime(self.device, db=result.database, shipped=False) as runtime:
            pipeline = runtime.pipeline()
            pipeline.gemm(runtime.empty((64, 40)), runtime.empty((40, 48)), runtime.empty((64, 48)))
            self.assertIn(f"{result.config} | exact", pipeline.finish().explain())

    def check_texts(self, result):
        text = repr(result)
        self.assertTrue(text.startswith(result.problem + "\n  device     hip-host:0 "))
        for part in (result.config, "3 of 3 passed", result.database, "95 % interval"):
            self.assertIn(part, text)
        self.assertIn("<table><caption>gemm dtype=f32", result._repr_html_())
        rows = result.rows()
        self.assertEqual(len(rows), 3)
        for row, trial in zip(rows, result.trials):
            config = [f"{name}={row[name]}" for name in list(row)[list(row).index("variant") + 1:]]
            self.assertEqual([row["variant"], *config], trial["config"].split())
        self.assertIsInstance(rows[0]["BM"], int)  # the default is a tile

    def test_an_equal_run_keeps_what_an_earlier_one_proved(self):
        first = self.tune(budget=2)
        again = self.tune(budget=2, seed=2)
        self.assertEqual(first.database, again.database)
        self.assertTrue(pathlib.Path(first.database).is_file())

    def test_devices_are_compared(self):
        both = self.tune(device="hip-host:0,vulkan:0", budget=1)
        self.assertEqual([one.device for one in both.results], ["hip-host:0", "vulkan:0"])
        self.assertEqual([len(one.trials) for one in both.results], [1, 1])
        self.assertIn(both.fastest, both.results)
        self.assertIn("fastest: ", repr(both))

    def test_kernels_run_in_this_process_if_asked(self):
        result = self.tune("softmax", rows=4, cols=32, in_process=True, budget=1)
        self.assertEqual(result.report["trials"]["ok"], 1)

    def test_pandas(self):
        result = self.tune("add", rows=8, cols=8, budget=1)
        self.assertIsNone(sys.modules.get("pandas"))
        self.addCleanup(sys.modules.pop, "pandas")
        sys.modules["pandas"] = None  # not installed
        self.assert_refused(greta.UnavailableError, "pandas is not installed", result.to_pandas)
        sys.modules["pandas"] = types.SimpleNamespace(DataFrame=lambda rows: ("frame", rows))
        self.assertEqual(result.to_pandas(), ("frame", result.rows()))


class VendorResults(Tuned):
    def test_a_runtime_that_allows_it_runs_what_the_vendor_s_library_computes_faster(self):
        # hip-host's library takes a few us, its kernels start much later.
        numpy = greta.tensor.numpy_module()
        key = "gemm m=9 n=8 k=16"
        tuned = self.tune(m=9, n=8, k=16, allow_vendor=True)
        vendor = tuned.report["vendor"]
        self.assertTrue(vendor["stored"], vendor)
        self.assertTrue(0 < vendor["low"] <= vendor["ratio"] <= vendor["high"] < 1, vendor)
        self.assertFalse(tuned.config.startswith("vendor "))
        a = numpy.random.default_rng(1).standard_normal((9, 16)).astype("float32")
        b = numpy.random.default_rng(2).standard_normal((16, 8)).astype("float32")
        for allowed in (False, True):
            with greta.Runtime(self.device, db=tuned.database, shipped=False,
                               allow_vendor=allowed) as runtime:
                found = runtime.lookup(key)
                self.assertEqual(found["origin"], "exact")
                self.assertEqual(found["config"].startswith("vendor "), allowed, found)
                # Of another shape, a rank is another algorithm.
                self.assertFalse(runtime.lookup("gemm m=9 n=8 k=17")["config"].startswith("vendor "))
                pipeline = runtime.pipeline()
                c = runtime.empty((9, 8))
                pipeline.gemm(runtime.tensor(a), runtime.tensor(b), c)
                graph = pipeline.finish()
                graph.replay()
                self.assertLess(abs(c.numpy() - a @ b).max(), 1e-5)
                self.assertEqual("vendor RANK=" in graph.explain(), allowed)
        # A later tune without it leaves both, and finds its own winner again.
        again = self.tune(m=9, n=8, k=16, seed=2, resume=False)
        self.assertIsNone(again.report["vendor"])
        with greta.Runtime(self.device, db=tuned.database, shipped=False,
                           allow_vendor=True) as runtime:
            self.assertTrue(runtime.lookup(key)["config"].startswith("vendor "))


    def test_scaled_products(self):
        """Of e4m3 by its bytes, whose products here are exact."""
        numpy = greta.tensor.numpy_module()
        fields = {"m": 2, "n": 8, "k": 16, "scales": "row"}
        tuned = self.tune("scaled_gemm", **fields, budget=1, allow_vendor=True)
        vendor = tuned.report["vendor"]
        self.assertTrue(vendor["stored"], vendor)
        self.assertRegex(vendor["algorithm"], r"^algorithm [01], tile 8x8, stages 16x1, \d slice")
        key = "scaled_gemm m=2 n=8 k=16 scales=row"
        random = numpy.random.default_rng(1)
        codes, numbers = numpy.array([0x38, 0x40, 0xb8, 0x01], "uint8"), numpy.array([1, 2, -1, 2.0**-9])
        of_a, of_b = random.integers(0, 4, (2, 16)), random.integers(0, 4, (8, 16))
        scales = [(2.0**random.integers(-2, 3, (rows, 1))).astype("float32") for rows in (2, 8)]
        expected = (numbers[of_a] * scales[0]) @ (numbers[of_b] * scales[1]).T
        # A runtime without the library, because it is not allowed or not the measured version, runs its own kernel.
        later = self.folder / "later.db"
        shutil.copy(tuned.database, later)
        rewrite(later, "UPDATE circumstances SET compiler = 'hip-host 99.0.0' WHERE compiler LIKE 'hip-host %'")
        for database, allowed, runs in ((tuned.database, True, True), (tuned.database, False, False),
                                        (later, True, False)):
            with self.subTest(database=database, allowed=allowed), \
                    greta.Runtime(self.device, db=database, shipped=False, allow_vendor=allowed) as runtime:
                found = runtime.lookup(key)
                self.assertEqual(found["config"].startswith("vendor RANK="), runs, found)
                pipeline = runtime.pipeline()
                c = runtime.empty((2, 8), "bf16")
                arrays = [runtime.tensor(one) for one in (codes[of_a], codes[of_b], *scales)]
                pipeline.scaled_gemm(*arrays, c, scales="row")
                graph = pipeline.finish()
                graph.replay()
                self.assertEqual("vendor RANK=" in graph.explain(), runs)
                self.assertLessEqual((abs(c.numpy() - expected) - 2.0**-8 * abs(expected)).max(), 0)


class TunedOnVulkan(Tuned):
    device = known = "vulkan:0"

    def test_a_problem_with_attributes(self):
        result = self.tune("gemm", layout="nt", epilogue=["bias", "silu"], dtype="f16",
                           out_dtype="f32", budget=1)
        self.assertEqual(result.problem, "gemm dtype=f16 out=f32 layout=nt epilogue=bias,silu m=64 "
                                         "n=48 k=40")
        self.assertIsNotNone(result.winner)


class Stops(Tuned):
    def test_an_observer_that_raises_stops_the_run(self):
        def fail(event):
            if event["event"] == "trial":
                raise LookupError("enough")

        with self.assertRaisesRegex(LookupError, "enough"):
            self.tune(budget="10m", observer=fail)

    def test_ctrl_c_keeps_the_trials_and_an_equal_run_goes_on(self):
        def interrupt(event):
            if event["event"] == "trial" and event["number"] == 2:
                os.kill(os.getpid(), signal.SIGINT)

        with self.assertRaises(KeyboardInterrupt):
            self.tune(budget=8, observer=interrupt)
        events = []
        result = self.tune(budget=8, observer=events.append)
        self.assertIn("resume", [event["event"] for event in events])
        self.assertGreaterEqual(result.report["resumed"], 2)
        self.assertEqual(result.outcome, "done")

    def test_stop_from_another_thread_returns_what_there_is(self):
        begun = threading.Event()
        with greta.Tuner("gemm", **SMALL, **self.options(budget="10m", observer=lambda event:
                         event["event"] == "trial" and begun.set())) as tuner:
            stopper = threading.Thread(target=lambda: (begun.wait(), tuner.stop()))
            stopper.start()
            result = tuner.run()
            stopper.join()
        self.assertTrue(result.interrupted)
        self.assertGreaterEqual(len(result.trials), 1)
        self.assertIn("interrupted", repr(result))

    def test_a_stop_before_the_run_ends_it_at_once(self):
        with greta.Tuner("gemm", **SMALL, **self.options(budget="10m")) as tuner:
            tuner.stop()
            try:
                self.assertTrue(tuner.run().interrupted)
            except greta.InterruptedRunError as error:
                self.assertTrue(str(error))


class Refusals(Tuned):
    known = None

    def test_bad_requests_are_one_line_and_write_nothing(self):
        refused = greta.InvalidArgumentError
        for error, message, operation, others in (
                (refused, "no operation 'gem'; there are gemm", "gem", SMALL),
                (refused, "no operation ''", "", {}),
                (refused, "k is missing", "gemm", {"m": 1, "n": 1}),
                (refused, "m 0: must be", "gemm", {**SMALL, "m": 0}),
                (refused, "m x", "gemm", {**SMALL, "m": "x"}),
                (refused, "one word or number", "gemm", {**SMALL, "m": "4 n=5"}),
                (refused, "one word or number", "gemm", {**SMALL, "layout": ""}),
                (refused, "has no such field", "gemm", {**SMALL, "depth": 4}),
                (refused, "must be NAME=VALUE", "gemm m", SMALL),
                (refused, "dtype f8", "gemm", {**SMALL, "dtype": "f8"}),
                (refused, "budget", "gemm", {**SMALL, "budget": "soon"}),
                (refused, "strategy luck", "gemm", {**SMALL, "strategy": "luck"}),
                (refused, "objective is 'fun'", "gemm", {**SMALL, "objective": "fun"}),
                (refused, "flush_mib is 0", "gemm", {**SMALL, "flush_mib": 0}),
                (refused, "no usable device", "gemm", {**SMALL, "device": "no such card"})):
            with self.subTest(message):
                self.assert_refused(error, message, greta.tune, operation,
                                    **{**self.options(), **others})
        self.assertFalse((self.folder / "tuned.db").exists())

    def test_a_database_that_can_t_be_made(self):
        (self.folder / "tuned.db").write_text("this is text")
        self.assert_refused(greta.InvalidArgumentError, "tuned.db", self.tune)

    def test_a_worker_that_is_none(self):
        with self.assertRaises(greta.GretaError) as caught:
            self.tune(worker=["/nonexistent/greta-tune", "worker"])
        self.assertEqual(len(str(caught.exception).splitlines()), 1)

    def test_null_and_unknown_sizes_are_refused_by_the_interface(self):
        library, handle = greta._library.tuner_library(), ctypes.c_void_p()
        call, text = library.call, ctypes.c_char_p()
        options = library.greta_tune_defaults()
        for arguments in ((None, b"gemm", handle), (options, None, handle), (options, b"gemm", None)):
            self.assert_refused(greta.InvalidArgumentError, "is null", call, "greta_tune_open",
                                *arguments)
        self.assert_refused(greta.InvalidArgumentError, "options->database is null", call,
                            "greta_tune_open", options, b"gemm m=1 n=1 k=1", handle)
        options.size = 5
        self.assert_refused(greta.InvalidArgumentError, "size is 5", call, "greta_tune_open",
                            options, b"gemm", handle)
        self.assert_refused(greta.InvalidArgumentError, "tuner is null", call, "greta_tune_run",
                            None, text)
        self.assert_refused(greta.InvalidArgumentError, "tuner is null", call, "greta_tune_stop", None)
        library.greta_tune_close(None)
        self.assertIsNone(handle.value)
        self.assertEqual(library.greta_tune_abi_version(), _abi.ABI_VERSION)

    def test_the_runtime_s_library_has_no_search_code(self):
        listing = pathlib.Path(TUNER).read_bytes()
        own = pathlib.Path(os.environ["GRETA_LIBRARY"]).read_bytes()
        self.assertIn(b"greta-tune lines 1", listing)
        self.assertNotIn(b"greta-tune lines 1", own)

    def test_defaults_are_those_of_the_command_line_tools(self):
        for home, data, cache in (("/home/one", "", ""), ("/home/one", "relative", "relative"),
                                  ("/home/one", "/data", "/fast")):
            with self.subTest(data=data), mock.patch.dict(
                    os.environ, HOME=home, XDG_DATA_HOME=data, XDG_CACHE_HOME=cache):
                absolute = data.startswith("/")
                self.assertEqual(str(greta.default_database()),
                                 (data if absolute else home + "/.local/share") + "/greta/tuned.db")
                self.assertEqual(str(greta.default_cache()),
                                 (cache if absolute else home + "/.cache") + "/greta")
        with mock.patch.dict(os.environ):
            os.environ.pop("HOME")
            os.environ.pop("XDG_DATA_HOME", None)
            self.assertEqual(greta.default_database().parts[-4:],
                             (".local", "share", "greta", "tuned.db"))


if __name__ == "__main__":
    unittest.main()
