"""Protects: greta-bench doctor --bundle packs what is needed to understand a run elsewhere: the
devices, the passed checks, and failures as kernels that can be run again. It contains no private
names, never replaces a file, leaves no partial file, and is not written without consent."""
import json
import os
import pty
import re
import shutil
import socket
import subprocess
import tarfile
import unittest

from bench_case import BenchCase
from cli_case import BENCH

# A compiler that generates wrong code for the naive matrix product: it skips the first step.
WRONG = """#!/bin/sh
case $1 in --version) exec {real} "$@";; esac
sed 's/(u32 i = 0; i < k;/(u32 i = 1; i < k;/' | {real} "$@"
"""
# A compiler that rejects it, and prints the user, the folder and the machine.
REFUSING = """#!/bin/sh
case $1 in --version) exec {real} "$@";; esac
text=$(cat)
case $text in *gemm_naive*)
  echo "$HOME/kernels/naive.hip:1: error: $USER on {host} in /home/trillian/x may not" >&2; exit 1;;
esac
printf '%s\\n' "$text" | {real} "$@"
"""


class Bundle(BenchCase):
    known_devices = None  # nothing is measured

    def setUp(self):
        super().setUp()
        self.file = self.folder / "bundle.tar.gz"
        # Folders and names that occur nowhere else.
        self.env.update(HOME=str(self.folder / "home-of-zaphod"), USER="zaphodbeeblebrox",
                        LOGNAME="zaphodbeeblebrox", ZAPHOD_SECRET="two heads")

    def doctor(self, *arguments, **options):
        return self.bench("doctor", "--db", self.db, "--no-lock", "--bundle", self.file, *arguments,
                          **options)

    def use_compiler(self, script):
        """Uses a fake C++ compiler for hip-host's kernels."""
        folder = self.folder / "home-of-zaphod" / "bin"
        folder.mkdir(parents=True)
        (folder / "c++").write_text(script.format(real=shutil.which("c++"),
                                                  host=socket.gethostname()))
        (folder / "c++").chmod(0o755)
        self.env.update(PATH=f"{folder}:{self.env['PATH']}",
                        XDG_CACHE_HOME=str(self.folder / "cache"))

    def contents(self):
        with tarfile.open(self.file, "r:gz") as archive:
            members = archive.getmembers()
            for member in members:
                self.assertTrue(member.isreg())
                self.assertEqual((member.uid, member.gid, member.uname, member.gname), (0, 0, "", ""))
            return {member.name.removeprefix("greta-bundle/"): archive.extractfile(member).read()
                    for member in members}

    def assert_nothing_private(self, contents):
        host = re.escape(socket.gethostname())
        private = re.compile(rf"zaphod|trillian|two heads|\b{host}\b".encode())
        for name, found in contents.items():
            if not name.endswith((".f64", ".bin")):  # random numbers may contain a short name
                self.assertIsNone(private.search(found), f"{name}: {found[:2000]}")
            self.assertIsNone(private.search(name.encode()))

    def test_healthy_devices(self):
        result = self.doctor("--device", "vulkan:0", "--yes")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        listed = subprocess.run(["tar", "tzf", self.file], capture_output=True, text=True, check=True)
        # The files in the bundle were listed with their sizes before it was written.
        before, _, after = result.stdout.partition(" gets these files:\n")
        self.assertIn("matrix", before)
        rows = after.splitlines()
        self.assertEqual([row.split()[-1] for row in rows[:-1]], listed.stdout.splitlines())
        self.assertTrue(rows[-1].startswith(f"{self.file} written, "), rows[-1])
        contents = self.contents()
        self.assertEqual(next(iter(contents)), "README.txt")
        for name in ("about.txt", "drivers.txt", "compilers.txt", "environment.txt"):
            self.assertGreater(len(contents[name]), 100, name)
        self.assertIn(b"everything passed", contents["about.txt"])
        for check in ("fill", "ultrasafe", "default", "f16"):
            self.assertIn(b"passed: ", contents[f"health/vulkan-0/{check}.txt"])
        self.assertRegex(contents["health/vulkan-0/default.txt"].decode(),
                         "(?m)^ok: attention dtype=f32 .* \\| ")
        self.assertFalse([name for name in contents if name.startswith("failed/")])
        self.assert_nothing_private(contents)

        # Everything that greta-tune devices reads is included, except what identifies a card.
        there = json.loads(self.run_tune("devices", "--json").stdout)
        packed = json.loads(contents["devices.json"])
        self.assertEqual([api["backend"] for api in packed], [api["backend"] for api in there])
        for old, new in zip(there, packed):
            for device in old["devices"]:
                del device["uuid"], device["fingerprint"]
            self.assertEqual(old["devices"], new["devices"])
            self.assertEqual(old["reason"], new["reason"])
        self.assertTrue(any("libvulkan" in path for api in packed
                            for path in api["libraries"] if api["backend"] == "vulkan"))

    def test_a_wrong_kernel_runs_again_from_the_bundle(self):
        self.use_compiler(WRONG)
        result = self.doctor("--device", "hip-host:1")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertRegex(result.stdout, "ultrasafe +FAILED, correctness: gemm ")
        contents = self.contents()
        self.assert_nothing_private(contents)
        trial = json.loads(contents["failed/hip-host-1-ultrasafe-1/trial.json"])
        self.assertEqual((trial["device"], trial["status"], trial["seed"]),
                         ("hip-host:1", "correctness", 1))
        self.assertIn(b"gemm_naive", contents["failed/hip-host-1-ultrasafe-1/kernel-0.hip"])
        with tarfile.open(self.file) as archive:
            archive.extractall(self.folder)
        case = self.folder / "greta-bundle/failed/hip-host-1-ultrasafe-1/case"
        again = self.run_tune("run-case", case)
        self.assertEqual(again.returncode, 1, again.stderr)
        self.assertIn("0 passed, 1 failed, 0 unusable", again.stdout)
        # Wrong at the same place by the same amount: the same code and inputs.
        self.assertIn(trial["problem"], again.stdout)
        self.assertIn(trial["config"], again.stdout)

    def test_what_compilers_say_names_nobody(self):
        self.use_compiler(REFUSING)
        result = self.doctor("--device", "hip-host:0")
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("FAILED, compile", result.stdout)
        contents = self.contents()
        self.assert_nothing_private(contents)
        log = contents["failed/hip-host-0-ultrasafe-1/log.txt"].decode()
        self.assertIn("~/kernels/naive.hip:1: error: USER on ", log)
        self.assertIn(" in ~/x may not", log)
        self.assertIn("failed/hip-host-0-ultrasafe-1/kernel-0.hip", contents)
        self.assertRegex(contents["README.txt"].decode(),
                         "(?s)Omitted or changed:\n.*failed/hip-host-0-ultrasafe-1/case: .*may not")

    def test_it_is_written_without_a_device(self):
        self.env.update(VK_DRIVER_FILES="/nowhere.json", VK_ICD_FILENAMES="/nowhere.json",
                        PATH=str(self.folder))
        result = self.doctor()
        self.assertEqual(result.returncode, 3, result.stdout + result.stderr)
        self.assertIn("no device can execute kernels", result.stderr)
        self.assertIn(b"no device can execute kernels", self.contents()["about.txt"])

    def test_a_driver_that_ends_its_process_is_in_it(self):
        library, manifest = self.folder / "driver.so", self.folder / "driver.json"
        subprocess.run(["c++", "-x", "c++", "-", "-shared", "-fPIC", "-o", library], check=True,
                       input=b"#include <cstdlib>\n__attribute__((constructor)) void f() { abort(); }\n")
        manifest.write_text(json.dumps({"file_format_version": "1.0.0", "ICD": {
            "library_path": str(library), "api_version": "1.3.0"}}))
        self.env.update(VK_DRIVER_FILES=str(manifest), VK_ICD_FILENAMES=str(manifest))
        self.refused(self.doctor(), 1, "listing devices failed", "vulkan", "signal 6")
        contents = self.contents()
        vulkan, = [api for api in json.loads(contents["devices.json"]) if api["backend"] == "vulkan"]
        self.assertIn("signal 6", vulkan["ended"])
        self.assertIn(b"signal 6", contents["about.txt"])

    def test_a_terminal_is_asked(self):
        self.env.update(VK_DRIVER_FILES="/nowhere.json", VK_ICD_FILENAMES="/nowhere.json",
                        PATH=str(self.folder))
        for answer, there in (("n", False), ("y", True)):
            process, terminal = pty.fork()
            if process == 0:
                os.execve(BENCH, [BENCH, "doctor", "--db", str(self.db), "--no-lock", "--bundle",
                                  str(self.file)], self.env)
            said = b""
            while b"[y/N]" not in said:
                said += os.read(terminal, 4096)
            self.assertIn(b"devices.json", said)
            self.assertFalse(self.file.exists())
            os.write(terminal, f"{answer}\n".encode())
            try:
                while os.read(terminal, 4096):
                    pass
            except OSError:  # the other end is closed
                pass
            _, status = os.waitpid(process, 0)
            os.close(terminal)
            self.assertEqual(self.file.exists(), there)
            self.assertEqual(os.waitstatus_to_exitcode(status), 3 if there else 1)

    def test_what_can_t_be_written_is_refused_before_anything_runs(self):
        self.file.write_text("mine")
        self.refused(self.doctor(timeout=20), 2, "--bundle", "bundle.tar.gz", "already exists")
        self.assertEqual(self.file.read_text(), "mine")
        self.file.unlink()
        self.file.symlink_to(self.folder / "nowhere")
        self.refused(self.doctor(timeout=20), 2, "already exists")
        self.file = self.folder / "missing" / "bundle.tar.gz"
        self.refused(self.doctor(timeout=20), 1, "--bundle", "can't be written")
        self.refused(self.bench("doctor", "--bundle", ""), 2, "--bundle", "needs a value")
        self.refused(self.bench("doctor", "--yes"), 2, "--yes", "--bundle")
        self.assertFalse(self.db.exists())


if __name__ == "__main__":
    unittest.main()
