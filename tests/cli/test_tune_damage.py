"""Protects: results of greta-tune survive interrupts, kills, full disks and unwritable folders."""
import os
import pathlib
import resource
import signal
import subprocess
import unittest

from cli_case import SMALL, Case, HeldCompiler, limit


class Damage(Case):
    known_devices = "auto"

    def test_streams_that_cannot_be_written(self):
        full = open("/dev/full", "w")
        self.addCleanup(full.close)
        arguments = self.command([*SMALL, "--budget", "2", "--db", self.db], lock=False)
        quiet = subprocess.run(arguments, env=self.env, stdout=subprocess.PIPE, stderr=full)
        self.assertEqual(quiet.returncode, 0)
        self.assertIn(b"winner", quiet.stdout)
        closed = subprocess.run(arguments, env=self.env, stdout=subprocess.PIPE,
                                preexec_fn=lambda: os.close(2))
        self.assertEqual(closed.returncode, 0)
        self.assertNotIn(b"crash", closed.stdout)
        for extra in ([], ["--json"]):
            lost = subprocess.run(arguments + extra, env=self.env, stdout=full,
                                  stderr=subprocess.PIPE)
            self.assertEqual(lost.returncode, 1)
            self.assertRegex(lost.stderr.splitlines()[-1], b"greta-tune: .*write")

    def test_full_disk(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, 64 * 1024))
        self.env["XDG_CACHE_HOME"] = str(self.folder / "cache")
        result = self.run_tune(*SMALL, "--budget", "300", "--db", self.db, preexec_fn=limit)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(str(self.db), result.stderr.splitlines()[-1])
        # Everything committed before is present, and the file is intact.
        self.assertEqual(self.query("PRAGMA integrity_check"), [("ok",)])

    def test_folder_that_cannot_be_written(self):
        folder = self.folder / "locked"
        folder.mkdir()
        os.chmod(self.folder, 0o755)
        os.chmod(folder, 0o555)
        self.env["HOME"] = "/nonexistent"
        user = (lambda: os.setuid(65534)) if os.getuid() == 0 else None
        result = self.run_tune(*SMALL, "--db", folder / "tuned.db", preexec_fn=user)
        self.refused(result, 2, "--db", "tuned.db")

    def test_killed_session_keeps_its_trials(self):
        run = self.start("gemm", "--m", 96, "--n", 96, "--k", 96, "--budget", "120s", "--db", self.db)
        self.wait_for_trials(3)
        run.kill()
        run.communicate()
        kept = self.query("SELECT count(*) FROM trials")[0][0]
        self.assertGreaterEqual(kept, 3)
        self.assertEqual(self.query("PRAGMA integrity_check"), [("ok",)])
        again = self.run_tune("gemm", "--m", 96, "--n", 96, "--k", 96, "--budget", "3", "--db",
                              self.db)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertGreaterEqual(self.query("SELECT count(*) FROM trials")[0][0], kept + 3)

    def test_killed_worker_costs_no_trial(self):
        held = HeldCompiler(self.folder, self.env, free=2)  # the reference kernel and the default
        run = self.start(*SMALL, "--variant", "naive", "--device", "hip-host:0", "--budget", "10", "--db",
                         self.know_ceilings("hip-host:0"), env=held.env)
        held.wait_until_it_holds(run)  # so it has work to do
        self.wait_for_trials(1)
        children = pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)
        held.release()
        output, errors = run.communicate(timeout=limit(200))
        self.assertEqual(run.returncode, 0, errors)
        crashes = self.query("SELECT count(*) FROM trials WHERE status = 'crash'")[0][0]
        self.assertEqual(crashes, 1)
        self.assertRegex(output, r"restarted")
        self.assertEqual(self.query("SELECT count(*) FROM winners"), [(1,)])

    def test_unwritable_cache_is_no_obstacle(self):
        blocked = self.folder / "blocked"
        blocked.write_text("a file where a folder should be")
        env = dict(self.env, XDG_CACHE_HOME=str(blocked))
        result = self.run_tune(*SMALL, "--budget", "2", "--db", self.db, env=env)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr.count("compiled kernels can't be kept"), 1, result.stderr)


class Interrupt(Case):
    known_devices = "auto"

    def test_sigterm_is_as_orderly(self):
        run = self.start("gemm", "--m", 96, "--n", 96, "--k", 96, "--budget", "120s", "--db", self.db)
        self.wait_for_trials(2)
        run.terminate()
        output, errors = run.communicate(timeout=limit(60))
        self.assertEqual(run.returncode, 1, errors)
        self.assertIn("interrupted", output)

    def test_ctrl_c_keeps_what_was_measured_and_says_so(self):
        run = self.start("gemm", "--m", 96, "--n", 96, "--k", 96, "--budget", "120s", "--db", self.db)
        self.wait_for_trials(3)
        run.send_signal(signal.SIGINT)
        output, errors = run.communicate(timeout=limit(60))
        self.assertEqual(run.returncode, 1, errors)
        self.assertIn("interrupted", output)
        self.assertIn(str(self.db), output)
        kept = self.query("SELECT count(*) FROM trials")[0][0]
        self.assertIn(f"{kept} trials kept", output)
        self.assertEqual(self.query("SELECT count(*) FROM winners"), [(0,)])


    def test_before_the_first_trial_there_is_little_to_report(self):
        held = HeldCompiler(self.folder, self.env, free=1)  # the reference kernel
        run = self.start(*SMALL, "--device", "hip-host:0", "--budget", "120s", "--db", self.db, env=held.env)
        first = run.stderr.readline()
        self.assertIn("timing the default", first)
        held.wait_until_it_holds(run)
        run.send_signal(signal.SIGINT)
        output, errors = run.communicate(timeout=limit(60))
        self.assertEqual(run.returncode, 1, errors)
        self.assertRegex(output, "interrupted +before the first trial")
        self.assertNotIn("rejected by", output)
        self.assertNotIn("searching", errors)


if __name__ == "__main__":
    unittest.main()
