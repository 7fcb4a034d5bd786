"""Common parts of the tests of the tools: a temporary folder, running a tool, and checking
errors."""
import contextlib
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest

TUNE = os.environ["GRETA_TUNE"]
DB = os.environ["GRETA_DB"]
BENCH = os.environ["GRETA_BENCH"]
SOURCE = pathlib.Path(os.environ["GRETA_SOURCE"])
SMALL = ["gemm", "--m", "64", "--n", "48", "--k", "40"]
PATIENCE = float(os.environ.get("GRETA_PATIENCE", "1"))  # larger for builds with sanitizers
WHOLE = "GRETA_WHOLE" in os.environ  # also run repetitive parts: scripts/test.sh --all


def patient(seconds):
    """Returns the time limit for something that takes a normal build at most `seconds`."""
    return seconds * PATIENCE


def limit(seconds):
    """Returns the time limit for something that takes `seconds` on an idle machine. It only ends what hangs: a
    machine that builds something else at the same time takes many times as long."""
    return patient(max(300, seconds))


def quick(words, lock):
    """Returns options that shorten measurements."""
    flushing = [] if "--warm" in words or "--flush" in words else ["--flush", "1"]
    return flushing + ([] if lock or "--no-lock" in words else ["--no-lock"])


# A background job of a shell ignores it, and so would the tools.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Created once for all tests: compiled kernels, and databases of ceilings.
CACHE = pathlib.Path(tempfile.gettempdir(), "greta_cli_cache")


def whole(test):
    """Marks a test that scripts/test.sh --all runs: what it protects is also covered by smaller tests."""
    return test if WHOLE else None


def made_once(name, make):
    """Returns the file of this name, which the first process that needs it creates by
    make(path)."""
    CACHE.mkdir(exist_ok=True)
    file = CACHE / f"{os.stat(BENCH).st_mtime_ns}-{name}"
    with open(f"{file}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            with tempfile.TemporaryDirectory(dir=CACHE) as folder:
                made = pathlib.Path(folder, "made.db")
                make(made)
                os.replace(made, file)
    return file


# Devices whose ceilings tests need; the automatic one may be one of the others.
MEASURED = ["auto", "vulkan:0", "hip-host:0", "hip-host:2"]


def database_of_ceilings(devices, env):
    """Returns a database that contains the ceilings of these devices and of those before them in MEASURED, and
    nothing else. Measuring them takes seconds of both cores per device, so each is measured once."""
    last = max(map(MEASURED.index, devices.split(",")))

    def make(file):
        if last > 0:
            shutil.copy(database_of_ceilings(MEASURED[last - 1], env), file)
        preset = file.with_name("tiny.json")
        preset.write_text(json.dumps({"iterations": 1, "batch": 1, "problems": [
            {"op": "gemm", "m": 1, "n": 1, "k": 1}]}))
        # Flushing whole caches takes longer than the rest.
        subprocess.run([BENCH, "--preset", preset, "--untuned", "--no-lock", "--flush", "1", "--settle", "0",
                        "--device", MEASURED[last], "--db", file],
                       env=env, check=True, capture_output=True, timeout=limit(120))
    return made_once(f"ceilings-{last}.db", make)


def worker_of(pid):
    """Returns the process id of the tool's worker; None if there is none or it is still
    starting."""
    try:
        for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            if b"worker" in pathlib.Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0"):
                return int(child)
    except (FileNotFoundError, ProcessLookupError):
        pass
    return None


def wait_until_it_catches(run, number=signal.SIGINT):
    """Returns when a tool that was started handles a signal, or has ended."""
    while run.poll() is None:
        caught = re.search(r"SigCgt:\s*(\w+)", pathlib.Path(f"/proc/{run.pid}/status").read_text())
        if int(caught[1], 16) >> number - 1 & 1:
            break
        time.sleep(0.01)


class HeldCompiler:
    """A C++ compiler of hip-host, for the tools that have `env`, that compiles the first `free` kernels only: others
    wait until release(), or until the folder is removed. Nothing was compiled before."""

    def __init__(self, folder, env, free=0):
        self.program = folder / "held/c++"
        self.program.parent.mkdir()
        real = shutil.which("c++", path=env["PATH"])
        self.program.write_text(f"""#!/bin/sh
if [ "$1" = --version ]; then exec {real} --version; fi
number=1
while ! mkdir "$0.$number" 2>/dev/null; do number=$((number + 1)); done
while [ $number -gt {free} ] && [ -e "$0" ] && [ ! -e "$0.released" ]; do sleep 0.05; done
exec {real} "$@"
""")
        self.program.chmod(0o755)
        self.first_held = self.program.with_name(f"c++.{free + 1}")
        self.env = dict(env, PATH=f"{self.program.parent}:{env['PATH']}", XDG_CACHE_HOME=str(folder / "held/cache"))

    def release(self):
        self.program.with_name("c++.released").touch()

    def wait_until_it_holds(self, run):
        """Returns when a kernel waits, at the latest when the run has ended."""
        while run.poll() is None and not self.first_held.exists():
            time.sleep(0.02)


class Case(unittest.TestCase):
    # Devices whose ceilings the test's database contains from the start; None: no database yet.
    known_devices = None
    # Of tunes that are not given one, so that tests choose the same candidates, which are compiled once; None: random.
    seed = 1

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="greta_cli_"))
        self.db = self.folder / "tuned.db"
        self.env = dict(os.environ, HOME=str(self.folder / "home"))
        for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME"):
            self.env.pop(name, None)
        # No test depends on what GRETA ships, except those that say so.
        self.shipped = self.folder / "shipped"
        self.shipped.mkdir()
        self.env["GRETA_SHIPPED"] = str(self.shipped)
        CACHE.mkdir(exist_ok=True)
        self.env["XDG_CACHE_HOME"] = str(CACHE)
        # lavapipe compiles kernels three times faster without LLVM's optimisations.
        self.env.setdefault("GALLIVM_PERF", "nopt")
        if self.known_devices:
            self.know_ceilings(self.known_devices)

    def tearDown(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def know_ceilings(self, devices="auto", file=None):
        """Adds the ceilings of these devices to a database, by default the test's."""
        file = file or self.db
        shutil.copy(database_of_ceilings(devices, self.env), file)
        return file

    def command(self, arguments, lock):
        """Returns the command line of a test. Tests run concurrently and their times don't matter,
        so they don't wait for cards and flush little between samples."""
        words = [TUNE, *map(str, arguments)]
        short = ("gemm", "scaled_gemm", "softmax", "preset", "argmax", "model", "from-capture")
        if arguments and arguments[0] in short:
            words += quick(words, lock) + ([] if "--rounds" in words else ["--rounds", "4"])
            if self.seed is not None and not any(word.startswith("--seed") for word in words):
                words += ["--seed", str(self.seed)]
        return words

    def run_tune(self, *arguments, timeout=120, lock=False, **options):
        return subprocess.run(self.command(arguments, lock), env=options.pop("env", self.env),
                              capture_output=True, text=True, timeout=limit(timeout),
                              stdin=subprocess.DEVNULL, **options)

    def planted_templates(self, name, file, text, mutant):
        """Returns a folder for --templates in which a text of one template is replaced by a bug."""
        source = (SOURCE / "kernels/templates" / file).read_text()
        self.assertEqual(source.count(text), 1, f"the template has changed: change the bug, too: {text}")
        path = self.folder / name / file
        path.parent.mkdir(parents=True)
        path.write_text(source.replace(text, mutant))
        return self.folder / name

    def run_words(self, *words, timeout=120):
        """Runs a program without additional options in the test's folder."""
        return subprocess.run(words, env=self.env, capture_output=True, text=True, errors="replace",
                              timeout=limit(timeout), stdin=subprocess.DEVNULL, cwd=self.folder)

    def run_db(self, command, *arguments, db=None):
        return self.run_words(DB, command, *map(str, arguments), "--db", str(db or self.db))

    def start(self, *arguments, lock=False, env=None):
        return subprocess.Popen(self.command(arguments, lock), env=env or self.env, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                stdin=subprocess.DEVNULL)

    def refused(self, result, code, *words):
        """Expects exactly one line of error with these words, and the exit code."""
        self.assertEqual(result.returncode, code, result.stderr)
        lines = [line for line in result.stderr.splitlines() if line]
        self.assertEqual(len(lines), 1, result.stderr)
        for word in words:
            self.assertIn(word, lines[0])

    def query(self, sql):
        with contextlib.closing(sqlite3.connect(self.db)) as connection, connection:
            return connection.execute(sql).fetchall()

    def wait_for_trials(self, count, seconds=60):
        end = time.time() + limit(seconds)
        while time.time() < end:
            try:
                if self.query("SELECT count(*) FROM trials")[0][0] >= count:
                    return
            except sqlite3.OperationalError:
                pass
            time.sleep(0.05)
        self.fail(f"fewer than {count} trials within {seconds} s")


class TunedOnce(Case):
    """Tests of one database, which is tuned once: lavapipe's winners of `shapes`. Its path is
    `self.case.db`."""
    known_devices = "auto,vulkan:0"
    shapes = ()

    @classmethod
    def setUpClass(cls):
        cls.case = cls("setUp")
        Case.setUp(cls.case)
        for shape in cls.shapes:
            tuned = cls.case.run_tune(*shape, "--device", "vulkan:0", "--budget", 1, "--db", cls.case.db)
            assert tuned.returncode == 0, tuned.stderr

    @classmethod
    def tearDownClass(cls):
        cls.case.tearDown()
