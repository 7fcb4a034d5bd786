#!/usr/bin/env python3
"""Measures on a device how reliable `greta-bench compare` is: two runs of the same code must not
differ, and a row that was made slower must be found.

  scripts/check_comparison.py OUTDIR --bin DIR [options] [-- greta-bench's options]

Each device is measured twice. Then every row between --shortest and --longest is made slower in
the later run, one at a time and in both directions: its recorded samples are multiplied by
--factor. OUTDIR receives the runs (first-hip-0.csv, second-hip-0.csv, ...), log.txt and summary.txt.
Runs that OUTDIR contains already are not measured again, so the comparison can be repeated
elsewhere. The exit code is 1 if an honest pair has a report, or if fewer than --found of the rows
are found.
"""
import argparse
import csv
import os
import pathlib
import re
import subprocess
import sys
import time


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out", type=pathlib.Path, metavar="OUTDIR")
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="folder of greta-bench")
    parser.add_argument("--lib", help="shared libraries that the machine lacks")
    parser.add_argument("--devices", default="hip:0,vulkan:0", help="default: %(default)s")
    parser.add_argument("--preset", default="standard", help="name or file; default: %(default)s")
    parser.add_argument("--shipped", type=pathlib.Path, help="a database whose winners are measured")
    parser.add_argument("--factor", type=float, default=1.1, help="default: %(default)s")
    parser.add_argument("--shortest", type=float, default=3, help="in µs; default: %(default)s")
    parser.add_argument("--longest", type=float, default=16, help="in µs; default: %(default)s")
    parser.add_argument("--found", type=float, default=0.9, help="default: %(default)s")
    words = sys.argv[1:]
    own = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:own])
    options.bench = words[own + 1:] or ["--compute-only"]
    if not os.access(options.bin / "greta-bench", os.X_OK):
        parser.error(f"--bin '{options.bin}': no greta-bench there")
    # A name refers to a preset of this tree, or of greta-bench's installation.
    of_tree = pathlib.Path(__file__).resolve().parent.parent / "presets" / f"{options.preset}.json"
    if of_tree.is_file() and not os.path.isfile(options.preset):
        options.preset = str(of_tree)
    if options.shipped and not options.shipped.is_file():
        parser.error(f"--shipped '{options.shipped}': no such file")
    return options


class Check:
    def __init__(self, options):
        self.options = options
        self.bench = str(options.bin.resolve() / "greta-bench")
        self.env = dict(os.environ)
        if options.lib:
            libraries = [os.path.abspath(options.lib), os.environ.get("LD_LIBRARY_PATH", "")]
            self.env["LD_LIBRARY_PATH"] = ":".join(filter(None, libraries))
        options.out.mkdir(parents=True, exist_ok=True)
        self.summary = (options.out / "summary.txt").open("a")
        self.failed = False

    def tell(self, line):
        for stream in (sys.stdout, self.summary):
            print(line, file=stream, flush=True)

    def measure(self, device, which):
        """Returns the file of a run, or None if it failed."""
        options = self.options
        file = options.out / f"{which}-{device.replace(':', '-')}.csv"
        if file.exists():
            return file
        partial = file.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        words = [self.bench, "--preset", options.preset, "--device", device, "--db",
                 str(options.out / "peaks.db"), "--seed", "1", "--export", str(partial), *options.bench]
        if options.shipped:
            words += ["--shipped", str(options.shipped)]
        start = time.monotonic()
        with (options.out / "log.txt").open("a") as log:
            print("==", *words, file=log, flush=True)
            code = subprocess.run(words, env=self.env, stdin=subprocess.DEVNULL, stdout=log,
                                  stderr=log).returncode
        seconds = time.monotonic() - start
        self.tell(f"{which} run on {device}: exit code {code}, {seconds:.0f} s")
        if not partial.exists():
            self.failed = True
            self.tell("  " + (options.out / "log.txt").read_text().splitlines()[-1])
            return None
        partial.rename(file)  # rows that failed are no reason to lose the others
        return file

    def slower(self, base, fresh):
        """Returns the number of rows that are reported as slower, and the report."""
        result = subprocess.run([self.bench, "compare", base, fresh], env=self.env, text=True,
                                capture_output=True)
        count = re.search(r"(\d+) slower by more than", result.stdout)
        if not count:
            raise SystemExit(f"greta-bench compare failed: {result.stderr.strip()}")
        return int(count.group(1)), result.stdout

    def honest(self, device, base, fresh):
        count, report = self.slower(base, fresh)
        self.tell(f"{device}, {base.stem} and {fresh.stem}: {report.splitlines()[-1]}")
        for line in report.splitlines():
            if line.startswith(("slower", "fails", "faster")):
                self.failed = True
                self.tell("  " + line)
        return count

    def planted(self, device, base, fresh, honest):
        """Makes one row after the other slower. Returns the numbers of those found and of all."""
        with fresh.open(newline="") as file:
            reader = csv.DictReader(file)
            columns, rows = reader.fieldnames, list(reader)
        altered = self.options.out / "planted.csv"
        found = tried = 0
        for row in rows:
            us = float(row["us"] or 0)
            kernel = row["origin"] != "measured" and row["status"] == "ok"
            if not kernel or not self.options.shortest <= us <= self.options.longest:
                continue
            samples = row["samples_us"]
            row["samples_us"] = re.sub(r"[^ |]+", lambda s: f"{float(s[0]) * self.options.factor:.7g}",
                                       samples)
            with altered.open("w", newline="") as file:
                writer = csv.DictWriter(file, columns, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
            row["samples_us"] = samples
            tried += 1
            if self.slower(base, altered)[0] > honest:
                found += 1
            else:
                self.tell(f"  not found in {fresh.stem}: {row['op']} {row['dtype']} {row['problem']}, "
                          f"{row['origin']}, {us:.2f} µs, {row['processes'] or 1} processes")
        altered.unlink(missing_ok=True)
        self.tell(f"{device}, slower in {fresh.stem}: {found} of {tried} found")
        return found, tried

    def run(self):
        found = tried = 0
        for device in self.options.devices.split(","):
            files = [self.measure(device, which) for which in ("first", "second")]
            if None in files:
                continue
            for base, fresh in (files, reversed(files)):
                counts = self.planted(device, base, fresh, self.honest(device, base, fresh))
                found, tried = found + counts[0], tried + counts[1]
        factor = self.options.factor
        self.tell(f"{found} of {tried} rows of {self.options.shortest:g} to {self.options.longest:g} µs "
                  f"that were made {100 * (factor - 1):.3g} % slower are found")
        enough = tried > 0 and found >= self.options.found * tried
        return 1 if self.failed or not enough else 0


if __name__ == "__main__":
    sys.exit(Check(arguments()).run())
