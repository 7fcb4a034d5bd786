"""Protects: greta-bench as a user runs it, with presets that take seconds."""
import contextlib
import json
import pathlib
import signal
import sqlite3
import subprocess
import time
import unittest

from bench_case import GEMM, BenchCase
from cli_case import BENCH, SOURCE, limit, whole
from sealed_database import fingerprint, rewrite


def block_processes(process):
    """Returns the processes that take blocks for greta-bench until it ends."""
    seen = set()
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None:
        with contextlib.suppress(OSError):  # one of them has ended
            for child in children.read_text().split():
                if b"blocks" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0"):
                    seen.add(child)
        time.sleep(0.002)
    return seen


class BenchRun(BenchCase):
    def test_figures_of_every_kind_in_table_and_csv(self):
        preset = self.preset(iterations=2, batch=3, platform=["empty_launch", "upload"],
                             runtime=["allocate", "dispatch", "event_pair"],
                             problems=[GEMM, dict(GEMM, dtype="f16", layout="nt")])
        file = self.folder / "out.csv"
        result = self.bench("--preset", preset, "--repeat", 2, "--export", file, "--seed", 1,
                            "--settle", 0)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("2 of 2 runs passed", result.stderr)
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
                self.assertEqual(row["processes"], "" if row["op"] == "gemm" else "4")
                self.assertEqual(row["status"], "ok")
                self.assertEqual(row["preset"], "tiny")
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
        file = self.folder / "two.csv"  # the default that follows the winner is of another problem
        two = self.preset("two", iterations=4, batch=3, problems=[GEMM, dict(GEMM, n=2048)])
        result = self.bench("--preset", two, "--export", file)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([(row["origin"], row["speedup"]) for row in self.rows(file)], [("winner", ""), ("default", "")])
        warm = self.bench("--preset", preset, "--export", self.folder / "warm.csv", "--warm")
        self.assertIn("not tuned", warm.stderr)  # cold winners don't count for warm runs
        self.assertEqual(self.rows(self.folder / "warm.csv")[0]["cache"], "warm")

    @whole
    def test_shapes_and_cards_that_are_not_tuned_run_what_a_runtime_finds(self):
        """Results of another card of this architecture are used, from the user's or a shipped
        file."""
        tuned = self.folder / "tuned.db"
        result = self.run_tune("gemm", "--m", 32, "--n", 32, "--k", 32, "--budget", 6, "--device",
                               "vulkan:0", "--db", tuned)
        self.assertEqual(result.returncode, 0, result.stderr)
        with sqlite3.connect(tuned) as connection:
            known, info = connection.execute("SELECT fingerprint, info FROM devices").fetchone()
            device = json.loads(info)
            self.assertEqual(known, fingerprint(device))
            winner, = connection.execute("SELECT config FROM winners").fetchone()
        shipped = self.folder / "shipped.db"
        self.assertEqual(self.run_db("export", "--ship", "--out", str(shipped), db=tuned).returncode, 0)
        elsewhere = self.folder / "elsewhere.db"
        elsewhere.write_bytes(tuned.read_bytes())
        device["uuid"] = "another card"
        rewrite(elsewhere, "UPDATE devices SET fingerprint = ?, info = ?",
                [fingerprint(device), json.dumps(device)])
        rewrite(elsewhere, "DELETE FROM ceilings")
        known = self.know_ceilings(file=self.folder / "known.db")
        self.assertEqual(self.run_db("merge", known, db=elsewhere).returncode, 0)
        near = self.preset("near", iterations=4, batch=2, problems=[dict(GEMM, n=48)])
        same = self.preset("same", iterations=4, batch=2, problems=[GEMM])
        far = self.preset("far", iterations=4, batch=2, problems=[dict(GEMM, n=2048)])
        self.db = self.know_ceilings(file=self.folder / "own.db")
        for preset, database, options, origins in (
                (same, tuned, ["--both"], ["winner", "default"]),
                (near, tuned, ["--both"], ["nearest shape", "default"]),
                (far, tuned, ["--both"], ["default"]),
                (same, elsewhere, ["--both"], ["same architecture", "default"]),
                (same, elsewhere, ["--untuned"], ["default"]),
                (same, self.db, ["--shipped", shipped], ["winner"]),
                (near, self.db, ["--shipped", shipped], ["nearest shape"])):
            with self.subTest(preset=preset.name, database=database.name, options=options):
                file = self.folder / "out.csv"
                file.unlink(missing_ok=True)
                self.db = database
                result = self.bench("--preset", preset, "--device", "vulkan:0", "--export", file, *options)
                self.assertEqual(result.returncode, 0, result.stderr)
                rows = self.rows(file)
                self.assertEqual([row["origin"] for row in rows], origins)
                self.assertIn(origins[0].replace(" ", "-"), result.stdout)
                if origins[0] in ("winner", "same architecture"):
                    self.assertEqual(rows[0]["config"], winner)
                if len(origins) > 1:
                    self.assertGreater(float(rows[0]["speedup"]), 0)
                told = "not tuned" in result.stderr
                self.assertEqual(told, origins[0] != "winner" and "--untuned" not in options)
        self.refused(self.bench("--preset", same, "--shipped", "none.db"), 2, "--shipped", "none.db")

    def test_default_place_of_the_figures(self):
        result = self.bench("--preset", self.preset(iterations=1, batch=1, runtime=["allocate"]),
                            "--export")
        self.assertEqual(result.returncode, 0, result.stderr)
        files = list((self.folder / "results").glob("*/20*_tiny.csv"))
        self.assertEqual(len(files), 1, result.stderr)
        self.assertEqual(len(self.rows(files[0])), 2)

    def test_what_has_not_settled_gets_more_blocks(self):
        """Two blocks never suffice for an interval. Kernels get more, up to four times as many,
        unless the limit is 0 s."""
        preset = self.preset(iterations=2, batch=50, runtime=["telemetry_off"], problems=[GEMM])
        blocks = {}
        for settle in ("0", "30"):
            file = self.folder / f"{settle}.csv"
            result = self.bench("--preset", preset, "--export", file, "--settle", settle)
            self.assertEqual(result.returncode, 0, result.stderr)
            blocks[settle] = [len(row["samples_us"].split("|")) for row in self.rows(file)]
            for row in self.rows(file):
                self.assertEqual(len(row["control_us"].split()), len(row["samples_us"].split("|")))
        self.assertEqual(blocks["0"], [2, 2])
        self.assertTrue(all(2 <= count <= 8 for count in blocks["30"]), blocks)
        self.assertEqual(blocks["30"][0], 2)  # telemetry_off is no kernel
        self.assertGreater(blocks["30"][1], 2)

    def test_kernels_in_processes_of_their_own(self):
        """Every block of a kernel comes from another process, which finds compiled kernels on disk.
        Files from one process and from several can be compared."""
        preset = self.preset(iterations=8, batch=3, problems=[GEMM, dict(GEMM, m=48)])
        for device in ("vulkan:0", "hip-host:1"):
            files = []
            for processes in ("all", "auto"):
                files.append(self.folder / f"{device}_{processes}.csv")
                words = self.bench_words(["--preset", preset, "--device", device, "--export", files[-1],
                                          "--settle", 0, "--processes", processes], False)
                process = subprocess.Popen(words, env=self.env, cwd=self.folder, text=True,
                                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                seen = block_processes(process)
                self.assertEqual(process.returncode, 0, process.stderr.read())
                process.stderr.close()
                # Most of the eight processes are seen while they run.
                self.assertTrue(len(seen) > 1 if processes == "all" else not seen, seen)
                for row in self.rows(files[-1]):
                    blocks = row["samples_us"].split("|")
                    self.assertEqual([len(block.split()) for block in blocks], 8 * [3])
                    for column in ("cpu_us", "control_us", "cpu_control_us"):
                        self.assertGreaterEqual(len(row[column].replace("|", " ").split()), 8)
                    self.assertEqual(row["processes"], "8" if processes == "all" else "")
                    self.assertLessEqual(float(row["error"]), float(row["bound"]))
            compared = self.bench("compare", *files, "--threshold", 1000)
            self.assertEqual(compared.returncode, 0, compared.stderr)
            self.assertIn("2 rows: 0 slower", compared.stdout)

    def test_a_process_takes_blocks_of_calls_and_kernels(self):
        """As for a GPU. What damages the device ends the list, and what is wrong does not."""
        how = {"cold": True, "timeout_s": 30, "flush_bytes": 1 << 20, "seed": 1, "avoid_f16": False,
               "avoid_matrix": False}
        gemm = {"problem": "gemm dtype=f32 out=f32 m=32 n=32 k=32",
                "config": {"variant": "naive", "values": [["THREADS", 64]]}}
        wrong = dict(gemm, config={"variant": "naive", "values": [["THREADS", 63]]}, name="wrong")
        request = {"device": "vulkan:0", "cache": str(self.folder / "cache"), "count": 3, "how": how,
                   "calls": ["runtime/allocate/bytes=256"], "kernels": [wrong, dict(gemm, name="gemm")]}
        process = subprocess.run([BENCH, "blocks"], input=json.dumps(request), text=True, env=self.env,
                                 capture_output=True, timeout=limit(60))
        self.assertEqual(process.returncode, 0, process.stderr)
        blocks = json.loads(process.stdout)["blocks"]
        self.assertEqual(sorted(blocks), ["gemm", "runtime/allocate/bytes=256", "wrong"])
        self.assertEqual(blocks["wrong"]["failure"]["status"], "constraints")
        for name in ("gemm", "runtime/allocate/bytes=256"):
            self.assertEqual(len(blocks[name]["samples_us"]), 3)
            self.assertGreater(blocks[name]["control_us"], 0)
        hangs = dict(request, how=dict(how, timeout_s=-1e6), kernels=[dict(gemm, name="a"),
                                                                      dict(gemm, name="b")])
        process = subprocess.run([BENCH, "blocks"], input=json.dumps(hangs), text=True, env=self.env,
                                 capture_output=True, timeout=limit(60))
        blocks = json.loads(process.stdout)["blocks"]
        self.assertEqual(sorted(blocks), ["a", "runtime/allocate/bytes=256"])
        self.assertEqual(blocks["a"]["failure"]["status"], "timeout")

    def test_parts_append_to_one_file(self):
        """Benchmarks that were exported under the same conditions are skipped; missing and failed
        ones run."""
        preset = self.preset(iterations=2, batch=2, runtime=["allocate", "telemetry_off"],
                             problems=[dict(GEMM, m=[16 * m for m in range(1, 14)])])
        file = self.folder / "out.csv"
        parts = ("--preset", preset, "--export", file, "--settle", 0, "--resume")
        first = self.bench(*parts, "--limit", 0.001)
        self.refused(self.only_last_line(first), 1, "4 benchmarks remaining", "--resume")
        self.assertEqual(len(self.rows(file)), 12)
        second = self.bench(*parts, "--limit", 100)
        self.assertEqual(second.returncode, 0, second.stderr)
        self.assertIn("12 rows in", second.stderr)
        rows = self.rows(file)
        self.assertEqual(len(rows), 16)
        names = [(row["op"], row["problem"]) for row in rows]
        self.assertEqual(len(set(names)), 16)
        third = self.bench(*parts)
        self.assertEqual((third.returncode, third.stdout), (0, ""), third.stderr)
        self.assertEqual(len(self.rows(file)), 16)
        # Another driver, and a row that failed.
        text = file.read_text().splitlines()
        changed = [line.replace(",ok,", ",launch,") if ",m=16 " in line else
                   line.replace(rows[0]["driver"], "another") if ",m=32 " in line else line
                   for line in text]
        file.write_text("\n".join(changed) + "\n")
        fourth = self.bench(*parts, "--filter", "gemm")
        self.assertEqual(fourth.returncode, 0, fourth.stderr)
        self.assertEqual([row["problem"] for row in self.rows(file)[16:]],
                         ["m=16 n=32 k=32", "m=32 n=32 k=32"])
        for words, expected in ((["--resume"], "--export"), (["--limit", 5], "--export"),
                                (["--limit", 0], "--limit 0: must be a number above 0"),
                                (["--settle", -1], "--settle -1: must be a number of at least 0"),
                                (["--limit", 5, "--export", file, "--benchmark_out=x"], "--limit"),
                                (["--resume", "--export", file, "--filter", "nonesuch"], "--filter")):
            result = self.only_last_line(self.bench("--preset", preset, *words))
            self.refused(result, 2, expected)

    @staticmethod
    def only_last_line(result):
        result.stderr = result.stderr.splitlines()[-1]
        return result

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

    def test_ladders_of_caches_are_drawn(self):
        preset = self.preset(iterations=1, batch=1, platform=["cache_bandwidth", "cache_latency", "fill", "peer_write"])
        file = self.folder / "out.csv"
        result = self.bench("--preset", preset, "--export", file)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("peer: skipped on", result.stderr)
        ladder = result.stdout.split("\n\n")[1].splitlines()
        self.assertIn("working set", ladder[0])
        self.assertRegex(ladder[1], r"^ +16\.0 KiB +[\d.e+]+ GB/s +\S.* ns ")
        rows = self.rows(file)
        steps = [row for row in rows if row["op"] == "cache_bandwidth"]
        self.assertEqual(len(ladder) - 1, len(steps))
        self.assertTrue(all(float(row["gbps"]) > 0 for row in steps))
        self.assertEqual(rows[-1]["op"], "fill")

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
        result = self.bench("--preset", preset, "--filter", "/gemm|argmax", "--export", file)
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        rows = self.rows(file)
        self.assertEqual([(row["op"], row["origin"], row["samples"], row["us"]) for row in rows],
                         [("gemm", "default", "1", ""), ("gemm", "default", "1", ""),
                          ("gemm", "random", "2", ""), ("argmax", "random", "2", "")])
        self.assertLessEqual(float(rows[1]["error"]), float(rows[1]["bound"]))

    def test_interrupt_keeps_what_was_measured(self):
        preset = self.preset(iterations=300, batch=20, runtime=["dispatch", "allocate", "record_launch", "event_pair"])
        file = self.folder / "out.csv"
        process = subprocess.Popen(self.bench_words(["--preset", preset, "--export", file], False),
                                   env=self.env, cwd=self.folder, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for line in process.stderr:  # the first tenth is done
            if "%" in line:
                break
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=limit(60))
        self.assertEqual(process.returncode, 1, errors)
        rows = self.rows(file)
        self.assertGreater(len(rows), 1)
        self.assertEqual({row["status"] for row in rows}, {"unavailable"})
        self.assertGreater(int(rows[0]["samples"]), 400)
        # Each process takes a block of each: none that was taken is lost.
        self.assertEqual(len({row["samples"] for row in rows}), 1, rows)
        self.assertRegex(output, r"(?m)^runtime/dispatch.* µs .*interrupted after \d+ blocks")


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
                (["--preset", preset, "--processes", "many"], "--processes"),
                (["--preset", preset, "--processes", "all", "--trace", "t.json"], "--processes"),
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


class BenchSchema(BenchCase):
    """Needs the Python package jsonschema."""

    def test_shipped_presets_follow_it_and_mistakes_do_not(self):
        import jsonschema
        schema = json.loads(self.bench("schema").stdout)
        jsonschema.Draft202012Validator.check_schema(schema)
        check = jsonschema.Draft202012Validator(schema)
        files = set((SOURCE / "presets").glob("*.json")) - {SOURCE / "presets" / "schema.json"}
        self.assertTrue(files)
        for file in sorted(files):
            with self.subTest(file=file.name):
                check.validate(json.loads(file.read_text()))
        for mistake in ({"problems": [dict(GEMM, z=1)]}, {"problems": [{"op": "conv"}]},
                        {"problems": [{"op": "gemm", "m": 1, "n": 1}]}, {"problem": []},
                        {"problems": [dict(GEMM, m=0)]}, {"problems": [dict(GEMM, dtype="f64")]},
                        {"platform": ["coffee"]}, {"batch": 0}):
            with self.subTest(mistake=mistake):
                self.assertFalse(check.is_valid(mistake))

    def test_numbers_are_integers_by_their_values(self):
        """As JSON Schema says: 64.0 is an integer, 64.5 is none."""
        import jsonschema
        check = jsonschema.Draft202012Validator(json.loads(self.bench("schema").stdout))
        product = {"op": "quantized_gemm", "m": 1, "n": 16, "k": 64}
        for preset, good in (({"batch": 2.0, "problems": [dict(product, k=64.0, group=64.0)]}, True),
                             ({"batch": 2e0, "problems": [dict(product, m=[1.0, 2], group="64")]}, True),
                             ({"batch": 2.5, "problems": [product]}, False),
                             ({"problems": [dict(product, k=64.5)]}, False),
                             ({"problems": [dict(product, group=64.5)]}, False)):
            with self.subTest(preset=preset):
                self.assertEqual(check.is_valid(preset), good)
                file = self.folder / "numbers.json"
                file.write_text(json.dumps(dict(preset, measure=False)))
                result = self.bench("--preset", file, "--device", "hip-host:0")
                self.assertEqual(result.returncode, 0 if good else 2, result.stdout + result.stderr)


if __name__ == "__main__":
    unittest.main()
