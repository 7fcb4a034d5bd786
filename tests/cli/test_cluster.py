"""Protects: what clusters need of greta-tune and greta-db, with plain processes: parts of a preset, which a killed task
completes when it is started again, merging with trials, and the stream of events for other programs."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

from cli_case import SOURCE, TUNE, Case, limit

sys.path.insert(0, str(SOURCE / "scripts/slurm"))
import compare_trials  # noqa: E402


class Cluster(Case):
    known_devices = "vulkan:0"

    def setUp(self):
        super().setUp()
        self.preset = self.folder / "list.json"
        # Operations that learn nothing from each other, and a strategy that ignores times.
        self.preset.write_text(json.dumps({"problems": [
            {"op": "softmax", "rows": 16, "cols": 64}, {"op": "gemm", "m": 32, "n": 32, "k": 32},
            {"op": "rmsnorm", "rows": 16, "cols": 64}, {"op": "argmax", "rows": 16, "cols": 64}]}))

    def part(self, name):
        file = self.folder / name
        self.know_ceilings(file=file)
        return file

    def arguments(self, shard, file, *more):
        return ["preset", self.preset, "--device", "vulkan:0", "--strategy", "random", "--seed", 1, "--budget", 12,
                "--shard", shard, "--db", file, *more]


class Parts(Cluster):
    def test_a_killed_part_goes_on_and_the_merged_parts_have_every_trial(self):
        parts = [self.part("part-0.db"), self.part("part-1.db")]
        with self.start(*self.arguments("1/2", parts[0])) as process:
            self.db = parts[0]
            self.wait_for_trials(6)
            process.kill()
        for i, file in enumerate(parts):
            done = self.run_tune(*self.arguments(f"{i + 1}/2", file))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"part {i + 1} of 2: 2 of 4 problems", done.stderr)
        whole = self.part("whole.db")
        done = self.run_tune(*self.arguments("1/1", whole))
        self.assertEqual(done.returncode, 0, done.stderr)

        merged = self.folder / "merged.db"
        for expected in ([2, 2], [0, 0]):  # again adds nothing
            report = json.loads(self.run_db("merge", "--trials", "--json", *parts, db=merged).stdout)
            self.assertEqual([source["sessions"] for source in report], expected)
        self.assertEqual(compare_trials.searches(merged), compare_trials.searches(whole))
        self.assertEqual(len(compare_trials.searches(merged)), 4)
        self.assertEqual(self.run_db("verify", db=merged).returncode, 0)

    def test_a_dry_run_says_what_would_be_taken_over(self):
        part = self.part("part.db")
        self.run_tune(*self.arguments("1/4", part))
        merged = self.part("merged.db")
        report, = json.loads(self.run_db("merge", "--trials", "--dry-run", "--json", part, db=merged).stdout)
        self.assertEqual(report["sessions"], 1)
        self.assertGreaterEqual(report["trials"], 12)
        self.db = merged
        self.assertEqual(self.query("SELECT count(*) FROM sessions"), [(0,)])

    def test_the_part_comes_from_the_job(self):
        slurm = {"SLURM_ARRAY_TASK_ID": "6", "SLURM_ARRAY_TASK_MIN": "5", "SLURM_ARRAY_TASK_COUNT": "8"}
        for shard, variables, said in [
                ("auto", slurm, "part 2 of 8"),
                ("auto/9", slurm, "part 7 of 9"),
                ("auto/9", {"JOB_COMPLETION_INDEX": "8"}, "part 9 of 9")]:
            with self.subTest(shard, variables=variables):
                done = self.run_tune(*self.arguments(shard, self.db, "--warm"),
                                     env=self.env | variables)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(said, done.stderr)

    def test_an_empty_part_is_a_report_without_problems(self):
        done = self.run_tune(*self.arguments("5/5", self.db, "--json"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout), {"preset": "list", "results": [], "comparisons": []})

    def test_an_empty_value_is_refused(self):
        recorded = SOURCE / "tests/data/replay/convolution__mi50.json"
        for words in (["--shard", ""], ["--seed", ""], ["--csv", ""]):
            self.refused(self.run_tune("preset", self.preset, *words), 2, f"{words[0]}: needs a value")
        for words in (["softmax", "--rows", 8, "--cols", 8, "--record", ""],
                      ["softmax", "--rows", 8, "--cols", 8, "--variant", ""],
                      ["replay", "--space", recorded, "--trace", ""]):
            self.refused(self.run_tune(*words), 2, f"{words[-2]}: needs a value")

    def test_parts_that_do_not_exist(self):
        for shard, variables, words in [
                ("3", {}, "must be i/n"), ("0/3", {}, "must be i/n"), ("4/3", {}, "there is no part 4 of 3"),
                ("x/3", {}, "must be i/n"), ("1/0", {}, "no part"), ("auto/x", {}, "must be i/n"),
                ("auto", {}, "neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX is set"),
                ("auto", {"SLURM_ARRAY_TASK_ID": "1"}, "SLURM_ARRAY_TASK_COUNT is not set; use auto/N"),
                ("auto", {"SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_COUNT": "3", "SLURM_ARRAY_TASK_MIN": "1"},
                 "has gaps"),
                ("auto", {"JOB_COMPLETION_INDEX": "0"}, "use auto/N"),
                ("auto/4", {"SLURM_ARRAY_TASK_ID": "x"}, "SLURM_ARRAY_TASK_ID=x is not a number"),
                ("auto/4", {"SLURM_ARRAY_TASK_ID": "4"}, "there is no part 5 of 4")]:
            with self.subTest(shard, variables=variables):
                refused = self.run_tune(*self.arguments(shard, self.db), env=self.env | variables)
                self.refused(refused, 2, f"--shard {shard}: ", words)


class Task(Cluster):
    SCRIPT = SOURCE / "scripts/slurm/tune.sbatch"

    def setUp(self):
        super().setUp()
        # In place of greta-tune: writes a database and counts its calls.
        tool = self.folder / "bin/greta-tune"
        tool.parent.mkdir()
        tool.write_text('#!/bin/bash\necho "$*" >> "$CALLS"\nexit "${TOOL_CODE:-0}"\n')
        tool.chmod(0o755)
        self.out = self.folder / "out"
        self.out.mkdir()
        (self.out / "part-1.db").touch()

    def calls_of(self, *options, shards=2, code=0, role="tune"):
        calls = self.folder / "calls"
        calls.write_text("")
        env = self.env | {"GRETA_ROLE": role, "SLURM_ARRAY_TASK_ID": "1", "GRETA_BIN": str(self.folder / "bin"),
                          "CALLS": str(calls), "TOOL_CODE": str(code if role == "tune" else 0)}
        done = subprocess.run([self.SCRIPT, str(shards), self.out, self.preset, *options], env=env,
                              capture_output=True, text=True, timeout=limit(20), stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, done.stderr)
        return len(calls.read_text().splitlines())

    def test_a_part_that_has_ended_is_not_tuned_again(self):
        self.assertEqual(self.calls_of("--seed", "1", code=1), 1)
        self.assertFalse((self.out / "part-1.done").exists())
        self.assertEqual(self.calls_of("--seed", "1"), 1)
        self.assertEqual(self.calls_of("--seed", "1"), 0)
        for change in ({"shards": 3}, {}):  # another request, and the first one again
            self.assertEqual(self.calls_of("--seed", "1", **change), 1)
        self.assertEqual(self.calls_of("--seed", "2"), 1)
        self.assertEqual(self.calls_of("--seed", "2"), 0)
        self.preset.write_text(self.preset.read_text().replace("64", "128"))
        self.assertEqual(self.calls_of("--seed", "2"), 1)
        (self.out / "part-1.db").unlink()
        self.assertEqual(self.calls_of("--seed", "2"), 1)


    def test_the_merging_job_fails_if_a_part_ended_for_another_request(self):
        (self.folder / "bin/greta-db").symlink_to("greta-tune")
        (self.out / "part-0.db").touch()
        self.calls_of("--seed", "1")
        (self.out / "part-0.done").write_bytes((self.out / "part-1.done").read_bytes())
        self.calls_of("--seed", "1", role="merge")
        self.calls_of("--seed", "2", role="merge", code=1)


class JsonLines(Cluster):
    COMMAND = ["softmax", "--rows", 16, "--cols", 64, "--device", "vulkan:0", "--budget", 10, "--no-lock", "--flush", 1,
               "--json-lines"]

    def test_each_line_is_an_event(self):
        done = self.run_tune(*self.COMMAND, "--db", self.db)
        self.assertEqual(done.returncode, 0, done.stderr)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        kinds = [event["event"] for event in events]
        self.assertEqual((kinds[0], kinds[-1]), ("run", "end"))
        self.assertTrue(events[-1]["all_won"])
        self.assertEqual(kinds.count("session_end"), 1)
        self.assertEqual(self.query("SELECT count(*) FROM trials"), [(kinds.count("trial"),)])
        documented = (SOURCE / "docs/json.md").read_text()
        documented = documented[documented.index("--json-lines"):]
        for event in events:
            for field in event:
                self.assertIn(f"`{field}`", documented)

    def test_a_reader_that_goes_away_does_not_end_the_tune(self):
        words = [TUNE, *map(str, self.COMMAND), "--db", str(self.db)]
        with subprocess.Popen(words, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              stdin=subprocess.DEVNULL) as process:
            process.stdout.readline()
            process.stdout.close()
            errors = process.stderr.read()
        self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(self.query("SELECT outcome FROM sessions"), [("done",)])

    def test_a_full_disk_is_told(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([TUNE, *map(str, self.COMMAND), "--quiet", "--db", str(self.db)], env=self.env,
                                  stdout=full, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("can't write the output", done.stderr)
        self.assertEqual(self.query("SELECT outcome FROM sessions"), [("done",)])

    def test_it_excludes_other_output(self):
        self.refused(self.run_tune(*self.COMMAND, "--json"), 2, "--json-lines: not with --json")


if __name__ == "__main__":
    unittest.main()
