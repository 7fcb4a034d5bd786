"""Protects: a worker process that is killed at any time, also while it opens the device and in the
final rounds, leaves a note in the report and a trial in the database, and the run still finds its
winner. GRETA_KILLS sets the number of kills: a few by default, 200 with ctest -L long."""
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import time
import unittest

from cli_case import SMALL, TUNE, Case, limit, patient, worker_of

# A note about lost work; other notes report its consequences.
LOST = re.compile(r"(^|: )(opening the device|measuring the device's peaks|compiling ahead|evaluating|verifying"
                  r"|timing it( and others)? in rounds): the process that ran it died: killed by signal 9")
KILLS = int(os.environ.get("GRETA_KILLS", "6"))
TRIALS = 6  # of a run's search


class KilledWorkers(Case):
    known_devices = "vulkan:0,hip-host:0"

    def trials(self, condition="1"):
        return self.query(f"SELECT count(*) FROM trials WHERE {condition}")[0][0]

    def kill_worker(self, run, begun):
        """Kills the run's worker, if it has one, while the run stands still. Returns the number of kills, and of those
        during the search, whose work the run still needs."""
        os.kill(run.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, run.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        try:
            worker = worker_of(run.pid)
            try:
                searching = self.trials() - begun < TRIALS
            except sqlite3.OperationalError as error:
                if "locked" not in str(error):
                    raise
                return 0, 0  # the run stands still while it holds the database's exclusive lock
            if worker is None:
                return 0, 0
            os.kill(worker, signal.SIGKILL)
            while worker_of(run.pid) == worker:
                pass  # until it is dead, so that no other kill is of the same worker
            return 1, int(searching)
        finally:
            os.kill(run.pid, signal.SIGCONT)

    def tune(self, device, delays, seed):
        """Runs one tune whose worker is killed after each delay. Returns its report, the numbers of
        kills and of those during the search, and its standard error."""
        begun = self.trials()
        run = subprocess.Popen(
            [TUNE, *SMALL, "--budget", str(TRIALS), "--no-lock", "--flush", "1", "--seed", str(seed), "--json",
             "--device", device, "--db", str(self.db)], env=self.env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        killed = needed = 0
        for delay in delays:
            time.sleep(delay)
            if run.poll() is not None:
                break
            now = self.kill_worker(run, begun)
            killed, needed = killed + now[0], needed + now[1]
        output, errors = run.communicate(timeout=limit(300))
        self.assertEqual(run.returncode, 0, f"{device}, seed {seed}: {errors}")
        return json.loads(output), killed, needed, errors

    def test_random_kills(self):
        chance = random.Random(int(os.environ.get("GRETA_SEED", "7")))
        killed = runs = 0
        while killed < KILLS and runs < 4 * KILLS + 8:
            device = ("vulkan:0", "hip-host:0")[runs % 2]
            before = self.trials("status = 'crash'")
            delays = [chance.uniform(0, patient(0.6 if chance.random() < 0.3 else 2.5)) for _ in range(4)]
            report, now, needed, errors = self.tune(device, delays, runs)
            self.assertIsNotNone(report["winner"], errors)
            crashes = self.trials("status = 'crash'") - before
            notes = [note for note in report["notes"] if LOST.search(note)]
            # A worker that is ending after all its work is done loses nothing.
            self.assertLessEqual(crashes, now, errors)
            self.assertGreaterEqual(crashes, needed, errors)
            self.assertEqual(crashes, len(notes) + self.crashed_trials(report),
                             f"the report and the database differ: {notes}")
            self.assertEqual(bool(crashes), "killed by signal 9" in errors, errors)
            killed += needed
            runs += 1
        self.assertGreaterEqual(killed, KILLS)
        print(f"{killed} kills in searches of {runs} runs")
        self.assertEqual(self.query("PRAGMA integrity_check"), [("ok",)])

    @staticmethod
    def crashed_trials(report):
        return report["trials"].get("crash", 0)

    def test_killed_while_it_opens_the_device(self):
        """Kills the worker several times as soon as it exists. The run must still begin."""
        self.know_ceilings()
        run = subprocess.Popen(
            [TUNE, *SMALL, "--budget", "3", "--no-lock", "--flush", "1", "--seed", "1", "--json",
             "--device", "vulkan:0", "--db", str(self.db)], env=self.env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        killed = set()
        while len(killed) < 3 and run.poll() is None:
            worker = worker_of(run.pid)
            if worker is not None and worker not in killed:
                os.kill(worker, signal.SIGKILL)
                killed.add(worker)
        output, errors = run.communicate(timeout=limit(120))
        self.assertEqual(run.returncode, 0, errors)
        notes = [note for note in json.loads(output)["notes"] if "opening the device" in note]
        self.assertEqual(len(notes), 3, errors)
        stored = self.query("SELECT count(*) FROM trials WHERE message LIKE 'opening the device: %'")
        self.assertEqual(stored, [(3,)])


if __name__ == "__main__":
    unittest.main()
