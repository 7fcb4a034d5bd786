"""Protects: the scripts work as documented, with fake programs instead of external ones."""

import getpass
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BASH = "/bin/bash"


class ScriptTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.bin = self.folder / "bin"
        self.bin.mkdir()

    def program(self, name, body):
        path = self.bin / name
        path.write_text(f"#!{BASH}\n{body}\n")
        path.chmod(0o755)

    def run_script(self, *arguments, path):
        return subprocess.run([BASH, ROOT / "scripts" / arguments[0], *arguments[1:]],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env={"PATH": path, "HOME": str(self.folder)})


class Setup(ScriptTest):
    def set_up(self, missing, *arguments, root=True, codename="bookworm"):
        """Runs setup.sh on a system that lacks the packages `missing`."""
        self.calls = self.folder / "calls"
        self.program("dpkg-query",
                     f'[[ " {missing} " == *" ${{!#}} "* ]] && exit 1; echo -n installed')
        self.program("apt-get", f'echo "$*" >>{self.calls}')
        script = (ROOT / "scripts" / "setup.sh").read_text()
        copy = self.folder / "setup.sh"
        release = self.folder / "os-release"
        release.write_text(f"VERSION_CODENAME={codename}\n")
        copy.write_text(script.replace("EUID != 0", "0" if root else "1")
                        .replace("/etc/os-release", str(release)))
        return subprocess.run([BASH, copy, *arguments], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, env={"PATH": f"{self.bin}:/usr/bin:/bin"})

    def test_nothing_missing_touches_nothing(self):
        result = self.set_up("", "test")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        self.assertFalse(self.calls.exists())

    def test_installs_only_what_is_missing(self):
        result = self.set_up("ninja-build libfmt-dev")
        self.assertEqual(result.returncode, 0, result.stderr)
        update, install = self.calls.read_text().splitlines()
        self.assertTrue(update.endswith(" update"))
        self.assertTrue(install.endswith(" ninja-build libfmt-dev"), install)

    def test_test_packages_are_asked_for_by_name(self):
        self.assertEqual(self.set_up("shellcheck").stdout, "")
        self.assertIn("shellcheck", self.set_up("shellcheck", "test").stdout)

    def test_the_newest_clang_of_each_distribution_is_for_tests(self):
        for codename, clang in (("bookworm", "clang-22"), ("noble", "clang-20")):
            with self.subTest(codename):
                self.assertEqual(self.set_up(clang, codename=codename).stdout, "")
                self.assertEqual(self.set_up(clang, "test", codename=codename).stdout,
                                 f"Installing with apt: {clang}\n")

    def test_without_root_and_sudo_is_one_line_that_names_the_packages(self):
        self.program("sudo", "exit 1")
        result = self.set_up("libfmt-dev", root=False)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(len(result.stderr.splitlines()), 1)
        self.assertIn("libfmt-dev", result.stderr)
        self.assertFalse(self.calls.exists())

    def test_unknown_argument(self):
        result = self.run_script("setup.sh", "everything", path="/usr/bin:/bin")
        self.assertEqual(result.returncode, 1)
        self.assertIn("'everything'; allowed: test", result.stderr)


class MeasureGpu(ScriptTest):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "out"
        self.program("greta-tune", 'echo "$*"; echo "$*" >>"$(dirname "$0")/calls"')
        self.program("greta_test_device", "exit 3")
        self.program("greta_test_kernels", "exit 0")
        self.program("greta-bench", 'echo "$LD_LIBRARY_PATH"')
        self.program("greta_compile_benchmark", 'echo "compiled with $*"')

    def measure(self, *arguments):
        return self.run_script("measure_gpu.sh", self.out, "--bin", self.bin, *arguments,
                               path="/usr/bin:/bin")

    def calls(self):
        return (self.bin / "calls").read_text().splitlines()

    def test_a_failing_part_does_not_stop_the_rest(self):
        peers = self.folder / "peers.py"
        peers.write_text("import sys; print(sys.argv[1:])")
        result = self.measure("--peers", peers, "--lib", self.folder)
        self.assertEqual(result.returncode, 1, result.stderr)
        summary = (self.out / "summary.txt").read_text()
        for api in ("hip", "vulkan"):
            self.assertRegex(summary, rf"(?m)^conformance-{api} +exit +3")
            self.assertRegex(summary, rf"(?m)^compile-{api} +exit +0")
            for operation in ("gemm", "softmax", "attention"):
                self.assertRegex(summary, rf"(?m)^verify-{api}-{operation} +exit +0")
            for problem in ("gemm-f32-4096", "gemm-f16-1x4096", "rope-f16-4096x32"):
                self.assertRegex(summary, rf"(?m)^tune-{api}-{problem} +exit +0")
        for part in ("devices", "kernels", "compare-gemm-f16-4096", "benchmark", "peers-gemm",
                     "peers-rows", "peers-attention", "preset"):
            self.assertRegex(summary, rf"(?m)^{part} +exit +0")
        self.assertIn("compiled with --device=hip:0", summary)
        self.assertEqual((self.out / "device-benchmark.json").read_text(), f"{self.folder}\n")
        self.assertIn("copy,gemm", (self.out / "peers-gemm.csv").read_text())
        self.assertLessEqual(len(list(self.out.iterdir())), 9)

    def test_parts_run_what_was_asked_for_and_groups_of_it(self):
        result = self.measure("--parts", "devices,tune-vulkan-gemm,compare-gemm-f16-4095", "--budget", "7")
        self.assertEqual(result.returncode, 0, result.stderr)
        calls = self.calls()
        self.assertEqual(calls[0], "devices")
        self.assertEqual(len(calls), 9)
        self.assertTrue(all("--device vulkan:0 --budget 7" in call for call in calls[1:8]), calls)
        self.assertIn("--m 4095 --n 4095 --k 4095 --dtype f16 --device hip:0,vulkan:0", calls[8])

    def test_devices_may_be_others(self):
        result = self.measure("--devices", "hip-host:2", "--problems", "5", "--parts",
                              "verify-hip-host-gemm")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(self.calls()), 1)
        self.assertIn("verify gemm --device hip-host:2 --problems 5", self.calls()[0])

    def test_every_part_but_the_preset_ends_within_nine_minutes(self):
        listed = self.measure("--parts", "list")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertFalse(self.out.exists())
        lines = listed.stdout.splitlines()
        self.assertGreater(len(lines), 20)
        for line in lines:
            name, _, _, seconds, _ = line.split()
            self.assertTrue(name == "preset" or int(seconds) <= 540 - 30, line)

    def test_bad_usage(self):
        for arguments in (["--parts", "nonsense"], ["--lib", "/nowhere"], ["--budget"]):
            with self.subTest(arguments):
                self.assertEqual(self.measure(*arguments).returncode, 2)
        self.assertFalse(self.out.exists())


class RunPresets(ScriptTest):
    """A fake greta-bench writes its arguments, and a fake ssh runs commands on this machine."""

    def setUp(self):
        super().setUp()
        self.build = self.folder / "build"
        (self.build / "bin").mkdir(parents=True)
        self.bench = self.build / "bin/greta-bench"
        self.bench.write_text(f"""#!{BASH}
while (($#)); do
  case $1 in --preset) preset=$2 ;; --export) file=$2 ;; --db) db=$2 ;; --fail) exit 1 ;; esac
  shift
done
[[ -f $preset ]] || {{ echo "no $preset"; exit 2; }}
[[ $preset != *bad* ]] || exit 1
mkdir -p "$(dirname "$file")"
echo "op,us" >"$file"
echo "in $PWD with $LD_LIBRARY_PATH and database $(cat "$db" 2>/dev/null)"
""")
        self.bench.chmod(0o755)
        (self.build / "bin/libbenchmark.so.1").write_text("")
        self.host_files = self.folder / "host"
        self.host_files.mkdir()
        self.program("ssh", f'[[ $1 == there ]] || exit 255; shift\n'
                            f'TMPDIR={self.host_files} exec {BASH} -c "$*"')

    def test_local_runs_every_preset(self):
        bad = self.folder / "bad.json"
        bad.write_text("{}")
        out = self.folder / "out"
        result = self.run_script("run_presets_local.sh", "--bin", self.build / "bin", "--out", out,
                                 "--presets", f"{bad},smoke,device", path="/usr/bin:/bin")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("preset bad failed", result.stderr)
        self.assertEqual(sorted(file.name.split("_")[1] for file in out.iterdir()),
                         ["device.csv", "smoke.csv"])

    def test_local_calls_of_one_date_share_their_files(self):
        out = self.folder / "out"
        for _ in range(2):
            result = self.run_script("run_presets_local.sh", "--bin", self.build / "bin", "--out", out,
                                     "--presets", "smoke", "--date", "2026-11-20", "--", "--resume",
                                     path="/usr/bin:/bin")
            self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([file.name for file in out.iterdir()], ["2026-11-20_smoke.csv"])

    def test_local_usage(self):
        for words, expected in ((("--bin", self.folder), "no greta-bench"), (("--bin",), "a value"),
                                (("--nonsense", "x"), "--nonsense"), (("--lib", "/none"), "--lib"),
                                (("--bin", self.build / "bin", "--date", "x"), "--out"),
                                (("--bin", self.build / "bin", "--out", self.folder, "--date", "../x"),
                                 "part of a file's name")):
            result = self.run_script("run_presets_local.sh", *words, path="/usr/bin:/bin")
            self.assertEqual(result.returncode, 2)
            self.assertIn(expected, result.stderr)

    def remote(self, *arguments):
        return self.run_script("run_presets_remote.sh", *arguments,
                               path=f"{self.bin}:/usr/bin:/bin")

    def test_remote_brings_the_figures_back_and_leaves_nothing(self):
        database, out = self.folder / "t.db", self.folder / "out"
        database.write_text("of winners")
        result = self.remote("there", "--build", self.build, "--out", out, "--db", database,
                             "--presets", "smoke,verify", "--", "--device", "a b")
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        names = sorted(file.name.split("_")[-1] for file in out.iterdir())
        self.assertEqual(names, ["output.txt", "smoke.csv", "verify.csv"])
        self.assertIn(f"in {self.host_files}", result.stdout)
        self.assertIn("database of winners", result.stdout)
        self.assertEqual(list(self.host_files.iterdir()), [])

    def test_remote_failures(self):
        out = self.folder / "out"
        failing = self.remote("there", "--build", self.build, "--out", out, "--presets", "smoke",
                              "--", "--fail")
        self.assertEqual(failing.returncode, 1, failing.stderr)
        self.assertIn("preset smoke failed", (out / "output.txt").read_text())
        self.assertEqual(list(self.host_files.iterdir()), [])
        elsewhere = self.remote("elsewhere", "--build", self.build, "--out", out)
        self.assertEqual(elsewhere.returncode, 1)
        self.assertIn("can't reach elsewhere", elsewhere.stderr)
        for words, expected in (((), "no HOST"), (("there", "--build", "/none"), "--build"),
                                (("there", "--build", self.build, "--presets", "none"), "'none'")):
            result = self.remote(*words)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(expected, result.stderr)


class RunPresetsOverSsh(RunPresets):
    """The same through a real sshd on this machine, with a separate port and keys."""

    def setUp(self):
        super().setUp()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        for key in ("host_key", "user_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / key],
                           check=True)
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", mode=0o755, exist_ok=True)  # like the service does
        server, client = self.folder / "sshd_config", self.folder / "ssh_config"
        server.write_text(f"Port {port}\nListenAddress 127.0.0.1\nHostKey {self.folder}/host_key\n"
                          f"AuthorizedKeysFile {self.folder}/user_key.pub\nStrictModes no\n"
                          f"UsePAM no\nPidFile none\nSetEnv TMPDIR={self.host_files}\n")
        client.write_text(f"Host there\nHostName 127.0.0.1\nPort {port}\nUser {getpass.getuser()}\n"
                          f"IdentityFile {self.folder}/user_key\nIdentitiesOnly yes\n"
                          "Host *\nBatchMode yes\nStrictHostKeyChecking no\nLogLevel ERROR\n"
                          "UserKnownHostsFile /dev/null\nGlobalKnownHostsFile /dev/null\n")
        sshd = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/usr/bin:/bin")
        self.server = subprocess.Popen([sshd, "-D", "-e", "-f", server], stdin=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.stop)
        self.program("ssh", f'exec {shutil.which("ssh")} -F {client} "$@"')
        end = time.time() + 300
        while subprocess.run([self.bin / "ssh", "there", "true"], stdin=subprocess.DEVNULL,
                             capture_output=True).returncode != 0:
            if self.server.poll() is not None or time.time() > end:
                self.server.kill()
                self.fail(f"sshd does not answer: {self.server.stderr.read()}")
            time.sleep(0.1)

    def stop(self):
        self.server.terminate()
        self.server.communicate()


class EmulateAmd(ScriptTest):
    # Writes the requested number of cases: for defaults the case itself, otherwise folders of
    # cases.
    TUNE = """
import json, pathlib, sys
value = dict(zip(sys.argv[3::2], sys.argv[4::2]))
count = int(value.get("--random", 0))
for i in range(count or 1):
    folder = pathlib.Path(value["--emit-case"]) / (f"{i:04}" if count else "")
    folder.mkdir(parents=True)
    (folder / "case.json").write_text(json.dumps(
        {"arch": value["--arch"], "op": sys.argv[2], "config": "tiled BM=64",
         "problem": f"{sys.argv[2]} dtype=f16 out=f32 layout=tn"}))
sys.exit(value["--arch"] == "gfx000")
"""
    def setUp(self):
        super().setUp()
        self.emulator = self.folder / "emulator"
        self.emulator.mkdir()
        self.script(self.bin / "greta-tune", self.TUNE)
        self.out = self.folder / "out"

    def script(self, path, text):
        path.write_text("#!/usr/bin/python3" + text)
        path.chmod(0o755)

    def emulate(self, verdict, *arguments):
        """Runs the round. `verdict` is Python code that prints the emulator's result for
        `cases`."""
        self.script(self.emulator / "run_case.py", f"""
import sys
order = sys.argv[sys.argv.index("--order") + 1]
cases = [word for word in sys.argv[1:] if "/cases/" in word]
{verdict}
""")
        return self.run_script("emulate_amd.sh", self.emulator, "--cases", "3", "--arch",
                               "gfx90a,gfx1100", "--tune", self.bin / "greta-tune", "--out",
                               self.out, *arguments, path="/usr/bin:/bin")

    def test_counts_what_passed(self):
        result = self.emulate('print(f"{len(cases)} passed, 0 failed, 0 unusable")')
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        for architecture in ("gfx90a", "gfx1100"):
            self.assertRegex(result.stdout,
                             rf"(?m)^{architecture} +gemm +tiled +f16 to f32 +3 +3 +3$")
        self.assertRegex(result.stdout, r"(?m)^all +6 +6 +6$")

    def test_counts_operations_and_given_problems(self):
        problems = self.folder / "problems.txt"
        problems.write_text("# both\n\nrope --dim 8\nadd --rows 3 --cols 4\n")
        result = self.emulate('print(f"{len(cases)} passed, 0 failed, 0 unusable")', "--op",
                              "add,gelu", "--problems", problems)
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        for operation, count in (("add", 4), ("gelu", 3), ("rope", 1)):
            self.assertRegex(result.stdout,
                             rf"(?m)^gfx90a +{operation} +tiled +f16 to f32 +{count} +{count} +{count}$")
        self.assertRegex(result.stdout, r"(?m)^all +16 +16 +16$")

    def test_names_what_failed(self):
        result = self.emulate("""
bad = [case for case in cases if case.endswith("gfx1100/gemm/0001") and order == "rand"]
for case in bad: print(f"{case}: C: 3 of 9 outside the bound")
print(f"{len(cases) - len(bad)} passed, {len(bad)} failed, 0 unusable")
sys.exit(len(bad))""")
        self.assertEqual(result.returncode, 1, result.stderr + result.stdout)
        self.assertRegex(result.stdout, r"(?m)^gfx1100 +gemm +tiled +f16 to f32 +3 +3 +2$")
        self.assertIn("gfx1100/gemm/0001: C: 3 of 9 outside the bound", result.stdout)

    def test_an_emulator_that_dies_is_no_pass(self):
        result = self.emulate('sys.exit("Segmentation fault")')
        self.assertEqual(result.returncode, 1)
        self.assertIn("in-order: 6 cases have no verdict", result.stdout)
        self.assertRegex(result.stdout, r"(?m)^all +6 +0 +0$")

    def test_what_did_not_compile_is_told(self):
        result = self.emulate('print(f"{len(cases)} passed, 0 failed, 0 unusable")', "--arch",
                              "gfx000")
        self.assertEqual(result.returncode, 1)
        self.assertIn("gfx000: some did not compile", result.stdout)

    def test_bad_usage(self):
        for arguments in (["--cases"], ["--speed", "1"], ["--tune", "/nowhere"],
                          ["--problems", "/nowhere"]):
            with self.subTest(arguments):
                self.assertEqual(self.emulate("", *arguments).returncode, 2)
        self.out.mkdir()
        (self.out / "notes.txt").write_text("mine")
        self.assertEqual(self.emulate("").returncode, 2)
        self.assertEqual(self.run_script("emulate_amd.sh", "/nowhere", path="/usr/bin:/bin").returncode,
                         2)


if __name__ == "__main__":
    unittest.main()
