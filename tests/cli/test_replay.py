"""Protects: greta-tune replay runs strategies on recordings, reproducibly and whatever the number of
threads, and greta-tune --record makes recordings that it reads."""
import csv
import gzip
import json
import shutil
import unittest

from cli_case import SOURCE, Case

RECORDED = SOURCE / "tests/data/replay/convolution__mi50.json"
SOFTMAX = ["softmax", "--rows", 8, "--cols", 64, "--device", "vulkan:0"]


class Replay(Case):
    def replay(self, *words):
        result = self.run_tune("replay", *words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_the_trace_has_every_evaluation(self):
        traces = []
        for jobs in (1, 3):
            trace = self.folder / f"{jobs}.csv"
            self.replay("--space", RECORDED, "--strategy", "random", "--strategy", "genetic:population=8",
                        "--budget", 30, "--seeds", 3, "--jobs", jobs, "--trace", trace)
            traces.append(trace.read_text())
        self.assertEqual(*traces)
        self.assertEqual(traces[0].splitlines()[0], "space,strategy,seed,evaluation,time_ms,best_ms")
        rows = list(csv.DictReader(traces[0].splitlines()))
        self.assertEqual(len(rows), 2 * 3 * 30)
        best = None
        for row in rows:
            self.assertEqual(row["space"], "convolution__mi50")
            best = float(row["time_ms"]) if row["evaluation"] == "1" else min(best, float(row["time_ms"]))
            self.assertEqual(float(row["best_ms"]), best)
        self.assertEqual({row["strategy"] for row in rows}, {"random", "genetic:population=8"})
        orders = {seed: [row["time_ms"] for row in rows if row["seed"] == seed] for seed in "123"}
        self.assertEqual(len(set(map(tuple, orders.values()))), 3)

    def test_summaries(self):
        copy = self.folder / "copy.json.gz"
        with open(RECORDED, "rb") as plain, gzip.open(copy, "wb") as compressed:
            shutil.copyfileobj(plain, compressed)
        words = ["--space", RECORDED, "--space", copy, "--strategy", "random", "--seeds", 2, "--budget", "1%"]
        self.assertIn("geometric mean of 2 spaces", self.replay(*words, "--summary"))
        text = self.replay(*words)
        self.assertIn("copy\n", text)
        summary = json.loads(self.replay(*words, "--json"))
        self.assertEqual(summary["format"], "greta-replay 1")
        self.assertEqual(list(summary["strategies"][0]["share"]), ["20"])  # 1 % are 25 evaluations

    def test_failed_evaluations_have_no_time(self):
        space = self.folder / "space.json"
        space.write_text(json.dumps({"kernel_name": "k", "tune_params_keys": ["A"], "tune_params": {"A": [1, 2]},
                                     "cache": {"1": {"time": "CompilationFailedConfig"}, "2": {"time": 3}}}))
        trace = self.folder / "trace.csv"
        self.replay("--space", space, "--strategy", "exhaustive", "--seeds", 4, "--trace", trace)
        rows = {tuple(line.split(",")[3:]) for line in trace.read_text().splitlines()[1:]}
        self.assertLessEqual(rows, {("1", "", ""), ("2", "3", "3"), ("1", "3", "3"), ("2", "", "3")})
        self.assertIn(("2", "3", "3"), rows)

    def test_wrong_input_is_refused_in_a_line(self):
        broken = self.folder / "broken.json"
        broken.write_text("{")
        failing = self.folder / "failing.json"
        failing.write_text(json.dumps({"kernel_name": "k", "tune_params_keys": ["A"], "tune_params": {"A": [1]},
                                       "cache": {"1": {"time": "x"}}}))
        for code, words in ((2, ["--space", RECORDED, "--strategy", "magic"]),
                            (2, ["--space", RECORDED, "--strategy", "genetic:population=many"]),
                            (2, ["--space", RECORDED, "--budget", "10s"]),
                            (2, ["--space", RECORDED, "--seeds", 0]),
                            (2, ["--space", RECORDED, "--trace", "absent/trace.csv"]),
                            (2, ["--space", broken]), (2, ["--space", failing]), (2, [])):
            self.refused(self.run_tune("replay", *words), code, "--")

    def test_a_recording_goes_on_and_is_replayed(self):
        file = self.folder / "softmax.jsonl.gz"
        for points in (3, 5):
            result = self.run_tune(*SOFTMAX, "--record", file, "--points", points)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(f"{points} of {points} configurations", result.stdout)
            with gzip.open(file, "rt") as lines:
                header, *trials = map(json.loads, lines)
            self.assertEqual(header["format"], "greta-recording 1")
            self.assertEqual(len(trials), points)
        self.assertIn("softmax", header["problem"])
        self.assertIn("softmax of 2 seeds", self.replay("--space", file, "--strategy", "random", "--seeds", 2))

    def test_the_prior_is_judged_by_recordings_and_trials(self):
        space, terms = self.folder / "space.jsonl", self.folder / "terms.csv"
        recorded = self.run_tune(*SOFTMAX, "--record", space, "--points", 4, "--variant", "streamed")
        self.assertEqual(recorded.returncode, 0, recorded.stderr)
        result = self.run_tune("prior", "--space", space, "--csv", terms, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        (judged,) = json.loads(result.stdout)["spaces"]
        self.assertEqual(judged["configurations"], 4)
        self.assertLessEqual(abs(judged["rank_correlation"]), 1)
        self.assertEqual(judged["regret_of_top_5"], 0)
        rows = list(csv.DictReader(terms.read_text().splitlines()))
        self.assertEqual(len(rows), 4)
        self.assertEqual({row["problem"] for row in rows}, {judged["problem"]})
        self.assertIn("rank correlation", self.run_tune("prior", "--space", space).stdout)
        for words, said in ((["--space", RECORDED], "has no configurations of GRETA's kernels"),
                            ([], "--space or --db is required"),
                            (["--db", self.folder / "none.db"], "none.db"),
                            (["--space", space, "--csv", "/no/where.csv"], "/no")):
            refused = self.run_tune("prior", *words)
            self.assertEqual(refused.returncode, 2)
            self.assertIn(said, refused.stderr)
            self.assertEqual(refused.stderr.count("\n"), 1)

    def test_a_foreign_file_is_not_replaced_by_a_recording(self):
        file = self.folder / "mine.json"
        file.write_text('{"my":"precious data"}')
        self.refused(self.run_tune(*SOFTMAX, "--points", 3, "--record", file), 2, "mine.json", "not a recording")
        self.assertEqual(file.read_text(), '{"my":"precious data"}')

    def test_recording_options_belong_together(self):
        file = self.folder / "file"
        for option, words in (("--record", ["--record", file]), ("--exhaustive", ["--exhaustive"]),
                              ("--points", ["--points", 3]),
                              ("--record", ["--record", file, "--exhaustive", "--points", 3]),
                              ("--record", ["--record", "absent/file", "--exhaustive"]),
                              ("--points", ["--record", file, "--points", "x"])):
            self.refused(self.run_tune(*SOFTMAX, *words), 2, option)
        self.assertFalse(file.exists())


if __name__ == "__main__":
    unittest.main()
