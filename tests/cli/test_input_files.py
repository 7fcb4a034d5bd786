"""Protects: input that is not a regular file, or is larger than its kind allows, is rejected
immediately with one line. No tool waits for a writer or reads without a limit."""
import os
import shutil
import socket
import subprocess
import unittest

from cli_case import BENCH, DB, SMALL, SOURCE, TUNE, Case, limit
from test_greta_run import RUN

MODEL = SOURCE / "tests/data/stories260K/stories260K.bin"


class InputFiles(Case):
    known_devices = "vulkan:0"

    def readers(self, file):
        """Returns commands that read a file, one per kind of file."""
        new = self.folder / "new.db"
        return ([TUNE, "preset", file], [BENCH, "--preset", file], [TUNE, "from-capture", file],
                [TUNE, "replay", "--space", file],
                [DB, "info", "--db", file], [DB, "list", "--db", file], [DB, "show", "--db", file],
                [DB, "merge", file, "--db", new], [DB, "import", file, "--db", new],
                [BENCH, "compare", file, file], [TUNE, *SMALL, "--db", file],
                [TUNE, *SMALL, "--shipped", file, "--db", new], [TUNE, *SMALL, "--csv", file, "--db", new],
                [TUNE, "model", "--config", file, "--db", new], [RUN, "bench", "--config", file],
                [RUN, "--model", file], [RUN, "--model", MODEL, "--tokenizer", file],
                [RUN, "--model", MODEL, "--db", file], [RUN, "--model", MODEL, "--shipped", file])

    def refused_at_once(self, words, said=None, stdin=subprocess.DEVNULL):
        result = subprocess.run(list(map(str, words)), env=self.env, cwd=self.folder, text=True,
                                stdin=stdin, capture_output=True, timeout=limit(20))
        self.assertIn(result.returncode, (1, 2), f"{words}: {result.stderr}")
        lines = [line for line in result.stderr.splitlines() if line]
        self.assertEqual(len(lines), 1, f"{words}: {result.stderr}")
        if said:
            self.assertRegex(lines[0], said, words)
        self.assertEqual(result.stdout, "", words)

    def special_files(self):
        """Returns names of files that no tool can read, by kind."""
        files = {"device": "/dev/zero", "endless": "/dev/urandom", "folder": self.folder / "folder",
                 "fifo": self.folder / "fifo", "socket": self.folder / "socket",
                 "link": self.folder / "link"}
        files["folder"].mkdir()
        os.mkfifo(files["fifo"])
        self.socket = socket.socket(socket.AF_UNIX)
        self.addCleanup(self.socket.close)
        self.socket.bind(str(files["socket"]))
        files["link"].symlink_to("fifo")
        return files

    def test_special_files(self):
        for kind, file in self.special_files().items():
            for words in self.readers(file):
                if kind == "folder" and words[-2:] == ["--model", file]:
                    said = "config.json"  # a folder is a model if it contains one
                elif kind == "folder" and words[-2] == "--tokenizer":
                    said = "tokenizer.json"
                else:
                    said = "regular file|not a file|is a folder|no preset of that name|can't be read"
                self.refused_at_once(words, said)

    def test_standard_input_is_no_file(self):
        """A pipe is rejected. A file opened by a shell's `<` is accepted like any other."""
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        self.addCleanup(os.close, writing)
        for words in self.readers("/dev/stdin"):
            self.refused_at_once(words, stdin=reading)

    def test_parts_of_models_and_cases(self):
        for name in ("config.json", "generation_config.json", "model.safetensors",
                     "model.safetensors.index.json", "tokenizer.json", "case.json"):
            folder = self.folder / f"with {name}"
            folder.mkdir()
            if name != "config.json":
                shutil.copy(SOURCE / "tests/cli/cli_case.py", folder / "config.json")
            os.mkfifo(folder / name)
            words = [TUNE, "run-case", folder] if name == "case.json" else [RUN, "--model", folder]
            if name == "case.json":
                result = subprocess.run(list(map(str, words)), env=self.env, capture_output=True, text=True,
                                        timeout=limit(20), stdin=subprocess.DEVNULL)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn("not a regular file", result.stdout)
            else:
                self.refused_at_once(words)

    def test_files_larger_than_their_kind_may_be(self):
        huge = self.folder / "huge"
        with huge.open("wb") as out:
            out.truncate(2 ** 42)  # sparse: occupies no space
        for words in self.readers(huge):
            if str(huge) in map(str, words[-2:]) and ("--db" in words[-2:] or "--shipped" in words):
                continue  # databases may be large; this is none
            self.refused_at_once(words)

    def test_an_entry_of_the_kernel_cache(self):
        """A FIFO in place of a compiled kernel is a cache miss."""
        self.env["XDG_CACHE_HOME"] = str(self.folder / "cache")
        tune = [TUNE, *SMALL, "--budget", "1", "--no-lock", "--flush", "1", "--device", "vulkan:0", "--seed",
                "1", "--db", str(self.db)]
        for _ in range(2):
            result = subprocess.run(tune, env=self.env, capture_output=True, text=True,
                                    timeout=limit(120), stdin=subprocess.DEVNULL)
            self.assertEqual(result.returncode, 0, result.stderr)
            entries = [file for file in (self.folder / "cache/greta/kernels").iterdir()]
            self.assertTrue(entries)
            for entry in entries:
                entry.unlink()
                os.mkfifo(entry)


if __name__ == "__main__":
    unittest.main()
