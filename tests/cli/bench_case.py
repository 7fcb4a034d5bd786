"""Common parts of the tests of greta-bench."""
import csv
import json
import subprocess

from cli_case import BENCH, Case, limit, quick

GEMM = {"op": "gemm", "m": 32, "n": 32, "k": 32}


class BenchCase(Case):
    known_devices = "auto"

    def preset(self, name="tiny", **content):
        file = self.folder / f"{name}.json"
        file.write_text(json.dumps(content))
        return file

    def bench_words(self, arguments, lock):
        words = [BENCH, *map(str, arguments)]
        if not arguments or str(arguments[0]).startswith("-"):
            words += ["--db", str(self.db)] + quick(words, lock)
        return words

    def bench(self, *arguments, timeout=120, lock=False):
        return subprocess.run(self.bench_words(arguments, lock), env=self.env, text=True,
                              capture_output=True, timeout=limit(timeout), stdin=subprocess.DEVNULL,
                              cwd=self.folder)

    def bench_run(self, *words):
        return subprocess.run([BENCH, *map(str, words)], env=self.env, text=True,
                              capture_output=True, timeout=limit(60), cwd=self.folder)

    def rows(self, file):
        return list(csv.DictReader(file.read_text().splitlines()))
