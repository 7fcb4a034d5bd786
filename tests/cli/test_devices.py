"""Protects: greta-tune on several devices, concurrently with another tuner, and as a check, each in
a separate process."""

import csv
import json
import os
import pathlib
import shutil
import signal
import time
import unittest

from cli_case import BENCH, SMALL, SOURCE, TUNE, Case, limit, wait_until_it_catches, whole, worker_of


class Compare(Case):
    """Two devices for one problem: lavapipe, and hip-host emulating gfx1100."""
    DEVICES = "vulkan:0,hip-host:2"
    known_devices = DEVICES

    def tune_both(self, *arguments):
        result = self.run_tune("gemm", "--m", 16, "--n", 24, "--k", 16, "--device", self.DEVICES,
                               "--db", self.db, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        return result

    def test_json_csv_and_what_show_says_afterwards(self):
        file = self.folder / "out.csv"
        report = json.loads(self.tune_both("--budget", 6, "--json", "--csv", file).stdout)
        ids = [session["device"]["id"] for session in report["results"]]
        self.assertEqual(ids, self.DEVICES.split(","))
        for session in report["results"]:
            self.assertEqual(session["trials"]["total"], 2)  # the budget is shared
        comparison = report["comparison"]
        self.assertIn(comparison["fastest"], ids)
        other = comparison["others"][0]
        self.assertEqual({comparison["fastest"], other["device"]}, set(ids))
        self.assertFalse(other["same_card"])
        self.assertGreaterEqual(other["turns"], 3)
        ((*interval, faster, slower),) = self.query("SELECT low, ratio, high, faster_us, slower_us FROM comparisons")
        faster, slower = json.loads(faster), json.loads(slower)
        self.assertEqual([other[name] for name in ("low", "ratio", "high")], interval)
        self.assertEqual(interval, sorted(interval))
        self.assertEqual(other["sure"], other["low"] > 1)
        self.assertEqual([len(faster), len(slower)], [other["turns"]] * 2)
        self.assertTrue(min(slower) / max(faster) <= other["ratio"] <= max(slower) / min(faster))
        backends = {row["backend"] for row in csv.DictReader(file.read_text().splitlines())}
        self.assertEqual(backends, {"vulkan", "hip-host"})
        shown = json.loads(self.run_tune("show", "--db", self.db, "--json").stdout)
        self.assertEqual(len(shown), 2)
        for winner in shown:  # they are separate cards
            self.assertEqual(winner["card"], [winner["device_fingerprint"]])
            self.assertTrue(winner["best_of_card"])

    @whole
    def test_text(self):
        output = self.tune_both("--budget", 4).stdout
        self.assertRegex(output, r"(?m)^  (faster|inconclusive) .*(vulkan:0|hip-host:2)")
        self.assertIn("alternating runs", " ".join(output.split()))
        wide = [line for line in output.splitlines() if len(line) > 100 and " " in line.strip()]
        self.assertEqual([line for line in wide if str(self.db) not in line], [])


class SeveralCards(Case):
    """Two equal cards: the loader lists lavapipe twice."""
    known_devices = "vulkan:0"

    def setUp(self):
        super().setUp()
        manifest, = pathlib.Path("/usr/share/vulkan/icd.d").glob("lvp_icd*.json")
        drivers = f"{manifest}:{shutil.copy(manifest, self.folder / 'second.json')}"
        self.env.update(VK_DRIVER_FILES=drivers, VK_ICD_FILENAMES=drivers)
        self.preset = self.folder / "list.json"
        self.preset.write_text(json.dumps({"problems": [
            {"op": "softmax", "rows": 8, "cols": 16 * i} for i in range(1, 7)]}))

    def arguments(self, *more, budget=6):
        return ["preset", self.preset, "--devices", "vulkan:all", "--budget", budget, "--strategy", "random", "--seed", 1,
                "--db", self.db, *more]

    def workers(self, pid):
        """The worker processes of a tool, in order."""
        found = []
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                try:
                    if b"worker" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0"):
                        found.append(int(child))
                except OSError:  # it has ended
                    pass
        return sorted(found)

    def check_all_tuned(self, problems=6):
        self.assertEqual(self.query("SELECT count(DISTINCT problem) FROM winners"), [(problems,)])
        verified = self.run_db("verify")
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)

    def test_problems_are_spread_over_equal_cards(self):
        done = self.run_tune(*self.arguments())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_all_tuned()
        cards = dict(self.query("SELECT opened_as, count(*) FROM sessions GROUP BY opened_as"))
        self.assertEqual(set(cards), {"vulkan:0", "vulkan:1"})
        self.assertEqual(sum(cards.values()), 6)
        self.assertRegex(done.stderr, r"(?m)^vulkan:1: softmax .*: \d+ trials, ")

    def test_a_killed_worker_of_one_card_loses_nothing(self):
        with self.start(*self.arguments(budget=6)) as process:
            deadline = time.monotonic() + limit(30)
            while len(self.workers(process.pid)) < 2 or not self.db.exists():
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.02)
            time.sleep(0.5)
            os.kill(self.workers(process.pid)[-1], signal.SIGKILL)
            _, errors = process.communicate(timeout=limit(120))
        self.assertEqual(process.returncode, 0, errors)
        self.assertIn("killed by signal 9", errors)
        self.check_all_tuned()
        self.assertEqual(self.query("SELECT count(*) FROM trials WHERE status = 'crash' AND message NOT LIKE '%killed%'"),
                         [(0,)])

    def test_two_cards_share_one_problem_if_they_measure_alike(self):
        done = self.run_tune("softmax", "--rows", 8, "--cols", 64, "--devices", "vulkan:all", "--budget", 8, "--db",
                             self.db, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        notes = json.loads(done.stdout)["notes"]
        self.assertIn("the default configuration on each card, in turns: vulkan:0 ", notes[0])
        self.assertIn("vulkan:1 ", notes[0])

    def test_an_api_that_has_no_device(self):
        refused = self.run_tune("softmax", "--rows", 8, "--cols", 64, "--devices", "cuda:all")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--device cuda", refused.stderr)


class Lock(Case):
    known_devices = "auto"

    def setUp(self):
        super().setUp()
        self.env["XDG_CACHE_HOME"] = str(self.folder / "cache")

    def test_the_second_says_whom_it_waits_for_and_runs_afterwards(self):
        first = self.start("gemm", "--m", 96, "--n", 96, "--k", 96, "--budget", "120s", "--db",
                           self.db, lock=True)
        self.wait_for_trials(1)
        free = self.run_tune(*SMALL, "--budget", 1, "--db", self.know_ceilings(file=self.folder / "b.db"))
        self.assertEqual(free.returncode, 0, free.stderr)
        second = self.start(*SMALL, "--budget", 1, "--db", self.know_ceilings(file=self.folder / "c.db"), lock=True)
        line = second.stderr.readline()
        self.assertIn(f"waiting for process {first.pid}", line)
        self.assertIn("--no-lock", line)
        self.assertIsNone(second.poll())
        first.kill()  # a dead process holds no lock
        first.communicate()
        output, errors = second.communicate(timeout=limit(120))
        self.assertEqual(second.returncode, 0, errors)
        self.assertIn("winner", output)

    def test_a_database_that_cannot_be_opened_is_refused_at_once(self):
        first = self.start("gemm", "--m", 96, "--n", 96, "--k", 96, "--budget", "120s", "--db",
                           self.db, lock=True)
        self.wait_for_trials(1)
        other, smoke = self.folder / "other.db", str(SOURCE / "presets/smoke.json")
        other.write_text("not a database")
        for db, reason in ((self.folder, "not a file"), (other, "not a GRETA database")):
            for words in ((TUNE, *SMALL), (BENCH, "--preset", smoke), (BENCH, "doctor"),
                          (BENCH, "soak", "--preset", smoke, "--for", "1m")):
                with self.subTest(db=db, words=words):
                    self.refused(self.run_words(*words, "--db", str(db)), 2, reason)
        self.assertIsNone(first.poll())
        first.kill()
        first.communicate()

    def test_who_waits_can_be_interrupted(self):
        first = self.start("gemm", "--m", 96, "--n", 96, "--k", 96, "--budget", "120s", "--db",
                           self.db, lock=True)
        self.wait_for_trials(1)
        second = self.start(*SMALL, "--db", self.folder / "c.db", lock=True)
        second.stderr.readline()
        second.send_signal(signal.SIGINT)
        output, errors = second.communicate(timeout=limit(60))
        self.assertEqual(second.returncode, 1)
        self.assertEqual(errors, "greta-tune: interrupted; nothing was measured\n")
        self.assertFalse((self.folder / "c.db").exists())
        first.kill()
        first.communicate()


class Verify(Case):
    def test_counts_by_variant_and_type(self):
        result = self.run_tune("verify", "gemm", "--device", "vulkan:0", "--problems", 12, "--seed",
                               3, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual(sum(entry["right"] for entry in report["variants"] if entry["variant"] not in report["emulated"]), 12)
        self.assertGreaterEqual(len({entry["variant"] for entry in report["variants"]}), 3)
        self.assertEqual(report["failures"], [])
        self.assertLessEqual(report["worst_share_of_bound"], 1)
        coverage = report["coverage"]
        self.assertEqual(coverage["met"] + len(coverage["missing"]), coverage["cases"])
        self.assertGreater(coverage["met"], 100)
        text = self.run_tune("verify", "gemm", "--device", "vulkan:0", "--problems", 2, "--variant",
                             "gemv")
        self.assertIn("2 of 2 passed", text.stdout)
        self.assertRegex(text.stdout, r"(?m)^  coverage +\d+ of \d+ cases of the kernels covered$")
        self.assertRegex(text.stdout, r"(?m)^  not covered +gemv ")

    def test_an_interruption_says_what_was_checked(self):
        run = self.start("verify", "gemm", "--device", "hip-host:1", "--m", 40, "--n", 33, "--k", 70,
                         "--sample", 100)
        while worker_of(run.pid) is None and run.poll() is None:
            time.sleep(0.05)
        time.sleep(1)
        run.send_signal(signal.SIGINT)
        output, errors = run.communicate(timeout=limit(60))
        self.assertEqual(run.returncode, 1, errors)
        self.assertRegex(output, r"(?m)^  stopped +\d+ not checked$", errors)

    def test_an_interruption_while_problems_are_drawn_ends_at_once(self):
        run = self.start("verify", "gemm", "--device", "vulkan:0", "--problems", 100000)
        wait_until_it_catches(run)
        time.sleep(1)
        run.send_signal(signal.SIGINT)
        output, errors = run.communicate(timeout=limit(10))
        self.assertEqual((run.returncode, output), (1, ""), errors)
        self.assertRegex(errors, r"^greta-tune: interrupted; what was stored before is kept$")

    def test_a_given_problem(self):
        problem = ["--m", 40, "--n", 33, "--k", 70, "--dtype", "f16", "--device", "vulkan:0"]
        default = self.run_tune("verify", "gemm", *problem)
        self.assertIn("1 of 1 passed", default.stdout, default.stderr)
        self.assertNotIn("coverage", default.stdout)
        sampled = self.run_tune("verify", "gemm", *problem, "--sample", 3, "--variant", "tiled")
        self.assertRegex(sampled.stdout, "tiled +f16 to f16: 3 passed, 0 failed")

    def test_a_given_configuration(self):
        named = self.run_tune("verify", "gemm", "--m", 40, "--n", 33, "--k", 70, "--dtype", "f16", "--device", "vulkan:0",
                              "--config", "naive THREADS=64", "--json")
        self.assertEqual(json.loads(named.stdout)["variants"],
                         [{"variant": "naive", "types": "f16 to f16", "right": 1, "wrong": 0}])

    def templates(self, name, old, new):
        """Creates a folder with one kernel source in which `old` is replaced by `new`."""
        text = (SOURCE / "kernels/templates" / name).read_text()
        self.assertEqual(text.count(old), 1)
        file = self.folder / "templates" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace(old, new))
        return file.parents[name.count("/")]

    def test_templates_of_a_folder_replace_the_built_in_ones(self):
        folder = self.templates("gemm/naive.comp", "sum = fma(", "sum = -fma(")
        options = ["--variant", "naive", "--problems", 5, "--seed", 2,
                   "--templates", folder]
        every = json.loads(self.run_tune("verify", "gemm", *options, "--device", "vulkan:0", "--json").stdout)
        self.assertEqual(len(every["failures"]), 5)
        self.assertEqual(every["failures"][0]["status"], "correctness")
        first = self.run_tune("verify", "gemm", *options, "--device", "vulkan:0", "--first", "--json")
        self.assertEqual(first.returncode, 1)
        report = json.loads(first.stdout)
        self.assertEqual((len(report["failures"]), report["not_checked"]), (1, 4))
        other = self.run_tune("verify", "gemm", *options, "--device", "hip-host:1")
        self.assertEqual(other.returncode, 0, other.stderr)  # its source is the built-in one

    def test_a_launch_that_does_not_end_fails_after_its_deadline(self):
        folder = self.templates("gemm/naive.hip", "++i, a_next", "i += k > 0 ? 0 : 1, a_next")
        result = self.run_tune("verify", "gemm", "--device", "hip-host:1", "--variant", "naive",
                               "--problems", 1, "--deadline", 1, "--templates", folder, "--json")
        self.assertEqual(json.loads(result.stdout)["failures"][0]["status"], "timeout")

    def test_folders_that_hold_no_templates(self):
        stray = self.folder / "stray" / "gemm"
        stray.mkdir(parents=True)
        (stray / "naive2.comp").write_text("void main() {}\n")
        for folder, word in ((self.folder / "absent", "No such file"), (stray.parent, "naive2.comp")):
            with self.subTest(folder):
                self.refused(self.run_tune("verify", "gemm", "--templates", folder), 2, word)

    def test_bad_usage(self):
        huge = ["--m", "100000", "--n", "100000", "--k", "100000"]
        for arguments, word in ((["--problems", "0"], "--problems"), (["--seed", "x"], "--seed"),
                                (["--variant", "magic"], "--variant"), (["--m", "3"], "--n"),
                                (["--m", "3", "--problems", "2"], "--problems"),
                                (["--sample", "2"], "--m"), (huge, "100000"),
                                (["--device", "vulkan:99"], "--device")):
            with self.subTest(arguments):
                self.refused(self.run_tune("verify", "gemm", *arguments), 2, word)


if __name__ == "__main__":
    unittest.main()
