"""Protects: manual pages and completions contain every command and option of --help."""
import os
import pty
import re
import select
import subprocess
import time
import unittest

from cli_case import DB, SOURCE, TUNE, Case, limit

TOOLS = {"greta-tune": TUNE, "greta-bench": os.environ["GRETA_BENCH"], "greta-db": DB,
         "greta-run": os.environ["GRETA_RUN"], "greta-report": os.environ["GRETA_REPORT"]}


def said(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=limit(60), check=True).stdout


def commands(help_text):
    """Returns the names after "Subcommands:" up to the next empty line."""
    match = re.search(r"^Subcommands:\n((?:  .*\n)+)", help_text, re.MULTILINE)
    return re.findall(r"^  (\S+)", match.group(1), re.MULTILINE) if match else []


class Manual(Case):
    def test_pages_have_every_command_and_option(self):
        options = 0
        for name, tool in TOOLS.items():
            page = said(tool, "--manual").replace("\\-", "-")
            self.assertTrue(page.startswith(f".TH {name} 1"), page[:80])
            for command in commands(said(tool, "--help")):
                self.assertIn(f".SS {command}\n", page)
                for option in re.findall(r"--[a-z][a-z_-]+", said(tool, command, "--help").split(
                        "Examples:")[0]):
                    self.assertIn(option, page, f"{name} {command}")
                    options += 1
        self.assertGreater(options, 100)

    def test_every_value_says_its_type_or_unit(self):
        for tool in TOOLS.values():
            self.assertNotRegex(said(tool, "--help"), r" (TEXT|INT|UINT|FLOAT)\b")
            for command in commands(said(tool, "--help")):
                text = said(tool, command, "--help")
                self.assertNotRegex(text, r" (TEXT|INT|UINT|FLOAT)\b", command)
                for operation in commands(text):
                    self.assertNotRegex(said(tool, command, operation, "--help"),
                                        r" (TEXT|INT|UINT|FLOAT)\b", f"{command} {operation}")
        gemm = said(TUNE, "gemm", "--help")
        self.assertRegex(gemm, r"Problem:\n  --m N")
        self.assertIn("greta-tune gemm --m 4096 --n 4096 --k 4096", gemm)

    def test_the_readme_shows_every_command_of_greta_tune(self):
        """Of the operations, which are commands as well, it shows some."""
        operations = commands(said(TUNE, "verify", "--help"))
        shown = (SOURCE / "README.md").read_text()
        missing = [command for command in commands(said(TUNE, "--help"))
                   if command not in operations and f"greta-tune {command} " not in shown]
        self.assertEqual(missing, [])

    def complete(self, tool, *words):
        script = said(TOOLS[tool], "--completion", "bash")
        function = "_" + tool.replace("-", "_")
        line = " ".join(f"'{word}'" for word in (tool, *words))
        run = (f"{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words)}; {function}\n"
               'printf "%s\\n" "${COMPREPLY[@]}"')
        return said("bash", "-uc", run).split()

    def test_bash_completes_commands_and_their_options(self):
        self.assertEqual(self.complete("greta-tune", "verif"), ["verify"])
        self.assertIn("gemm", self.complete("greta-tune", "verify", ""))
        self.assertEqual(self.complete("greta-tune", "gemm", "--dtype", "f16", "--lay"), ["--layout"])
        self.assertEqual(self.complete("greta-db", "--op"), [])
        self.assertEqual(self.complete("greta-db", "list", "--op"), ["--op"])
        self.assertIn("doctor", self.complete("greta-bench", ""))

    def test_hidden_commands_stay_hidden(self):
        self.assertNotIn("worker", self.complete("greta-tune", "w"))
        self.assertFalse("-a worker" in said(TUNE, "--completion", "fish"))
        self.assertTrue("-a verify" in said(TUNE, "--completion", "fish"))

    def test_other_shells_are_refused(self):
        result = self.run_tune("--completion", "tcsh")
        self.refused(result, 2, "tcsh", "bash, zsh, fish")


class ManualFish(Case):
    """Needs fish."""

    def complete(self, line):
        tool = line.split()[0]
        script = self.folder / "completion.fish"
        script.write_text(said(TOOLS[tool], "--completion", "fish"))
        answer = said("fish", "--no-config", "-c", f"source {script}; complete -C '{line}'")
        return [row.split("\t")[0] for row in answer.splitlines()]

    def test_commands_and_their_options_once_each(self):
        self.assertEqual(self.complete("greta-tune verif"), ["verify"])
        self.assertIn("gemm", self.complete("greta-tune verify "))
        self.assertNotIn("preset", self.complete("greta-tune verify "))
        for line in ("greta-tune --", "greta-tune gemm --", "greta-tune verify gemm --",
                     "greta-tune compile gemm --", "greta-db list --", "greta-bench compare a b --"):
            offered = self.complete(line)
            self.assertEqual(len(offered), len(set(offered)), f"{line}: {sorted(offered)}")
        below = self.complete("greta-tune verify gemm --")
        self.assertIn("--problems", below)
        self.assertNotIn("--budget", below)
        self.assertEqual(self.complete("greta-tune gemm --dtype f16 --lay"), ["--layout"])


class ManualZsh(Case):
    """Needs zsh. Runs it on a terminal, because completion works nowhere else."""

    def setUp(self):
        super().setUp()
        (self.folder / "_greta-tune").write_text(said(TUNE, "--completion", "zsh"))
        home = dict(self.env, HOME=str(self.folder), TERM="dumb")
        process, self.terminal = pty.fork()
        if process == 0:
            os.execvpe("zsh", ["zsh", "-f", "-i"], home)
        self.addCleanup(os.waitpid, process, 0)
        self.addCleanup(os.close, self.terminal)
        # A fake tool that prints its arguments.
        self.answer(f"fpath=({self.folder} $fpath); autoload -U compinit; compinit -u -D; "
                    "greta-tune() { print -r -- G''OT:$*: }; greta-tune\n")

    def answer(self, keys):
        os.write(self.terminal, keys.encode())
        said_so_far, end = "", time.time() + limit(30)
        while time.time() < end:
            if select.select([self.terminal], [], [], 0.1)[0]:
                said_so_far += os.read(self.terminal, 65536).decode(errors="replace")
            found = re.search(r"GOT:(.*):\r", said_so_far)
            if found:
                return found.group(1)
        self.fail(f"no answer to {keys!r}: {said_so_far!r}")

    def test_commands_and_their_options(self):
        self.assertEqual(self.answer("greta-tune verif\t\n"), "verify")  # the first completion works as well
        self.assertEqual(self.answer("greta-tune verify gem\t\n"), "verify gemm")
        self.assertEqual(self.answer("greta-tune verify gemm --prob\t\n"), "verify gemm --problems")
        self.assertEqual(self.answer("greta-tune gemm --dtype f16 --lay\t\n"),
                         "gemm --dtype f16 --layout")


if __name__ == "__main__":
    unittest.main()
