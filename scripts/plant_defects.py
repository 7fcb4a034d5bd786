#!/usr/bin/env python3
"""Plants the defects of tests/meta/defects/ and determines whether the fast test suite finds each of them.

A defect is a patch with a header: what is planted, and the suites that find it, as PROGRAM.SUITE. Each defect is
planted in a copy of the tree that has a build folder of its own; the tree itself is never changed. Of the copy, only
the programs that hold these suites are built. Tests with the labels long and slow, which scripts/test.sh excludes,
do not run. At first the suites of all defects run without a defect and must pass.

The exit code is 1 if a defect is missed, if its patch does not apply or compile, or if a suite fails without one.
"""
import argparse
import csv
import dataclasses
import filecmp
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
DEFECTS = ROOT / "tests/meta/defects"
PRESET = "dev"
TOOLS = ("greta-tune", "greta-bench", "greta-db", "greta-run", "greta_fake_hip6")


@dataclasses.dataclass
class Defect:
    file: pathlib.Path
    planted: str
    suites: list

    @property
    def name(self):
        return self.file.stem


@dataclasses.dataclass
class Outcome:
    verdict: str  # found, missed, or why this cannot be said
    tests: str = ""
    log: str = ""
    build_seconds: float = 0
    test_seconds: float = 0


def read(file):
    """The defect in a patch file, whose first two lines are `Defect: TEXT` and `Found by: SUITE…`."""
    match = re.match(r"Defect: (.+)\nFound by: (\S.*)\n(?=\n?---)", file.read_text())
    if match is None:
        raise ValueError(f"{file} lacks the header lines 'Defect: TEXT' and 'Found by: SUITE…'")
    return Defect(file, match[1], match[2].split())


def read_all(folder=DEFECTS):
    return [read(file) for file in sorted(folder.glob("*.patch"))]


def apply(defect, tree, *options):
    """None if the patch of a defect applies to a tree, else the reason. The tree need not be a repository: git would
    ignore the patch in an ignored folder of one, so git gets an empty one."""
    result = subprocess.run(["git", "apply", *options, str(defect.file)], cwd=tree, capture_output=True, text=True,
                            env={**os.environ, "GIT_DIR": os.devnull})
    return result.stderr.strip() if result.returncode else None


def files_of(patch):
    return re.findall(r"^\+\+\+ b/(.+)$", patch.read_text(), re.MULTILINE)


def targets_of(suites):
    """Build targets of the programs that hold suites."""
    targets = set()
    for program in {suite.split(".")[0] for suite in suites}:
        targets.update({"cli": TOOLS, "c": ("greta_test_c",), "meta": (), "python": (*TOOLS, "greta_c", "greta_tuner_c")}
                       .get(program, (f"greta_test_{program}",)))
    return sorted(targets)


def pattern_of(suites):
    """A regular expression of the names that CTest has for the tests of suites (tests/discover_suites.cmake). CTest
    allows nine parentheses, so all programs share one list of suites."""
    programs, names = (sorted(set(words)) for words in zip(*(suite.split(".", 1) for suite in suites)))
    return rf"(^| )({'|'.join(programs)})\.([^ ]*/)?({'|'.join(names)})([./ ]|$)"


def run(command, folder, seconds, **variables):
    """(output, exit code); the code is None after a timeout. Stops all processes of the command at an interrupt."""
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
                               env={**os.environ, **variables})
    try:
        return process.communicate(timeout=seconds)[0], process.returncode
    except BaseException as error:
        os.killpg(process.pid, signal.SIGKILL)
        output = process.communicate()[0]
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        return output, None


class Scratch:
    """A copy of the tree, with a build folder that all defects share."""

    def __init__(self, folder, jobs, seconds, cmake_options):
        self.tree = folder.resolve() / "tree"
        self.build = self.tree / "build" / PRESET
        self.jobs, self.seconds, self.cmake_options = jobs, seconds, cmake_options

    def copy(self):
        """Copies files that differ, so that a build repeats nothing else. Removes what an interrupted run planted."""
        listing = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                                 capture_output=True, text=True, check=True).stdout
        names = {name for name in listing.split("\0") if name and (ROOT / name).is_file()}
        for name in names:
            self.restore(name)
        for file in self.tree.rglob("*"):
            name = file.relative_to(self.tree)
            if name.parts[0] != "build" and file.is_file() and str(name) not in names:
                file.unlink()

    def restore(self, name):
        if not (self.tree / name).is_file() or not filecmp.cmp(ROOT / name, self.tree / name, shallow=False):
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.tree / name)  # with a new time, so that it is built again

    def configure(self):
        output, code = run(["cmake", "--preset", PRESET, *self.cmake_options], self.tree, 600)
        if code != 0:
            raise RuntimeError(output)

    def judge(self, suites, stop):
        """Builds and runs suites. stop: at the first failure. A baseline has no time limit of its own."""
        start = time.monotonic()
        targets = targets_of(suites)
        output, code = run(["ninja", "-C", str(self.build), "-j", str(self.jobs), *targets], self.tree, None) \
            if targets else ("", 0)
        built = time.monotonic()
        if code != 0:
            return Outcome("does not compile", log=output, build_seconds=built - start)
        command = ["ctest", "--test-dir", str(self.build), "-j", str(self.jobs), "-R", pattern_of(suites), "-LE",
                   "long|slow", "--no-tests=error", "--output-on-failure", *(["--stop-on-failure"] if stop else [])]
        output, code = run(command, self.tree, self.seconds if stop else None, GTEST_FAIL_FAST="1" if stop else "0")
        failed = sorted(re.findall(r"^\s*\d+/\d+ Test +#\d+: (.+?) \.*\*\*\*(?!Not Run)", output, re.MULTILINE))
        if code is None:
            # A test that hangs may find the defect, or the machine may be slow: nothing is proved.
            if not failed:
                return Outcome("no end", f"after {self.seconds} s", output, built - start, time.monotonic() - built)
        elif code != 0 and not failed:
            return Outcome("tests do not run", log=output, build_seconds=built - start)
        return Outcome("found" if failed else "missed", " ".join(name.replace(" ", "") for name in failed), output,
                       built - start, time.monotonic() - built)

    def plant(self, defect):
        if trouble := apply(defect, self.tree):
            return Outcome("does not apply", log=trouble)
        try:
            return self.judge(defect.suites, stop=True)
        finally:
            for name in files_of(defect.file):
                self.restore(name)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], metavar="NAME", help="defects whose name contains a NAME")
    parser.add_argument("--csv", type=pathlib.Path, help="append a row for each defect")
    parser.add_argument("--logs", type=pathlib.Path, metavar="FOLDER", help="keep the output of builds and tests")
    parser.add_argument("--scratch", type=pathlib.Path, default=ROOT / "build/defects", metavar="FOLDER",
                        help="for the copy of the tree and its build; kept for the next run (default: build/defects)")
    parser.add_argument("--cmake", action="append", default=[], metavar="OPTION", help="another option of CMake")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=int, default=120, help="limit for the tests of a defect (default: 120)")
    parser.add_argument("--no-baseline", action="store_true", help="do not run the suites without a defect")
    return parser.parse_args()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = parse()
    defects = [one for one in read_all() if any(word in one.name for word in options.only)]
    if not defects:
        sys.exit(f"no defect of {DEFECTS} has such a name")
    scratch = Scratch(options.scratch, options.jobs, options.seconds, options.cmake)
    scratch.copy()
    scratch.configure()
    if not options.no_baseline:
        baseline = scratch.judge({suite for one in defects for suite in one.suites}, stop=False)
        if baseline.verdict != "missed":
            sys.exit(f"{baseline.log}\nwithout a defect: {baseline.verdict} {baseline.tests}")
        print(f"without a defect: all pass, {baseline.test_seconds:.0f} s", flush=True)
    missed = 0
    for one in defects:
        outcome = scratch.plant(one)
        missed += outcome.verdict != "found"
        print(f"{one.name:<32} {outcome.verdict:<18} {outcome.build_seconds:4.0f} s + {outcome.test_seconds:3.0f} s  "
              f"{outcome.tests}", flush=True)
        if options.logs:
            options.logs.mkdir(parents=True, exist_ok=True)
            (options.logs / f"{one.name}.log").write_text(outcome.log)
        if options.csv:
            new = not options.csv.exists()
            with options.csv.open("a", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                if new:
                    writer.writerow("defect planted verdict found_by build_seconds test_seconds".split())
                writer.writerow([one.name, one.planted, outcome.verdict, outcome.tests,
                                 f"{outcome.build_seconds:.0f}", f"{outcome.test_seconds:.0f}"])
    print(f"{len(defects) - missed} of {len(defects)} found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
