"""Protects: a tune that was killed or interrupted goes on where it stopped when it is asked for again,
and ends with the trials of an uninterrupted run with its seed. GRETA_KILLS sets the number of kills: a few by
default, 100 with ctest -L long."""
import json
import os
import random
import signal
import subprocess
import time
import unittest

from cli_case import SMALL, Case, HeldCompiler, limit

KILLS = int(os.environ.get("GRETA_KILLS", "3"))
SEARCHED = "SELECT session, config, phase FROM trials WHERE phase <> 'lost' ORDER BY id"


class Resuming(Case):
    known_devices = "vulkan:0,hip-host:0"
    seed = None
    device = ""

    def words(self, *more):
        # Which candidates this strategy chooses does not depend on their times. The variant compiles fast, and has four
        # configurations.
        return [*SMALL, "--variant", "naive", "--strategy", "random", "--budget", "10", "--device", self.device, "--db", self.db, *more]

    def trials(self):
        return self.query(SEARCHED)

    def uninterrupted(self, seed):
        whole = self.run_tune(*self.words("--seed", seed, "--json"))
        self.assertEqual(whole.returncode, 0, whole.stderr)
        rows = self.trials()
        self.db.unlink()
        self.know_ceilings(self.known_devices)
        return rows

    def expect_what_an_uninterrupted_run_has(self):
        chance = random.Random(int(os.environ.get("GRETA_SEED", "7")))
        killed = resumed = 0
        for seed in range(1, 100):
            started = time.monotonic()
            expected = self.uninterrupted(seed)
            whole_s = time.monotonic() - started
            words = self.words("--seed", seed, "--json")
            errors = ""
            while True:
                run = self.start(*words)
                try:
                    output, errors = run.communicate(timeout=whole_s * chance.uniform(0.1, 1))
                    self.assertEqual(run.returncode, 0, errors)
                    report = json.loads(output)
                    self.assertIsNotNone(report["winner"])
                    resumed += report["resumed"]
                    break
                except subprocess.TimeoutExpired:
                    os.kill(run.pid, signal.SIGKILL)
                    run.communicate()
                    killed += 1
                if self.query("SELECT count(*) FROM runs WHERE ended_utc IS NOT NULL") == [(1,)]:
                    break  # it was killed after its work was done
            self.assertEqual([row[1:] for row in self.trials()], [row[1:] for row in expected],
                             f"seed {seed}: {errors}")
            self.assertEqual(len({row[0] for row in self.trials()}), 1, "there is one session")
            self.assertEqual(self.query("PRAGMA integrity_check"), [("ok",)])
            self.assertEqual(self.run_db("verify").returncode, 0)
            self.db.unlink()
            self.know_ceilings(self.known_devices)
            if killed >= KILLS and resumed > 0:
                return
        self.fail(f"{killed} kills, {resumed} trials resumed")


class Resume(Resuming):
    device = "hip-host:0"

    def held(self, free):
        """Makes all tools wait before they compile more kernels than these."""
        held = HeldCompiler(self.folder, self.env, free)
        self.env = held.env
        return held

    def kill_after_three_trials(self, *words, by=signal.SIGKILL):
        held = self.held(4)  # the reference kernel, the default and two candidates
        run = self.start(*words)
        self.wait_for_trials(3)
        held.wait_until_it_holds(run)
        run.send_signal(by)
        run.communicate(timeout=limit(60))
        held.release()

    def test_killed_at_random_moments(self):
        self.expect_what_an_uninterrupted_run_has()

    def test_the_seed_is_that_of_the_unfinished_run(self):
        """Without --seed, the same command goes on with the recorded seed; with another one, it does not."""
        self.kill_after_three_trials(*self.words("--seed", "5"))
        other = self.run_tune(*self.words("--seed", "6", "--json"))
        self.assertEqual(json.loads(other.stdout)["resumed"], 0)
        again = self.run_tune(*self.words())
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertNotIn("going on", again.stderr, "the latest run of this request has finished")
        same = self.run_tune(*self.words("--seed", "5"))
        self.assertIn("going on with the unfinished run of", same.stderr)
        self.assertIn("trials were already recorded", same.stdout)

    def test_no_resume_starts_afresh(self):
        self.kill_after_three_trials(*self.words(), by=signal.SIGINT)
        fresh = self.run_tune(*self.words("--no-resume", "--json"))
        self.assertEqual(json.loads(fresh.stdout)["resumed"], 0)
        self.assertEqual(len({row[0] for row in self.trials()}), 2)
        # That run finished, so that nothing is left to go on with.
        self.assertNotIn("going on", self.run_tune(*self.words()).stderr)

    def test_time_that_was_spent_counts(self):
        words = [*SMALL, "--variant", "naive", "--strategy", "random", "--budget", "900s", "--device", self.device, "--db",
                 self.db]
        self.kill_after_three_trials(*words)
        spent = self.query("SELECT max(elapsed_s) FROM trials")[0][0]
        self.assertGreater(spent, 0)
        report = json.loads(self.run_tune(*words, "--json").stdout)
        self.assertGreaterEqual(report["resumed"], 3)
        first_of_second_part = self.query(
            f"SELECT min(elapsed_s) FROM trials WHERE elapsed_s > {spent!r}")[0][0]
        self.assertGreater(first_of_second_part, spent)

    def test_a_preset_does_not_repeat_what_it_finished(self):
        preset = self.folder / "three.json"
        preset.write_text(json.dumps({"budget": "2", "problems": [
            {"op": "gemm", "m": m, "n": 16, "k": 16} for m in (16, 32, 48)]}))
        words = ["preset", preset, "--strategy", "random", "--device", self.device, "--db", self.db]
        held = self.held(3)  # the reference kernel and those of the first problem
        run = self.start(*words)
        held.wait_until_it_holds(run)
        while run.poll() is None and not self.query("SELECT id FROM sessions WHERE outcome = 'done'"):
            time.sleep(0.02)
        os.kill(run.pid, signal.SIGKILL)
        run.communicate()
        held.release()
        done = self.query("SELECT id FROM sessions WHERE outcome = 'done'")
        self.assertLess(len(done), 3)
        trials = self.query("SELECT count(*) FROM trials WHERE session = 1")
        again = self.run_tune(*words, "--json")
        self.assertEqual(again.returncode, 0, again.stderr)
        report = json.loads(again.stdout)
        self.assertEqual([result["finished_before"] for result in report["results"]].count(True), len(done))
        self.assertTrue(all(result["winner"] for result in report["results"]))
        self.assertEqual(self.query("SELECT count(*) FROM sessions"), [(3,)])
        self.assertEqual(self.query("SELECT count(*) FROM trials WHERE session = 1"), trials)
        # A preset that has finished is tuned anew.
        self.assertEqual(self.run_tune(*words).returncode, 0)
        self.assertEqual(self.query("SELECT count(*) FROM sessions"), [(6,)])

    def test_a_running_tune_is_not_resumed(self):
        free = self.env
        held = self.held(3)
        run = self.start(*self.words("--seed", "1"))
        held.wait_until_it_holds(run)
        self.wait_for_trials(1)
        beside = self.run_tune(*self.words("--seed", "1", "--json"), env=free)
        self.assertIsNone(run.poll())
        held.release()
        self.assertEqual(run.wait(timeout=limit(120)), 0)
        run.communicate()
        self.assertEqual(json.loads(beside.stdout)["resumed"], 0)


class ResumeOnVulkan(Resuming):
    """What depends on the device: kills at any moment of a driver and its worker. Runs and their records do not."""
    device = "vulkan:0"

    def test_killed_at_random_moments(self):
        self.expect_what_an_uninterrupted_run_has()


if __name__ == "__main__":
    unittest.main()
