"""Protects: whatever candidates, compilers, other processes, disks and clocks do, a tune ends with a right
winner, nothing that was recorded is lost, and the report says what happened. Candidates that hung or crashed are
not tried again."""
import json
import os
import resource
import sqlite3
import time
import unittest

from cli_case import SOURCE, WHOLE, Case, HeldCompiler, limit

# Candidates with this value of a parameter are faulty; the default has another one.
FAULTY = "UNROLL=4"
END = "  store_pack(args.c + at, narrow_pack<Out>(x));\n"
LOCKED_S = 60 if WHOLE else 1


class Faults(Case):
    known_devices = "vulkan:0,hip-host:0"
    problem = ["gemm", "--m", "64", "--n", "48", "--k", "40", "--variant", "tiled", "--range", "UNROLL=1,4",
               "--strategy", "random", "--device", "hip-host:0"]

    def tune(self, *more, budget="8", **options):
        run = self.run_tune(*self.problem, "--budget", budget, "--seed", "4", "--db", self.db, "--json", *more,
                            timeout=300, **options)
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout), run

    def templates(self, fault):
        """Returns a folder of templates in which candidates with UNROLL=4 are faulty."""
        text = (SOURCE / "kernels/templates/gemm/operands.hip").read_text()
        self.assertEqual(text.count(END), 1, "the template has changed: change this test, too")
        file = self.folder / "templates/gemm/operands.hip"
        file.parent.mkdir(parents=True, exist_ok=True)
        guarded = f"#if defined(UNROLL) && UNROLL == 4\n{fault}\n#endif\n"
        file.write_text(text.replace(END, guarded + END))
        return ["--templates", self.folder / "templates"]

    def check(self, report, status):
        """Expects a right winner without the fault, and that every trial is recorded with its end."""
        self.assertIsNotNone(report["winner"])
        self.assertTrue(report["winner"]["verdict"]["passed"])
        self.assertNotIn(FAULTY, report["winner"]["config_text"])
        rows = self.query("SELECT config, status FROM trials WHERE phase <> 'lost'")
        ended = {state for config, state in rows if FAULTY in config}
        self.assertEqual(ended, {status}, rows)
        self.assertEqual({state for config, state in rows if FAULTY not in config}, {"ok"}, rows)
        self.assertEqual(report["trials"]["total"], len(rows))
        self.assertGreater(report["trials"][status], 0)
        self.assertEqual(self.run_db("verify").returncode, 0)

    def expect_isolation(self, words, status):
        """No candidate is tried again by later sessions, unless they are asked to."""
        twice = f"SELECT config FROM trials WHERE status = '{status}' GROUP BY config HAVING count(*) > 1"
        again, run = self.tune(*words)
        self.assertGreater(again["not_tried"], 0)
        self.assertIsNotNone(again["winner"])
        text = self.run_tune(*self.problem, "--budget", "8", "--seed", "4", "--db", self.db, *words).stdout
        self.assertRegex(" ".join(text.split()), "not tried [0-9]+ candidates? that hung or crashed before")
        self.assertEqual(self.query(twice), [])
        retried, run = self.tune(*words, "--retry-failed")
        self.assertEqual(retried["not_tried"], 0)
        self.assertNotEqual(self.query(twice), [])

    def test_a_kernel_that_never_ends(self):
        words = self.templates("  for (volatile int i = 1; i != 0;) {\n  }")
        report, run = self.tune(*words, budget="3")
        self.check(report, "timeout")

    def test_a_kernel_that_crashes(self):
        words = self.templates("  __builtin_abort();")
        report, run = self.tune(*words, budget="4")
        self.check(report, "crash")

    def test_a_kernel_that_crashed_is_not_tried_again(self):
        words = self.templates("  __builtin_abort();")
        report, run = self.tune(*words)
        self.check(report, "crash")
        self.expect_isolation(words, "crash")

    def test_a_kernel_that_writes_out_of_bounds(self):
        words = self.templates("  if (row == 0 && col == 0) *(float*)(args.c + u64(args.m) * args.n + 8) = 1.0f;")
        report, run = self.tune(*words)
        self.check(report, "correctness")

    def test_a_kernel_that_returns_nan(self):
        report, run = self.tune(*self.templates('  x[0] = __builtin_nanf("");'))
        self.check(report, "correctness")

    def test_a_kernel_that_is_right_for_some_inputs_only(self):
        """The problem has alpha 1, for which the kernel is right; a small problem with another alpha finds it."""
        report, run = self.tune(*self.templates("  if (args.alpha != 1.0f) x[0] *= 1.5f;"))
        self.check(report, "correctness")

    def test_a_compiler_that_aborts(self):
        shims = self.folder / "bin"
        shims.mkdir()
        shim = shims / "c++"
        shim.write_text('#!/bin/sh\ncase "$*" in *--version*) exec /usr/bin/c++ "$@" ;; esac\ncat > "$0.$$"\n'
                        'if grep -q "define UNROLL 4$" "$0.$$"; then kill -ABRT $$; fi\n'
                        'exec /usr/bin/c++ "$@" < "$0.$$"\n')
        shim.chmod(0o755)
        env = dict(self.env, PATH=f"{shims}:{os.environ['PATH']}", XDG_CACHE_HOME=str(self.folder / "cache"))
        report, run = self.tune(env=env)
        self.check(report, "compile")
        self.assertIn("signal 6", " ".join(self.query("SELECT message || log FROM trials WHERE status = 'compile'")[0]))

    def test_a_database_that_another_process_locks(self):
        held = HeldCompiler(self.folder, self.env, free=2)  # the reference kernel and the default
        run = self.start(*self.problem, "--budget", "4", "--seed", "4", "--db", self.db, "--json", env=held.env)
        held.wait_until_it_holds(run)
        self.wait_for_trials(1)
        locker = sqlite3.connect(self.db, isolation_level=None)
        locker.execute("BEGIN IMMEDIATE")
        held.release()
        errors = ""
        while "another process writes" not in errors and run.poll() is None:
            errors += run.stderr.readline()
        time.sleep(LOCKED_S)
        locker.execute("ROLLBACK")
        locker.close()
        output, rest = run.communicate(timeout=limit(200))
        errors += rest
        self.assertEqual(run.returncode, 0, errors)
        report = json.loads(output)
        self.assertIsNotNone(report["winner"])
        self.assertTrue(report["stored"])
        self.assertEqual(self.query("SELECT count(*) FROM trials")[0][0], report["trials"]["total"])
        self.assertIn("another process writes", errors)

    def test_a_full_disk_and_the_run_after_it(self):
        words = [*self.problem, "--budget", "8", "--seed", "4", "--db", self.db, "--json"]
        size = 64 * 1024  # of SQLite's log

        def limit_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

        full = self.run_tune(*words, preexec_fn=limit_files, timeout=300)
        self.assertEqual(full.returncode, 1, full.stderr)
        self.assertIn(str(self.db), full.stderr)
        kept = self.query("SELECT config FROM trials ORDER BY id")
        report = json.loads(self.run_tune(*words, timeout=300).stdout)
        self.assertIsNotNone(report["winner"])
        self.assertEqual(report["resumed"], len(kept))
        self.assertEqual(self.query("SELECT config FROM trials ORDER BY id")[:len(kept)], kept)
        self.assertEqual(self.run_db("verify").returncode, 0)

    def test_a_clock_that_jumps(self):
        library = os.environ["GRETA_JUMPING_CLOCK"]
        words = [*self.problem, "--budget", "5s", "--seed", "4", "--db", self.db, "--json"]
        started = time.monotonic()
        run = self.run_tune(*words, env=dict(self.env, LD_PRELOAD=library))
        whole_s = time.monotonic() - started
        self.assertEqual(run.returncode, 0, run.stderr)
        report = json.loads(run.stdout)
        self.assertIsNotNone(report["winner"])
        self.assertGreater(report["trials"]["total"], 1)
        days = {stamp[:10] for stamp, in self.query("SELECT recorded_utc FROM trials")}
        self.assertGreater(len(days), 1, "the clock did not jump")
        self.assertEqual(report["trials"].get("timeout", 0), 0)
        # Trials say how long after the start they ended, as the steady clock here has it.
        spent = [seconds for seconds, in self.query("SELECT elapsed_s FROM trials ORDER BY id")]
        self.assertEqual([0, *spent, whole_s], sorted([0, *spent, whole_s]))
        self.assertGreater(spent[-1], 0)


if __name__ == "__main__":
    unittest.main()
