"""The commands of docs/tutorial.md and docs/llama.md run as they are written."""
import os
import pathlib
import re
import subprocess
import unittest

from cli_case import SOURCE, TUNE, Case, patient



class Walk(Case):
    def walk(self, document, least):
        blocks = re.findall(r"^```sh\n(.*?)^```$", (SOURCE / document).read_text(),
                            re.MULTILINE | re.DOTALL)
        commands = [line for block in blocks for line in block.splitlines()]
        self.assertGreaterEqual(len(commands), least)
        for name in ("presets", "tests"):
            (self.folder / name).symlink_to(SOURCE / name)
        path = f"{pathlib.Path(TUNE).parent}:{os.environ['PATH']}"
        for command in commands:
            self.assertTrue(command.startswith("greta-"), command)
            run = subprocess.run(command, shell=True, cwd=self.folder, env=dict(self.env, PATH=path),
                                 capture_output=True, text=True, timeout=patient(200))
            # On a machine that is busy with other tests one of two equal runs may be slower.
            fine = (0, 4) if " compare " in command else (0,)
            self.assertIn(run.returncode, fine, f"{command}\n{run.stderr}")
            self.assertTrue(run.stdout.strip(), command)


class Tutorial(Walk):
    def test_every_command(self):
        self.walk("docs/tutorial.md", 10)


class LlamaWalk(Walk):
    def test_every_command(self):
        self.walk("docs/llama.md", 7)


if __name__ == "__main__":
    unittest.main()
