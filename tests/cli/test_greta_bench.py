"""greta-bench as a user runs it, on presets that take seconds."""
import csv
import json
import signal
import sqlite3
import subprocess
import unittest

from cli_case import BENCH, SOURCE, Case, patient

GEMM = {"op": "gemm", "m": 32, "n": 32, "k": 32}


class BenchCase(Case):
    known_devices = "auto"

    def preset(self, name="tiny", **content):
        file = self.folder / f"{name}.json"
        file.write_text(json.dumps(content))
        return file

    def bench_words(self, arguments, lock):
        words = [BENCH, *map(str, arguments)]
        if not arguments or str(arguments[0]).startswith("-"):
            words += ["--db", str(self.db)] + ([] if lock else ["--no-lock"])
        return words

    def bench(self, *arguments, timeout=120, lock=False):
        return subprocess.run(self.bench_words(arguments, lock), env=self.env, text=True,
                              capture_output=True, timeout=patient(timeout), stdin=subprocess.DEVNULL,
                              cwd=self.folder)

    def bench_run(self, *words):
        return subprocess.run([BENCH, *map(str, words)], env=self.env, text=True,
                              capture_output=True, timeout=patient(60), cwd=self.folder)

    def rows(self, file):
        return list(csv.DictReader(file.read_text().splitlines()))


class BenchRun(BenchCase):
    def test_figures_of_every_kind_in_table_and_csv(self):
        preset = self.preset(iterations=2, batch=3, platform=["empty_launch", "upload"],
                             runtime=["allocate", "dispatch", "event_pair"],
                             problems=[GEMM, dict(GEMM, dtype="f16", layout="nt")])
        file = self.folder / "out.csv"
        result = self.bench("--preset", preset, "--repeat", 2, "--export", file, "--seed", 1)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("2 of 2 runs clean", result.stderr)
        self.assertIn("2 of 2 problems not tuned", result.stderr)
        rows = self.rows(file)
        self.assertEqual([row["op"] for row in rows],
                         ["empty_launch", *3 * ["upload"], *2 * ["allocate"], "dispatch",
                          "event_pair", "gemm", "gemm"])
        for row in rows:
            with self.subTest(op=row["op"], problem=row["problem"]):
                blocks = [block.split() for block in row["samples_us"].split("|")]
                self.assertEqual([len(block) for block in blocks], 4 * [3])
                self.assertEqual(row["samples"], "12")
                self.assertEqual(row["status"], "ok")
                self.assertIn(f"/{row['op']}", result.stdout)
        gemm = rows[-1]
        self.assertEqual((gemm["dtype"], gemm["problem"], gemm["attributes"], gemm["origin"]),
                         ("f16", "m=32 n=32 k=32", "layout=nt", "default"))
        self.assertLessEqual(float(gemm["error"]), float(gemm["bound"]))
        self.assertGreater(float(gemm["roofline"]), 0)
        self.assertGreater(float(gemm["tflops"]), 0)
        self.assertEqual(gemm["cache"], "cold")

    def test_winners_defaults_and_both(self):
        tuned = self.run_tune("gemm", "--m", 32, "--n", 32, "--k", 32, "--budget", 6, "--db", self.db)
        self.assertEqual(tuned.returncode, 0, tuned.stderr)
        preset = self.preset(iterations=4, batch=3, problems=[GEMM])
        for options, origins in (([], ["winner"]), (["--untuned"], ["default"]),
                                 (["--both"], ["winner", "default"])):
            with self.subTest(options=options):
                file = self.folder / f"{len(origins)}{''.join(options)}.csv"
                result = self.bench("--preset", preset, "--export", file, *options)
                self.assertEqual(result.returncode, 0, result.stderr)
                rows = self.rows(file)
                self.assertEqual([row["origin"] for row in rows], origins)
                self.assertEqual({row["cache"] for row in rows}, {"cold"})
        self.assertGreater(float(rows[0]["speedup"]), 0)
        warm = self.bench("--preset", preset, "--export", self.folder / "warm.csv", "--warm")
        self.assertIn("not tuned", warm.stderr)  # cold winners are no warm ones
        self.assertEqual(self.rows(self.folder / "warm.csv")[0]["cache"], "warm")

    def test_default_place_of_the_figures(self):
        result = self.bench("--preset", self.preset(iterations=1, batch=1, runtime=["allocate"]),
                            "--export")
        self.assertEqual(result.returncode, 0, result.stderr)
        files = list((self.folder / "results").glob("*/20*_tiny.csv"))
        self.assertEqual(len(files), 1, result.stderr)
        self.assertEqual(len(self.rows(files[0])), 2)

    def test_google_benchmarks_own_output(self):
        preset = self.preset(iterations=2, batch=2, runtime=["allocate"], problems=[GEMM])
        out = self.folder / "out.json"
        result = self.bench("--preset", preset, f"--benchmark_out={out}", "--benchmark_format=json",
                            "--benchmark_filter=gemm")
        self.assertEqual(result.returncode, 0, result.stderr)
        for text in (result.stdout, out.read_text()):
            report = json.loads(text)
            self.assertEqual(report["context"]["executable"], "greta-bench")
            runs = [run for run in report["benchmarks"] if run["run_type"] == "iteration"]
            self.assertEqual(len(runs), 2)
            self.assertEqual(runs[0]["iterations"], 2)
            self.assertEqual(runs[0]["time_unit"], "us")
            self.assertGreater(runs[0]["real_time"], 0)
            self.assertTrue(runs[0]["name"].startswith("kernel/gemm/f32/m=32,n=32,k=32/default"))
            self.assertIn("GBps", runs[0])
        listed = self.bench("--preset", preset, "--benchmark_list_tests=true")
        self.assertEqual(len(listed.stdout.splitlines()), 3, listed.stdout)

    def test_trace_has_host_and_device_on_one_clock(self):
        preset = self.preset(iterations=2, batch=3, problems=[GEMM])
        file = self.folder / "trace.json"
        result = self.bench("--preset", preset, "--trace", file, "--device", "vulkan:0")
        self.assertEqual(result.returncode, 0, result.stderr)
        trace = json.loads(file.read_text())
        spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
        device = [span for span in spans if span["pid"] == 1]
        self.assertGreaterEqual(len(device), 6)
        self.assertEqual({span["name"] for span in device}, {"gemm dtype=f32 out=f32 m=32 n=32 k=32"})
        slack = trace["otherData"]["alignment_error_us"]["vulkan:0"] + 200
        first = min(span["ts"] for span in spans if span["name"] == "device.wait")
        last = max(span["ts"] + span["dur"] for span in spans if span["name"] == "device.wait")
        for span in device:
            self.assertGreater(span["ts"], first - slack)
            self.assertLess(span["ts"] + span["dur"], last + slack)
        self.assertIn("device.compile", {span["name"] for span in spans})
        self.refused(self.bench("--preset", preset, "--trace", "/nonexistent/t.json"), 2, "--trace")

    def test_compute_only_and_filter(self):
        preset = self.preset(iterations=1, batch=1, runtime=["allocate"], platform=["empty_launch"],
                             problems=[GEMM])
        result = self.bench("--preset", preset, "--compute-only")
        self.assertNotIn("allocate", result.stdout)
        self.assertIn("kernel/gemm", result.stdout)
        result = self.bench("--preset", preset, "--filter", "runtime/.*=256")
        self.assertEqual(len(result.stdout.splitlines()), 2, result.stdout)

    def test_checks_without_times(self):
        preset = self.preset(measure=False, random=2, problems=[GEMM, dict(GEMM, dtype="f16")])
        file = self.folder / "out.csv"
        result = self.bench("--preset", preset, "--filter", "gemm|argmax", "--export", file)
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        rows = self.rows(file)
        self.assertEqual([(row["op"], row["origin"], row["samples"], row["us"]) for row in rows],
                         [("gemm", "default", "1", ""), ("gemm", "default", "1", ""),
                          ("gemm", "random", "2", ""), ("argmax", "random", "2", "")])
        self.assertLessEqual(float(rows[1]["error"]), float(rows[1]["bound"]))

    def test_interrupt_keeps_what_was_measured(self):
        preset = self.preset(iterations=1000, batch=20, runtime=["dispatch"])
        file = self.folder / "out.csv"
        process = subprocess.Popen(self.bench_words(["--preset", preset, "--export", file], False),
                                   env=self.env, cwd=self.folder, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for line in process.stderr:  # the first tenth is done
            if "%" in line:
                break
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=patient(60))
        self.assertEqual(process.returncode, 1, errors)
        rows = self.rows(file)
        self.assertEqual(rows[0]["status"], "unavailable")
        self.assertGreater(int(rows[0]["samples"]), 1000)


class BenchBadInput(BenchCase):
    def test_usage(self):
        preset = self.preset(problems=[GEMM])
        for words, expected in (
                (["--preset", "nonesuch"], "nonesuch"),
                (["--preset", self.preset("bad", problems=[dict(GEMM, z=1)])], "problems[0].z"),
                (["--preset", preset, "--both", "--untuned"], "--untuned"),
                (["--preset", preset, "--repeat", "0"], "--repeat"),
                (["--preset", preset, "--timeout", "soon"], "--timeout"),
                (["--preset", preset, "--warm", "--flush", "64"], "--flush"),
                (["--preset", preset, "--device", "nonesuch"], "nonesuch"),
                (["--preset", preset, "--filter", "nonesuch"], "--filter"),
                (["--preset", preset, "--export", self.folder], "--export"),
                (["--preset", preset, "--benchmark_nonsense=1"], "--benchmark_nonsense"),
                (["--preset", preset, "--benchmark_format=poem"], "--benchmark_"),
                (["--nonsense"], "--nonsense"), (["dance"], "dance")):
            with self.subTest(words=words):
                result = self.bench(*words)
                lines = [line for line in result.stderr.splitlines()
                         if not any(note in line for note in ("not tuned", "Failed to match"))]
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertEqual(len(lines), 1, result.stderr)
                self.assertIn(expected, lines[0])

    def test_help_and_version(self):
        for words in (["--help"], ["compare", "--help"], ["--version"]):
            result = self.bench(*words)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn("greta-bench" if words == ["--version"] else "Example",
                          result.stdout)


class BenchCompare(BenchCase):
    """On files made here: what the statistics do is tested with the library."""

    def baseline(self, name, factor=1.0, device="card"):
        header = subprocess.run([BENCH, "--version"], capture_output=True).stdout  # it runs
        self.assertTrue(header)
        file = self.folder / name
        columns = ("op,dtype,out_dtype,problem,attributes,backend,device,config,origin,status,us,low_us,"
                   "high_us,p99_us,spread_pct,tflops,gbps,roofline,error,bound,speedup,speedup_low,"
                   "speedup_high,cache,samples,driver,compiler,greta_version,date,clocks,samples_us,control_us")
        with file.open("w") as out:
            writer = csv.DictWriter(out, columns.split(","), restval="", lineterminator="\n")
            writer.writeheader()
            for n in range(8):
                us = [(100 + n + s / 100) * (factor if n == 5 else 1) for s in range(10)]
                writer.writerow({"op": "gemm", "dtype": "f32", "problem": f"m={n}", "backend": "hip",
                                 "device": device, "origin": "winner", "status": "ok",
                                 "us": us[5], "cache": "cold", "samples": 100,
                                 "samples_us": "|".join(10 * [" ".join(map(str, us))])})
        return file

    def test_a_slowdown_is_found_first_and_exits_with_4(self):
        result = self.bench("compare", self.baseline("a.csv"), self.baseline("b.csv", 1.1))
        self.assertEqual(result.returncode, 4, result.stderr + result.stdout)
        first = result.stdout.splitlines()[1]
        self.assertTrue(first.startswith("slower"), first)
        self.assertIn("m=5", first)
        self.assertIn("+10.0 %", first)
        self.assertIn("1 slower by more than 5 %", result.stdout)

    def test_no_change_is_none(self):
        base = self.baseline("a.csv")
        for other, options in ((base, []), (self.baseline("b.csv", 1.04), []),
                               (self.baseline("c.csv", 1.1), ["--threshold", "15%"])):
            result = self.bench("compare", base, other, *options)
            self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
            self.assertIn("8 the same", result.stdout)
        self.assertEqual(self.bench("compare", base, self.baseline("b.csv", 1.04), "--threshold",
                                    "2").returncode, 4)

    def test_other_devices_and_files_are_refused(self):
        base, other = self.baseline("a.csv"), self.baseline("b.csv", 1.1, "another card")
        self.refused(self.bench("compare", base, other), 2, "different devices", "--any-device")
        self.assertEqual(self.bench("compare", base, other, "--any-device").returncode, 4)
        text = self.folder / "text.csv"
        text.write_text("op,us\ngemm,1\n")
        self.refused(self.bench("compare", base, text), 2, "text.csv", "other columns")
        self.refused(self.bench("compare", base, "none.csv"), 2, "none.csv")
        self.refused(self.bench("compare", base, base, "--threshold", "-3"), 2, "--threshold")
        self.refused(self.bench("compare", base, base, "--benchmark_format=json"), 2,
                     "--benchmark_format")
        self.refused(self.bench_run("--untuned", "compare", base, base), 2, "--untuned", "compare")


class BenchDoctor(BenchCase):
    def doctor(self, *arguments):
        return self.bench("doctor", "--db", self.db, "--no-lock", *arguments)

    def test_a_healthy_device(self):
        result = self.doctor("--device", "vulkan:0")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        for check, outcome in (("fill", "passed"), ("ultrasafe", "passed"), ("default", "passed"),
                               ("f16", "passed"), ("matrix", "does not apply")):
            self.assertRegex(result.stdout, rf"(?m)^  {check} +{outcome}")
        self.assertEqual(self.query("SELECT count(*) FROM unsafe"), [(0,)])

    def test_what_does_not_end_is_recorded_and_avoided(self):
        # Compiling for this device takes longer than a second without a cache.
        self.env["XDG_CACHE_HOME"] = str(self.folder / "cache")
        tune = ("gemm", "--m", 16, "--n", 16, "--k", 16, "--device", "hip-host:0", "--budget", 1,
                "--db", self.db)
        result = self.doctor("--device", "hip-host:0", "--timeout", 1)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("FAILED, timeout", result.stdout)
        self.assertIn("left out", result.stdout)
        failed = self.query("SELECT health_check, status FROM unsafe")
        self.assertEqual([status for _, status in failed], ["timeout"])
        self.refused(self.run_tune(*tune), 3, "hip-host:0", failed[0][0], "--allow-unsafe")
        preset = self.preset(iterations=1, batch=1, problems=[GEMM])
        self.refused(self.bench("--preset", preset, "--device", "hip-host:0"), 3, "--allow-unsafe")
        self.assertEqual(self.run_tune(*tune, "--allow-unsafe").returncode, 0)

    def test_unsafe_types_are_not_used(self):
        self.assertEqual(self.doctor("--device", "vulkan:0").returncode, 0)
        self.plant("f16")
        tune = ("gemm", "--m", 16, "--n", 16, "--k", 16, "--device", "vulkan:0", "--budget", 1,
                "--db", self.db)
        result = self.run_tune(*tune)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("health check f16 failed", result.stderr)
        half = self.run_tune(*tune, "--dtype", "f16")
        self.assertEqual(half.returncode, 1, half.stderr)
        self.assertEqual(self.run_tune(*tune, "--dtype", "f16", "--allow-unsafe").returncode, 0)
        # A check that passes is not held against the device any more.
        self.assertEqual(self.doctor("--device", "vulkan:0").returncode, 0)
        self.assertEqual(self.query("SELECT count(*) FROM unsafe"), [(0,)])

    def test_the_next_device_is_used_where_the_best_is_unsafe(self):
        tune = ("gemm", "--m", 16, "--n", 16, "--k", 16, "--budget", 1, "--db", self.db, "--json")
        self.plant("default")
        best = self.run_tune(*tune, "--allow-unsafe")
        self.assertEqual(json.loads(best.stdout)["device"]["id"], "vulkan:0")
        result = self.run_tune(*tune)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, "(?m)^vulkan:0: .* default failed .*; hip-host:0 is used")
        self.assertEqual(json.loads(result.stdout)["device"]["id"], "hip-host:0")
        self.refused(self.run_tune(*tune, "--device", "vulkan:0"), 3, "--allow-unsafe")

    def plant(self, check):
        """A failure as doctor would have recorded it."""
        self.run_tune("gemm", "--m", 8, "--n", 8, "--k", 8, "--device", "vulkan:0", "--budget", 1,
                      "--db", self.db)
        with sqlite3.connect(self.db) as connection:
            connection.execute(
                "INSERT INTO unsafe (device, driver, health_check, status, message, recorded_utc)"
                " SELECT id, driver, ?, 'crash', 'planted', '2026-11-20T12:00:00Z' FROM devices",
                [check])


class BenchSchema(BenchCase):
    """Needs the Python package jsonschema."""

    def test_shipped_presets_follow_it_and_mistakes_do_not(self):
        import jsonschema
        schema = json.loads(self.bench("schema").stdout)
        jsonschema.Draft202012Validator.check_schema(schema)
        check = jsonschema.Draft202012Validator(schema)
        for file in sorted((SOURCE / "presets").glob("*.json")):
            if file.name != "schema.json":
                with self.subTest(file=file.name):
                    check.validate(json.loads(file.read_text()))
        for mistake in ({"problems": [dict(GEMM, z=1)]}, {"problems": [{"op": "conv"}]},
                        {"problems": [{"op": "gemm", "m": 1, "n": 1}]}, {"problem": []},
                        {"problems": [dict(GEMM, m=0)]}, {"problems": [dict(GEMM, dtype="f64")]},
                        {"platform": ["coffee"]}, {"batch": 0}):
            with self.subTest(mistake=mistake):
                self.assertFalse(check.is_valid(mistake))


if __name__ == "__main__":
    unittest.main()
