"""Protects: a worker process that is killed at any time, also while it opens the device and in the
final rounds, leaves a note in the report and a trial in the database, and the run still finds its
winner. GRETA_KILLS sets the number of kills: a few by default, 200 with ctest -L long."""
import json
import os
import random
import re
import signal
import subprocess
import time
import unittest

from cli_case import SMALL, TUNE, Case, limit, patient, worker_of

# A note about lost work; other notes report its consequences.
LOST = re.compile(r"(^|: )(opening the device|measuring the device's peaks|evaluating|verifying"
                  r"|timing it( and others)? in rounds): the process that ran it died: killed by signal 9")
KILLS = int(os.environ.get("GRETA_KILLS", "6"))


class KilledWorkers(Case):
    known_devices = "vulkan:0,hip-host:0"

    def tune(self, device, delays, seed):
        """Runs one tune whose worker is killed after each delay. Returns its report, the number of
        kills, and its standard error."""
        run = subprocess.Popen(
            [TUNE, *SMALL, "--budget", "6", "--no-lock", "--flush", "1", "--seed", str(seed), "--json",
             "--device", device, "--db", str(self.db)], env=self.env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        killed = 0
        for delay in delays:
            time.sleep(delay)
            worker = worker_of(run.pid)
            if worker is None or run.poll() is not None:
                continue
            try:
                os.kill(worker, signal.SIGKILL)
                killed += 1
            except ProcessLookupError:
                pass
        output, errors = run.communicate(timeout=limit(300))
        self.assertEqual(run.returncode, 0, f"{device}, seed {seed}: {errors}")
        return json.loads(output), killed, errors

    def test_random_kills(self):
        chance = random.Random(int(os.environ.get("GRETA_SEED", "7")))
        killed = told = runs = 0
        while killed < KILLS and runs < 4 * KILLS + 8:
            device = ("vulkan:0", "hip-host:0")[runs % 2]
            before = self.query("SELECT count(*) FROM trials WHERE status = 'crash'")[0][0]
            delays = [chance.uniform(0, patient(0.6 if chance.random() < 0.3 else 2.5)) for _ in range(4)]
            report, now, errors = self.tune(device, delays, runs)
            self.assertIsNotNone(report["winner"], errors)
            crashes = self.query("SELECT count(*) FROM trials WHERE status = 'crash'")[0][0] - before
            notes = [note for note in report["notes"] if LOST.search(note)]
            # A worker that is ending after all its work is done loses nothing.
            self.assertLessEqual(crashes, now, errors)
            self.assertEqual(crashes, len(notes) + self.crashed_trials(report),
                             f"the report and the database differ: {notes}")
            self.assertEqual(bool(crashes), "killed by signal 9" in errors, errors)
            told += crashes
            killed += now
            runs += 1
        self.assertGreaterEqual(killed, KILLS)
        print(f"{killed} kills in {runs} runs: {told} interrupted work and left a trace")
        # Kills between a worker's last answer and its end interrupt nothing; how many there are is the machine's.
        self.assertGreaterEqual(told, 1)
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
