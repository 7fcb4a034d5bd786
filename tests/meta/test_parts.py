"""Protects: scripts/test.sh runs the quick tests and one part of the others at each commit, all parts in 62
commits, and says what it left out; each test is in one entry, quick or with one label; and of everything that the
project has, a quick test sees that it is broken."""

import collections
import fnmatch
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
LABELS = {"slow", "long", *(f"part{part}" for part in PARTS)}
STAND_IN = """#!/bin/sh
echo "$(basename "$0") $*, part $GRETA_PART" >>"$LOG"
case "$*" in
  *--show-only*) printf '"value" : [ "part%s" ]\\n' 0 0 1; echo '"value" : [ "slow" ]'; echo 'part slow' ;;
  "--preset part") exit "$RESULT" ;;
esac
"""


class Entries(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:  # ctest writes a log where it runs
            pathlib.Path(folder, "CTestTestfile.cmake").write_text(f'subdirs("{os.environ["GRETA_BUILD"]}")\n')
            shown = subprocess.run(["ctest", "--show-only=json-v1"], cwd=folder, check=True, capture_output=True)
        cls.tests = json.loads(shown.stdout)["tests"]
        cls.labels = [next((of["value"] for of in test["properties"] if of["name"] == "LABELS"), [])
                      for test in cls.tests]
        cls.quick = [test for test, labels in zip(cls.tests, cls.labels) if not labels]
        cls.run_quickly = [name for test in cls.quick
                           for name in " ".join(test["command"]).split("=")[-1].split(":")]

    @staticmethod
    def listed(program):
        """The names of a program's tests."""
        names, suite = [], ""
        for line in subprocess.run([program, "--gtest_list_tests"], check=True, capture_output=True,
                                   text=True).stdout.splitlines():
            word = line.split()[0]
            if line.startswith(" "):
                names.append(suite + word)
            elif word.endswith("."):
                suite = word
        return names

    def test_each_is_quick_or_has_one_label(self):
        self.assertLessEqual({len(labels) for labels in self.labels}, {0, 1})
        self.assertEqual({label for labels in self.labels for label in labels}, LABELS)

    def test_each_test_of_a_program_is_in_one_of_its_entries(self):
        run = collections.defaultdict(list)
        for test in self.tests:
            program, *words = test["command"]
            if words and words[0].startswith("--gtest_filter="):
                run[program] += words[0].split("=", 1)[1].split(":")
        self.assertGreater(len(run), 10)
        for program, names in run.items():
            with self.subTest(program):
                self.assertEqual(sorted(names), sorted(self.listed(program)))

    def test_each_pattern_of_quick_ones_matches_a_test(self):
        """One that matches none leaves tests to the parts that were to be quick. Devices for which Mesa compiles depend on
        the machine."""
        files = sorted(pathlib.Path(os.environ["GRETA_BUILD"], "tests").rglob("greta_test_*_suites.cmake"))
        self.assertGreater(len(files), 10)
        for file in files:
            settings = dict(re.findall(r'^set\((\w+) "?(.*?)"?\)$', file.read_text(), re.MULTILINE))
            listed = self.listed(settings["PROGRAM"])
            for pattern in filter(None, settings["QUICK"].split(":")):
                with self.subTest(settings["NAME"], pattern=pattern):
                    self.assertTrue(pattern.startswith("Gpus/") or fnmatch.filter(listed, pattern))

    def test_quick_ones_run_each_operation_in_each_language(self):
        operations = sorted(file.parent.name for file in (ROOT / "kernels/templates").glob("*/*.cpp")
                            if file.stem == file.parent.name)
        self.assertGreater(len(operations), 20)
        for operation in operations:
            case = "".join(word.capitalize() for word in operation.split("_"))
            for device in ("vulkan", "hip_host"):
                with self.subTest(operation, device=device):
                    self.assertTrue(any(re.search(rf"/({device}_\d_{case}|{operation}_{device}_\d)", name)
                                        for name in self.run_quickly))

    def test_quick_ones_have_each_failure_of_a_device(self):
        run = {name.split(".")[-1] for name in self.run_quickly}
        for fake in ("hip6", "cuda"):
            for failure in ("AnIllegalAddressLosesAllOfTheCardAndNothingElse", "ATimeoutLosesItsDeviceOnly",
                            "OutOfMemoryIsNotTheEnd", "ALaunchThatIsRefusedEndsItsSubmissionOnly"):
                self.assertIn(f"{failure}/{fake}", run)
        self.assertIn("NothingIsLeftBehind/hip5", run)
        for failure in ("AnIllegalAddress", "AnEndlessKernelIsStopped", "ALaneMissesAShuffle", "TwoThreadsWriteOneElement",
                        "AStopEndsACallThatDoesNotReturn", "ACallThatDoesNotReturnEndsTheProcess"):
            self.assertTrue(any(name.split("/")[-1] == failure for name in run), failure)

    def test_quick_ones_have_each_program_and_each_kind_of_fault(self):
        names = [test["name"] for test in self.quick]
        programs = sorted({test["name"].split(".")[0] for test in self.tests} - {"wide"})
        wanted = [*(rf"^{program}\." for program in programs),
                  r"cli\.Tune", r"cli\.Run\.", r"cli\.BenchRun\.", r"cli\.DatabaseLooks", r"cli\.Report\.",
                  r"cli\.Verify\.", r"cli\.Diagnose\.", r"cli\.Sanitize\.", r"cli\.DescribedKernels\.",
                  r"cli\.Faults\.\w+crashes", r"cli\.Faults\.\w+never_ends", r"cli\.Faults\.\w+out_of_bounds",
                  r"cli\.Faults\.\w+nan", r"cli\.Faults\.\w+clock", r"cli\.FakeFaults\.", r"cli\.KilledWorkers\.",
                  r"cli\.Resume\.", r"cli\.Interrupt", r"db\.Damage", r"db\.Kill", r"db\.Concurrency",
                  r"python\.TunedOnVulkan", r"c\.vulkan:0", r"c\.hip-host:0", r"c\.tuner_exports", r"device\.StallWatch",
                  r"device\.All/Conformance\w+", r"device_hip\.All/HipFault", r"device_hip\.HipEmulator",
                  r"device_hip_host\.HipHostSanitizer", r"device_hip_host\.HipHostMisuse",
                  r"device_hip_host\.All/HipHostRace", r"tuner\.WorkerEvaluator", r"tuner\.Kernels/PlantedBug",
                  *(rf"compiled\..*{gpu}" for gpu in ("gfx942", "gfx1201", "sm_90")
                    if any(test["name"].endswith(gpu) for test in self.tests))]
        for pattern in wanted:
            with self.subTest(pattern):
                self.assertTrue(any(re.search(pattern, name) for name in names))


class Script(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree, self.log = pathlib.Path(folder.name, "tree"), pathlib.Path(folder.name, "log")
        for name in ("scripts/setup.sh", "bin/cmake", "bin/ctest"):
            file = self.tree / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(STAND_IN)
            file.chmod(0o755)
        shutil.copy(ROOT / "scripts/test.sh", self.tree / "scripts")
        self.git("init", "--quiet")
        self.commit()

    def git(self, *words, **options):
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", *words], cwd=self.tree, check=True, **options)

    def commit(self):
        self.git("commit", "--quiet", "--allow-empty", "--message", "m")

    def run_script(self, *words, result=0, tree=None):
        self.log.write_text("")
        environment = {**os.environ, "PATH": f"{self.tree}/bin:{os.environ['PATH']}", "LOG": str(self.log),
                       "RESULT": str(result)}
        environment.pop("GRETA_PART", None)
        return subprocess.run([(tree or self.tree) / "scripts/test.sh", *words], capture_output=True, text=True,
                              env=environment)

    def part(self, *words, tree=None):
        run = self.run_script(*words, tree=tree)
        self.assertEqual(run.returncode, 0, run.stderr)
        return re.search("^ctest --preset part, part (.*)$", self.log.read_text(), re.MULTILINE)[1]

    def test_as_many_commits_run_all_parts(self):
        parts = []
        for _ in PARTS:
            parts.append(self.part())
            self.commit()
        self.assertEqual(sorted(parts), sorted(PARTS))
        self.assertEqual(self.part(), parts[0])

    def test_a_shallow_clone_takes_the_part_from_its_commit(self):
        self.git("add", ".")
        self.commit()
        clone = self.tree.parent / "clone"
        self.git("clone", "--quiet", "--depth", "1", f"file://{self.tree}", str(clone))
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=clone, check=True, capture_output=True, text=True).stdout
        self.assertEqual(self.part(tree=clone), PARTS[int(head[:4], 16) % len(PARTS)])

    def test_an_unpacked_archive_has_no_commits(self):
        shutil.rmtree(self.tree / ".git")
        self.assertEqual(self.part(), PARTS[0])

    def test_a_part_can_be_named(self):
        self.assertEqual(self.part("--part", "a"), "a")

    def test_what_is_left_out_is_said_and_failures_are_kept(self):
        run = self.run_script("--part", "3", result=8)
        self.assertEqual(run.returncode, 8)
        self.assertIn("part 3", run.stdout)
        self.assertRegex(run.stdout.splitlines()[-1], "Not run: 3 .* parts .* 1 slow")
        self.assertIn("-L ^(part[^3]|slow)$", self.log.read_text())

    def test_all_runs_every_part(self):
        self.assertEqual(self.run_script("--all").returncode, 0)
        self.assertIn("ctest --preset all,", self.log.read_text())
        self.assertIn("cmake --build --preset single,", self.log.read_text())
        self.assertNotIn("--preset part", self.log.read_text())

    def test_other_words_are_refused(self):
        for words in (["--part"], ["--part", "?"], ["--part", "10"], ["--al"], ["--all", "--all"]):
            with self.subTest(words):
                run = self.run_script(*words)
                self.assertEqual((run.returncode, self.log.read_text()), (2, ""))
                self.assertRegex(run.stderr, "\\A.*unknown argument .*allowed.*\n\\Z")


class Preset(unittest.TestCase):
    def test_leaves_out_the_labels_of_other_parts_only(self):
        presets = json.loads((ROOT / "CMakePresets.json").read_text())["testPresets"]
        pattern = next(preset for preset in presets if preset["name"] == "part")["filter"]["exclude"]["label"]
        for part in (*PARTS, ""):  # without GRETA_PART, no part runs
            left_out = re.compile(pattern.replace("$env{GRETA_PART}", part))
            self.assertEqual({label for label in LABELS if not left_out.search(label)},
                             {f"part{part}"} if part else set())


if __name__ == "__main__":
    unittest.main()
