#!/usr/bin/env python3
"""Checks a file that a developer contributes (greta-db export --contribute) before it is taken into results/.

* Sound: a shipped database without sessions and trials that greta-db verify finds intact.
* Complete: every result is certified, verified and of today's templates, and says where it comes from.
* Nothing private: no home folders, no user@host.
* Not worse: no answer is significantly slower than what ships for the same device.
* Reproducible: a sample of results is certified again on this machine, if it has the device.

Prints a line per finding and per check, and exits with 1 if there are findings.
"""

import argparse
import contextlib
import json
import pathlib
import random
import re
import sqlite3
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PRIVATE = re.compile(r"/home/|/Users/|/root/|[A-Z]:\\Users|[A-Za-z][\w.-]*@[A-Za-z][\w.-]*")
PROVENANCE = ("device", "driver", "compiler", "template_key", "greta_version", "date")


class Checker:
    def __init__(self, options):
        self.file, self.tools, self.options = options.file, options.bin, options
        self.findings = []

    def run(self, tool, *words):
        return subprocess.run([self.tools / tool, *map(str, words)], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)

    def read(self, tool, *words):
        """Returns the JSON that a tool prints; exit code 4 only says that something differs."""
        result = self.run(tool, *words, "--json")
        if result.returncode not in (0, 4):
            raise SystemExit(f"{tool} {words[0]}: {result.stderr.strip()}")
        return json.loads(result.stdout)

    def check(self, name, findings):
        self.findings += findings
        for finding in findings:
            print(f"{name}: {finding}")
        if not findings:
            print(f"{name}: ok")
        return not findings

    def unsound(self):
        verified = self.run("greta-db", "verify", "--db", self.file)
        if verified.returncode:
            return [line for line in (verified.stdout + verified.stderr).splitlines() if line]
        info = self.read("greta-db", "info", "--no-shipped", "--db", self.file)
        wrong = [] if info["shipped"] else ["not written by greta-db export --contribute"]
        wrong += [f"has {info[what]} {what}" for what in ("sessions", "trials") if info[what]]
        return wrong

    def incomplete(self):
        wrong = []
        for result in self.results:
            name = f"{result['problem']} on {result['device']}"
            wrong += [f"{name}: has no {what}" for what in PROVENANCE if not result[what]]
            winner = result["winner"]
            if not winner["verdict"]["passed"]:
                wrong.append(f"{name}: is not verified")
            if not winner["rounds"] or not winner["speedup_low"]:
                wrong.append(f"{name}: is not certified")
            wrong += [f"{name}: is stale: {why}" for why in result["stale"]]
            if result["not_used"]:
                wrong.append(f"{name}: {result['not_used']}")
        return wrong if self.results else ["has no results"]

    def private(self):
        found = set()
        with contextlib.closing(sqlite3.connect(f"{self.file.resolve().as_uri()}?immutable=1", uri=True)) as database:
            tables = [name for name, in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
            for table in tables:
                for row in database.execute(f"SELECT * FROM {table}"):
                    found |= {match.group() for cell in row for match in PRIVATE.finditer(str(cell))}
        return [f"has the text \"{text}\"" for text in sorted(found)]

    def worse(self):
        wrong = []
        for shipped in sorted(self.options.shipped.glob("*/*.db")):
            for change in self.read("greta-db", "compare", shipped, self.file):
                if change["change"] == "worse":
                    wrong.append(f"{change['problem']} on {change['device']}: {change['ratio']:.3f}× the speed of "
                                 f"{shipped.name}'s")
        return wrong

    def sample(self):
        """Returns results of devices that this machine has, and says which it lacks."""
        here = {device["fingerprint"] for backend in self.read("greta-tune", "devices")
                for device in backend["devices"]}
        lacking = {result["device"] for result in self.results if result["device_fingerprint"] not in here}
        for device in sorted(lacking):
            print(f"reproducible: NOT CHECKED for {device}, which this machine lacks")
        present = [result for result in self.results if result["device_fingerprint"] in here]
        return random.Random(self.options.seed).sample(present, min(self.options.sample, len(present)))

    def differing(self, sample):
        """Certifies the sample again in a copy, and compares. An answer that can't be certified is one, too."""
        wrong = []
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder, "copy.db")
            self.run("greta-db", "merge", self.file, "--db", copy)
            for result in sample:
                words = result["problem"].split()
                name = f"{result['problem']} on {result['device']}"
                dims = " ".join(word for word in words if re.fullmatch(r"\w+=\d+", word))
                done = self.run("greta-db", "requalify", "--db", copy, "--op", words[0], "--dims", dims, "--device",
                                result["device_id"], *self.options.requalify)
                if done.returncode:
                    wrong.append(f"{name}: {done.stderr.strip().splitlines()[-1]}")
                    continue
                changes = self.read("greta-db", "compare", self.file, copy)
                wrong += [f"{name}: {change['ratio']:.3f}× the speed that the file says" for change in changes
                          if change["problem"] == result["problem"] and change["change"] in ("worse", "lost")]
                print(f"reproducible: {name} certified again")
        return wrong

    def all(self):
        if not self.check("sound", self.unsound()):
            return 1
        self.results = self.read("greta-db", "list", "--db", self.file)
        self.check("complete", self.incomplete())
        self.check("nothing private", self.private())
        self.check("not worse", self.worse())
        sample = self.sample()
        if sample:
            self.check("reproducible", self.differing(sample))
        print(f"{self.file}: {len(self.results)} results, {len(self.findings)} findings")
        return 1 if self.findings else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin", help="folder of the tools")
    parser.add_argument("--shipped", type=pathlib.Path, help="folder of what ships [BIN/../share/greta/tuned]")
    parser.add_argument("--sample", type=int, default=3, help="number of results to certify again [3]")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample [0]")
    parser.add_argument("--requalify", nargs="*", default=[], metavar="WORD",
                        help="further options of greta-db requalify, without their dashes: no-lock")
    options = parser.parse_args()
    options.shipped = options.shipped or options.bin.parent / "share/greta/tuned"
    options.requalify = [f"--{word}" for word in options.requalify]
    return Checker(options).all()


if __name__ == "__main__":
    sys.exit(main())
