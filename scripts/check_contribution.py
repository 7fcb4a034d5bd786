#!/usr/bin/env python3
"""Checks a file that a developer contributes (greta-db export --contribute) before it is taken into results/.

* Sound: a shipped database without sessions and trials that greta-db verify finds intact.
* Complete: every result is certified, verified and of today's templates, and says where it comes from.
* Nothing private: no home folders, no user@host, no PCI addresses of cards.
* Not worse: no answer is significantly slower than what ships for the same device.
* Reproducible: a sample of results is certified again on this machine, if it has the device. Each configuration is
  timed against the default in a new database, and the interval of its speed-up must overlap the contributed one.

Prints a line per finding and per check. Exit codes: 0 all is well; 1 findings; 2 wrong options; 4 only the speed-up of
the sample is not reproduced; 3 all else is well, but a device of the file is not here, so nothing of it was certified.
"""

import argparse
import contextlib
import json
import pathlib
import random
import re
import shlex
import sqlite3
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PRIVATE = re.compile(r"/home/|/Users/|/root/|[A-Z]:\\Users|[A-Za-z][\w.-]*@[A-Za-z][\w.-]*")
# What two cards of a model, or two sessions, may differ by: half of what greta-db compare allows, on each side.
MARGIN = 1.05
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
            if not winner["rounds"] or not winner["default_us"] or not winner["speedup_low"]:
                wrong.append(f"{name}: is not certified against the default")
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
        devices = self.read("greta-db", "info", "--no-shipped", "--db", self.file)["devices"]
        addresses = {card["pci_address"] for device in devices for card in device["cards"]} - {""}
        return [f"has the text \"{text}\"" for text in sorted(found)] + [
            f"has the PCI address {address}: greta-db export --contribute omits it" for address in
            sorted(addresses)]

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
        here = {device["fingerprint"]: device["id"] for backend in self.read("greta-tune", "devices")
                for device in backend["devices"]}
        self.lacking = {result["device"] for result in self.results if result["device_fingerprint"] not in here}
        for device in sorted(self.lacking):
            print(f"reproducible: NOT CHECKED for {device}, which this machine lacks")
        present = [{**result, "device_id": here[result["device_fingerprint"]]} for result in self.results
                   if result["device_fingerprint"] in here]
        return random.Random(self.options.seed).sample(present, min(self.options.sample, len(present)))

    def certify(self, result, folder):
        """Returns the interval of the speed-up of a result's configuration in a new session, or why there is none."""
        op, *words = shlex.split(result["problem"])
        fields = [("out-dtype" if name == "out" else name.replace("_", "-"), value)
                  for name, value in (word.split("=", 1) for word in words)]
        given = result["winner"]
        done = self.run("greta-tune", op, *[word for name, value in fields for word in (f"--{name}", value)],
                        *([] if given["cold"] else ["--warm"]), "--try", given["config_text"], "--budget", 1, "--json",
                        "--db", pathlib.Path(folder, "again.db"), "--no-shipped", "--device", result["device_id"],
                        *self.options.tune)
        if done.returncode:
            return (done.stderr.strip().splitlines() or [f"greta-tune ends with {done.returncode}"])[-1]
        winner = json.loads(done.stdout)["winner"]
        if not winner:
            return "no configuration could be certified"
        if winner["config_text"] == given["config_text"]:
            return winner["speedup_low"], winner["speedup_high"]
        ratios = [tie["ratio_to_winner"] for tie in winner["ties"] if tie["config"] == given["config"]]
        if not ratios:
            return f"it is significantly slower than {winner['config_text']}"
        return winner["speedup_low"] / ratios[0], winner["speedup_high"] / ratios[0]

    def differing(self, sample):
        """Certifies the sample again in a new database, and compares the speed-ups over the default."""
        wrong = []
        with tempfile.TemporaryDirectory() as folder:
            for result in sample:
                name = f"{result['problem']} on {result['device']}"
                again = self.certify(result, folder)
                if isinstance(again, str):
                    wrong.append(f"{name}: {again}")
                    continue
                low, high = result["winner"]["speedup_low"], result["winner"]["speedup_high"]
                text = f"{again[0]:.3f} to {again[1]:.3f} times the default's speed; the file says {low:.3f} to {high:.3f}"
                if again[1] * MARGIN < low / MARGIN or again[0] / MARGIN > high * MARGIN:
                    wrong.append(f"{name}: certified again, {text}")
                else:
                    print(f"reproducible: {name} certified again, {text}")
        return wrong

    def all(self):
        if not self.check("sound", self.unsound()):
            return 1
        self.results = self.read("greta-db", "list", "--db", self.file)
        self.check("complete", self.incomplete())
        self.check("nothing private", self.private())
        self.check("not worse", self.worse())
        bad = bool(self.findings)
        sample = self.sample()
        if sample:
            self.check("reproducible", self.differing(sample))
        elif not self.lacking:
            print("reproducible: NOT CHECKED: the sample is empty")
        print(f"{self.file}: {len(self.results)} results, {len(self.findings)} findings")
        if bad:
            return 1
        if self.findings:
            return 4
        return 3 if self.lacking or not sample else 0


def count(text):
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is not a number of results")
    return int(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin", help="folder of the tools")
    parser.add_argument("--shipped", type=pathlib.Path, help="folder of what ships [BIN/../share/greta/tuned]")
    parser.add_argument("--sample", type=count, default=3, help="number of results to certify again [3]")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample [0]")
    parser.add_argument("--tune", nargs="*", default=[], metavar="WORD",
                        help="further options of greta-tune, without their dashes: no-lock")
    options = parser.parse_args()
    options.shipped = options.shipped or options.bin.parent / "share/greta/tuned"
    options.tune = [f"--{word}" for word in options.tune]
    for tool in ("greta-db", "greta-tune"):
        if not (options.bin / tool).is_file():
            parser.error(f"{options.bin} has no {tool}: --bin names the folder of a build's tools")
    if not options.shipped.is_dir():
        parser.error(f"--shipped {options.shipped}: no such folder")
    return Checker(options).all()


if __name__ == "__main__":
    sys.exit(main())
