"""Protects: the commands of docs/tutorial.md, docs/llama.md and docs/gguf.md run as documented, by default with
smaller budgets. Those of docs/first-amd-run.md, which need a GPU, only use options that exist."""
import itertools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import unittest

from cli_case import SOURCE, TUNE, WHOLE, Case, database_of_ceilings, limit


class Walk(Case):
    def walk(self, document, database, least):
        blocks = re.findall(r"^```sh\n(.*?)^```$", (SOURCE / document).read_text(),
                            re.MULTILINE | re.DOTALL)
        commands = [line for block in blocks for line in block.splitlines()]
        self.assertGreaterEqual(len(commands), least)
        for name in ("presets", "tests"):
            (self.folder / name).symlink_to(SOURCE / name)
        # Its health checks are those of greta-bench doctor, which the tutorial runs, too.
        smoke = json.loads((SOURCE / "presets/smoke.json").read_text())
        del smoke["checks"], smoke["$schema"]
        (self.folder / "unchecked.json").write_text(json.dumps(smoke))
        # Measuring peaks takes a minute and is covered by other tests.
        shutil.copy(database_of_ceilings("auto", self.env), self.folder / database)
        path = f"{pathlib.Path(TUNE).parent}:{os.environ['PATH']}"
        for command in commands:
            self.assertTrue(command.startswith("greta-"), command)
            if not WHOLE:
                trials = "1s" if re.search(" model | from-capture ", command) else "2"
                command = re.sub(r"--budget \d+s", f"--budget {trials}", command)
                command = re.sub(r"--repeat \d+", "--repeat 2 --settle 0", command)
                command = command.replace("--preset smoke", "--preset unchecked.json")
                command = re.sub(r"(--budget|--repeat) ", r"--flush 1 \1 ", command)
            run = subprocess.run(command, shell=True, cwd=self.folder, env=dict(self.env, PATH=path),
                                 capture_output=True, text=True, timeout=limit(200))
            # On a machine that is busy with other tests, one of two equal runs may be slower.
            fine = (0, 4) if " compare " in command else (0,)
            self.assertIn(run.returncode, fine, f"{command}\n{run.stderr}")
            self.assertTrue(run.stdout.strip(), command)


class Tutorial(Walk):
    def test_every_command(self):
        self.walk("docs/tutorial.md", "tutorial.db", 10)


class LlamaWalk(Walk):
    def test_every_command(self):
        self.walk("docs/llama.md", "model.db", 7)


class GgufWalk(Walk):
    def test_every_command(self):
        # The page's first command, which is not one of GRETA's tools.
        stories = SOURCE / "tests/data/stories260K"
        subprocess.run(["/usr/bin/python3", "-B", SOURCE / "scripts/gguf_of_llama2c.py", stories / "stories260K.bin",
                        stories / "tok512.bin", self.folder / "stories.gguf", "--type", "q8_0"], check=True)
        self.walk("docs/gguf.md", "model.db", 5)


class FirstAmdRun(unittest.TestCase):
    """docs/first-amd-run.md uses only options that its tools have, and omits no operation."""

    def said(self, *words):
        return subprocess.run([str(pathlib.Path(TUNE).parent / words[0]), *words[1:], "--help"],
                              capture_output=True, text=True, timeout=limit(60), check=True).stdout

    def test_commands_name_what_the_tools_have(self):
        text = (SOURCE / "docs/first-amd-run.md").read_text()
        lines = [line.removeprefix("$ ") for block in re.findall(
            r"^```(?:sh)?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL) for line in block.splitlines()]
        # Options in running text belong to the tools as well, except one of another program.
        lines += [f"greta-bench doctor {word}" for word in re.findall(r"`(--bundle)`", text)]
        commands = [shlex.split(line) for line in lines if line.startswith("greta-")]
        self.assertGreaterEqual(len(commands), 20)
        verified = []
        for words in commands:
            names = list(itertools.takewhile(lambda word: not word.startswith("-"), words))
            names = [name for name in names if "/" not in name]
            known = re.findall(r"--[a-z][a-z0-9_-]*", self.said(*names))
            for word in words:
                if word.startswith("--"):
                    self.assertIn(word, known, " ".join(words))
            if names[1:2] == ["verify"]:
                verified += names[2:]
        operations = re.search(r"^Subcommands:\n((?:  .*\n)+)", self.said("greta-tune", "verify"),
                               re.MULTILINE).group(1)
        self.assertEqual(sorted(verified), sorted(re.findall(r"^  (\S+)", operations, re.MULTILINE)))

    def test_the_commands_come_in_the_page_s_order(self):
        text = (SOURCE / "docs/first-amd-run.md").read_text()
        steps = ["greta-tune devices", "greta-bench doctor --bundle", "greta-tune verify",
                 "greta-bench --preset smoke", "greta-tune gemm"]
        self.assertEqual(steps, sorted(steps, key=lambda step: text.index("\n" + step)))


if __name__ == "__main__":
    unittest.main()
