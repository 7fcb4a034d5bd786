"""Manual pages and completions know every command and option that --help knows."""
import os
import re
import subprocess
import unittest

from cli_case import DB, TUNE, Case

TOOLS = {"greta-tune": TUNE, "greta-bench": os.environ["GRETA_BENCH"], "greta-db": DB}


def said(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout


def commands(help_text):
    """Names below "Subcommands:" up to the next empty line."""
    match = re.search(r"^Subcommands:\n((?:  .*\n)+)", help_text, re.MULTILINE)
    return re.findall(r"^  (\S+)", match.group(1), re.MULTILINE) if match else []


class Manual(Case):
    def test_pages_have_every_command_and_option(self):
        for name, tool in TOOLS.items():
            page = said(tool, "--manual").replace("\\-", "-")
            self.assertTrue(page.startswith(f".TH {name} 1"), page[:80])
            for command in commands(said(tool, "--help")):
                self.assertIn(f".SS {command}\n", page)
                for option in re.findall(r"--[a-z][a-z_-]+", said(tool, command, "--help").split(
                        "Examples:")[0]):
                    self.assertIn(option, page, f"{name} {command}")

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


if __name__ == "__main__":
    unittest.main()
