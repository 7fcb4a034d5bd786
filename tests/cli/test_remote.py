"""Protects: greta-tune remote runs a command on another machine, shows what it writes as it comes, brings results and
files back, survives lost lines, and names what is wrong in one line. The other machine is this one, through an sshd of
the test's."""
import csv as csv_module
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

from cli_case import SMALL, TUNE, Case, HeldCompiler, limit
from ssh_server import Server

HERE = pathlib.Path(__file__).resolve().parent


class OverSsh(Case):
    known_devices = "hip-host:0"

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="greta_remote_"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        cls.server = Server(cls.shared)
        cls.addClassCleanup(cls.server.stop)
        for name, options in (("fake", []), ("broken", ["-DBROKEN"])):
            (cls.shared / name / "bin").mkdir(parents=True)
            subprocess.run([os.environ["GRETA_C_COMPILER"], HERE / "remote_program.c", *options, "-o",
                            cls.shared / name / "bin/greta-tune"], check=True)

    def remote_words(self, *words, ssh=None, build="fake", host=None):
        chosen = ["--build", self.shared / build] if build else []
        return list(map(str, [TUNE, "remote", "--ssh", ssh or self.server.ssh, "--db", self.db, *chosen,
                              host or self.server.host, *words]))

    def remote(self, *words, **options):
        return self.run_words(*self.remote_words(*words, **options))

    def tearDown(self):
        shutil.rmtree(self.server.home / ".cache/greta/remote/runs", ignore_errors=True)
        super().tearDown()

    def start_remote(self, *words, **options):
        self.errors = self.folder / "errors"
        with self.errors.open("w") as errors:
            return subprocess.Popen(self.remote_words(*words, **options), env=self.env, text=True, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=errors)

    def finished(self, process):
        """Returns the rest of standard output, and standard error."""
        rest = process.stdout.read()
        process.wait(timeout=limit(60))
        return rest, self.errors.read_text()

    def rows(self, file):
        with file.open(newline="") as text:
            return list(csv_module.DictReader(text))

    def runs(self):
        return list(self.server.home.glob(".cache/greta/remote/runs/*"))


class Remote(OverSsh):
    """With a program in place of greta-tune."""

    def test_arguments_arrive_as_they_are(self):
        odd = ["a b", "it's", "$HOME `id` $(id)", "x;y|z&", "*", "\\", "\"", "!", "-", "", "ü", "two\nlines", "~", "#"]
        result = self.remote("gemm", *odd)
        self.assertEqual(result.returncode, 0, result.stderr)
        *printed, db, file = result.stdout.split("]\n")[:-1]
        self.assertEqual(printed, ["[gemm", *(f"[{word}" for word in odd)])
        self.assertEqual(db, "[--db")
        self.assertEqual(self.runs(), [])

    def test_files_go_there_and_come_back(self):
        given = self.folder / "it's a 'file'"
        given.write_text("content\n")
        csv = self.folder / "rows.csv"
        csv.write_text("earlier\n")
        result = self.remote("gemm", "--show", given, f"--csv={csv}", "--csv", csv)
        self.assertIn("\ncontent\n", result.stdout, result.stderr)
        self.assertNotIn(str(given), result.stdout)
        self.assertEqual(csv.read_text(), "earlier\nrow\n")

    def test_the_build_is_copied_once(self):
        shutil.rmtree(self.server.home / ".cache", ignore_errors=True)
        self.assertIn("copying GRETA", self.remote("gemm").stderr)
        self.assertNotIn("copying", self.remote("gemm").stderr)
        self.assertEqual(self.remote("--clean").returncode, 0)
        self.assertFalse((self.server.home / ".cache/greta/remote").exists())

    def test_a_build_that_was_copied_in_part_is_not_there(self):
        builds = self.server.home / ".cache/greta/remote/builds"
        self.remote("--clean")
        # A copy that takes long, then finds that its line is cut.
        file = self.server.replace("tar", "touch half; sleep 3; exit 2")
        try:
            with self.start_remote("gemm") as process:
                end = time.time() + limit(30)
                while not list(builds.glob("*/half")):
                    self.assertLess(time.time(), end)
                    time.sleep(0.05)
                process.kill()
                self.server.cut()
        finally:
            file.unlink()
        result = self.remote("gemm")  # while the other copy is there
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("copying GRETA", result.stderr)
        build, = (one for one in builds.iterdir() if ".part." not in one.name)
        # One whose machine was restarted.
        left = pathlib.Path(f"{build}.part.{os.uname().nodename}.999999999")
        build.rename(left)
        result = self.remote("gemm")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("copying GRETA", result.stderr)
        self.assertFalse(left.exists())
        end = time.time() + limit(30)
        while list(builds.glob("*.part.*")):  # the first copy ends, and removes what it had
            self.assertLess(time.time(), end)
            time.sleep(0.1)
        self.assertEqual(list(builds.iterdir()), [build])

    def test_rows_that_were_added_here_are_kept(self):
        csv = self.folder / "rows.csv"
        for code in (1, 4):
            with self.subTest(code):
                csv.write_text("earlier\n")
                self.remote("gemm", "--csv", csv, "--code", code)
                with csv.open("a") as file:
                    file.write("here\n")
                self.remote("gemm", "--csv", csv, "--code", code)
                self.assertEqual(csv.read_text(), "earlier\nrow\nhere\nrow\n")
        with self.subTest("a run that ended without its caller"):
            csv.write_text("earlier\n")
            words = ("gemm", "--csv", csv, "--lines", 40)
            with self.start_remote("--retry", 0, *words) as process:
                for _ in range(7):
                    process.stdout.readline()
                self.server.cut()
                self.finished(process)
            csv.write_text("earlier\nhere\n")
            self.assertEqual(self.remote(*words).returncode, 0)
            self.assertEqual(csv.read_text(), "earlier\nhere\nrow\n")

    def test_exit_codes_and_both_streams(self):
        for code in (1, 3, 4):
            result = self.remote("gemm", "--code", code, "--lines", 10)
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertIn("line 10\n", result.stdout)
            self.assertIn("error 10\n", result.stderr)
        self.assertEqual(len(self.runs()), 1)  # that of 1, which would go on

    def test_lines_come_at_once(self):
        with self.start_remote("gemm", "--lines", 4000) as process:
            lines = [process.stdout.readline() for _ in range(7)]
            self.assertEqual(lines[-1], "line 2\n")
            self.assertIsNone(process.poll())
            self.refused(self.remote("--clean"), 1, "there: a command runs there: ")
            process.send_signal(signal.SIGINT)
            rest, errors = self.finished(process)
        self.assertIn(f"stopped by {int(signal.SIGTERM)}\n", rest, errors)
        self.assertNotIn("line 4000\n", rest)
        self.assertEqual(process.returncode, 1)

    def test_a_lost_line_is_taken_up_again(self):
        with self.start_remote("gemm", "--lines", 60) as process:
            seen = [process.stdout.readline() for _ in range(10)]
            self.assertGreater(self.server.cut(), 0)
            rest, errors = self.finished(process)
        self.assertEqual(process.returncode, 0, errors)
        lines = [line for line in ("".join(seen) + rest).splitlines() if line.startswith("line")]
        self.assertEqual(lines, [f"line {i}" for i in range(1, 61)])
        self.assertEqual(errors.count("error 10\n"), 1)
        self.assertIn("there: the line is lost; the command goes on there", errors)

    def test_a_line_that_is_lost_between_is_taken_up_again(self):
        """While the build is copied there, while the command starts, and while its files come back."""
        for name, script, words in (("tar", "sleep 2", ("-xzf",)), ("setsid", "sleep 2", ()), ("tar", "sleep 2", ("-czf",))):
            with self.subTest(name=name, words=words):
                self.remote("--clean")
                reached, program = self.folder / f"reached-{name}{''.join(words)}", shutil.which(name)
                case = "|".join(f"*{word}*" for word in words) or "*"
                file = self.server.replace(name, f'case "$*" in {case}) [ -e {reached} ] || {{ touch {reached}; {script}; exit 1; }};; '
                                                 f'esac; exec {program} "$@"')
                csv = self.folder / f"rows{name}{''.join(words)}.csv"
                try:
                    with self.start_remote("gemm", "--csv", csv, "--lines", 3) as process:
                        end = time.time() + limit(60)
                        while not reached.exists():
                            self.assertLess(time.time(), end)
                            time.sleep(0.05)
                        self.assertGreater(self.server.cut(), 0)
                        said, errors = self.finished(process)
                finally:
                    file.unlink()
                self.assertEqual(process.returncode, 0, errors)
                self.assertIn("there: the line is lost", errors)
                self.assertEqual(said.count("line 3\n"), 1)
                self.assertEqual(csv.read_text(), "row\n")

    def test_the_same_call_finds_a_command_that_goes_on(self):
        with self.start_remote("--retry", 0, "gemm", "--lines", 40) as process:
            for _ in range(7):
                process.stdout.readline()
            self.server.cut()
            _, errors = self.finished(process)
        self.assertEqual(process.returncode, 1)
        self.assertRegex(errors, "there: the line is lost.*the command goes on there, and the same call finds it")
        again = self.remote("gemm", "--lines", 40)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertRegex(again.stderr, "there: the command (runs there already|has ended there)")
        self.assertEqual([line for line in again.stdout.splitlines() if line.startswith("line")],
                         [f"line {i}" for i in range(1, 41)])

    def test_a_command_that_was_killed_there_starts_again(self):
        """As after a restart of the machine: neither run.sh nor its program is left, and there is no exit code."""
        with self.start_remote("gemm", "--lines", 4000) as process:
            for _ in range(6):
                process.stdout.readline()
            pid = int((self.runs()[0] / "pid").read_text())
            shell = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
            os.kill(shell, signal.SIGKILL)
            os.kill(pid, signal.SIGKILL)
            _, errors = self.finished(process)
        self.assertEqual(process.returncode, 1)
        self.assertEqual(errors.splitlines()[-1], "greta-tune: there: the command ended without a result; the same call goes on "
                         "where it stopped")
        with self.start_remote("gemm", "--lines", 4000) as process:
            self.assertEqual([process.stdout.readline() for _ in range(6)][-1], "line 1\n")
            process.send_signal(signal.SIGTERM)
            self.finished(process)

    def test_what_is_wrong_is_one_line(self):
        with self.subTest("unreachable"):
            self.refused(self.remote("gemm", ssh=self.server.client("user_key", 1)), 1, "there: can't be reached: ", "refused")
            self.refused(self.remote("gemm", host="nowhere.invalid"), 1, "nowhere.invalid: can't be reached: ssh: Could not resolve")
        with self.subTest("login"):
            self.refused(self.remote("gemm", ssh=self.server.client("other_key", self.server.port)), 1,
                         "there: refuses the login", "Permission denied")
        self.remote("--clean")
        for name, script, message in (
                ("uname", "[ $1 = -s ] && echo Linux || echo sparc64", "there: has the architecture sparc64, and the programs are for"),
                ("uname", "echo Plan9", "there: runs Plan9, and GRETA needs Linux"),
                ("df", "echo x; echo /dev/sda1 1000 990 10 99% /", "there: no space: "),
                ("tar", "echo 'tar: ./bin: Cannot write: No space left on device' >&2; echo 'tar: Error exit' >&2; exit 2",
                 "there: tar: ./bin: Cannot write: No space left on device"),
                ("sh", "exit 0", "there: does not answer as a system with sh")):
            with self.subTest(message):
                file = self.server.replace(name, script)
                try:
                    result = self.remote("--quiet", "gemm")
                finally:
                    file.unlink()
                self.refused(result, 1, message)
        self.refused(self.remote("--quiet", "gemm", build="broken"), 1, "there: greta-tune: error while loading shared libraries",
                     "--build names a build that starts there")
        self.assertEqual(list(self.server.home.glob(".cache/greta/remote/builds/*")), [])

    def test_mistakes_are_one_line(self):
        for words, message in ((("show",), "remote: runs operations"), ((), "remote: runs operations"),
                               (("gemm", "--keep-failed", "x"), "--keep-failed: is not available with remote"),
                               (("gemm", f"--try={self.folder}/"), "is a folder; remote takes only files along"),
                               (("gemm", "--csv", "/no/folder/x.csv"), "there is no folder"),
                               (("bench", "--export", "--preset", "perf"), "--export: needs a FILE with remote"),
                               (("bench", "--preset", "perf", "--export"), "--export: needs a FILE with remote"),
                               (("bench", "--benchmark_out=/no/folder/x.json"), "there is no folder"),
                               (("--folder", "a b", "gemm"), "--folder")):
            with self.subTest(words):
                result = self.run_words(*self.remote_words()[:-1], *map(str, words[:2] if words[:1] == ("--folder",) else ()),
                                        self.server.host, *map(str, words[2:] if words[:1] == ("--folder",) else words))
                self.refused(result, 2, message)
        self.refused(self.remote("gemm", host="-oProxyCommand=x"), 2, "")
        self.refused(self.remote("gemm", ssh="''"), 1, "")
        self.refused(self.remote("gemm", build="none"), 1, "none: has no bin/greta-tune")


class RemoteTune(OverSsh):
    """With greta-tune itself."""
    words = (*SMALL, "--strategy", "random", "--seed", "3", "--device", "hip-host:0", "--flush", "1", "--no-lock")

    def test_results_are_merged(self):
        csv = self.folder / "rows.csv"
        result = self.remote(*self.words, "--variant", "naive", "--budget", 3, "--csv", csv, build=None)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("\n  winner ", result.stdout)
        self.assertRegex(result.stderr, rf"there: 1 result added, .*; 1 session with \d+ trials; stored in {self.db}\n")
        self.assertEqual(self.query("SELECT count(*) FROM winners"), [(1,)])
        self.assertGreaterEqual(self.query("SELECT count(*) FROM trials")[0][0], 3)
        self.assertGreaterEqual(len(csv.read_text().splitlines()), 4)
        self.assertEqual(self.runs(), [])
        self.assertNotIn("measuring peak", result.stderr)  # known here, and taken along

    def test_an_interrupted_run_keeps_its_trials_and_goes_on(self):
        # More configurations than the budget, which compile fast.
        words = ("gemm", "--m", 1, *self.words[3:], "--variant", "gemv", "--budget", 14, "--json-lines")
        free = 4  # the reference kernel, the default and two candidates
        held = HeldCompiler(self.folder, self.env, free)
        program = self.server.replace("c++", f'exec {held.program} "$@"')
        try:
            with self.start_remote(*words, build=None) as process:
                while '"trial"' not in process.stdout.readline():
                    self.assertIsNone(process.poll())
                held.wait_until_it_holds(process)
                process.send_signal(signal.SIGINT)
                _, errors = self.finished(process)
        finally:
            held.release()
            program.unlink()
        self.assertEqual(process.returncode, 1, errors)
        kept = self.query("SELECT count(*) FROM trials")[0][0]
        self.assertIn(kept, range(1, free + 1))
        again = self.remote(*words, build=None)
        self.assertEqual(again.returncode, 0, again.stderr)
        events = [json.loads(line)["event"] for line in again.stdout.splitlines()]
        self.assertEqual(events[0], "resume")
        self.assertGreater(self.query("SELECT count(*) FROM trials")[0][0], kept)
        self.assertEqual(self.query("SELECT count(*) FROM winners"), [(1,)])

    def test_a_missing_gpu_is_one_line(self):
        listed = json.loads(self.run_tune("devices", "--json").stdout)
        if any(device["kind"] != "CPU" and device["usable"] for backend in listed for device in backend["devices"]):
            self.skipTest("there is a GPU here")
        self.refused(self.remote("--quiet", "gemm", "--m", 8, "--n", 8, "--k", 8, build=None), 3, "there: no GPU that GRETA can use: ",
                     "libcuda.so.1", "--device hip-host:0")

    def test_benchmarks(self):
        """Also that baselines that a preset's gates name are taken along, and that files keep their names, which are those
        of presets."""
        (self.folder / "presets").mkdir()
        csv, google = self.folder / "bench.csv", self.folder / "bench.json"
        preset = self.folder / "presets/mine.json"
        problem = {"op": "gemm", "m": 8, "n": 8, "k": 8}
        words = ("bench", "--preset", preset, "--untuned", "--device", "hip-host:0", "--no-lock", "--flush", 1, "--export", csv)
        preset.write_text(json.dumps({"iterations": 1, "batch": 1, "problems": [problem]}))
        result = self.remote(*words, f"--benchmark_out={google}", build=None)
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        row, = self.rows(csv)
        self.assertEqual(row["preset"], "mine")
        self.assertIn("benchmarks", json.loads(google.read_text()))
        problem["expect"] = ">= 0.0001x ../bench.csv"
        preset.write_text(json.dumps({"iterations": 1, "batch": 1, "problems": [problem]}))
        result = self.remote(*words, build=None)
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        self.assertEqual(len(self.rows(csv)), 2)
        problem["expect"] = f">= 0.0001x {csv}"
        preset.write_text(json.dumps({"iterations": 1, "batch": 1, "problems": [problem]}))
        self.refused(self.remote(*words, build=None), 2, "names a file by its absolute path")


if __name__ == "__main__":
    import unittest
    unittest.main()
