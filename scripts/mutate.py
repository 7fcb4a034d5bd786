#!/usr/bin/env python3
"""Plants bugs (mutants) and determines which tool or test detects them.

  scripts/mutate.py make MUTANTS [--count 1000] [--seed 1]
      draws mutants of kernel templates, references and checking code, one line of JSON each
  scripts/mutate.py run MUTANTS RESULTS --tune greta-tune [--build build/single] [--method verify|tune]
                        [--devices vulkan:0,hip-host:1] [--problems 200] [--trials 12] [--jobs N] [--seed 1]
                        [--limit 600] [--only WORD] [--again VERDICT,...]
      tries mutants that are not in RESULTS, or are there with one of these verdicts, and appends a line of JSON for
      each; the last line of a mutant counts. Mutants of C++ code need --build, a build folder with
      compile_commands.json, and are skipped without it
  scripts/mutate.py report MUTANTS RESULTS [--explained FILE] [--csv FILE]
      prints the detected mutants by operation and kind, and each survivor with its change. FILE lists survivors
      that are equivalent or can't be observed, one "ID: reason" per line

The tools compile mutated templates (--templates) on lavapipe and hip-host.
"""
import argparse
import collections
import concurrent.futures
import csv
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from mutation import mutants as mutation_list  # noqa: E402
from mutation import runner  # noqa: E402


def results_of(file):
    """Returns the last verdict of each mutant, by its id."""
    if not file.exists():
        return {}
    lines = [line for line in file.read_text().splitlines() if line.endswith("}")]  # the last one may be truncated
    return {entry["id"]: entry for entry in map(json.loads, lines)}


def make(options):
    mutants = mutation_list.deal(options.count, options.seed)
    mutation_list.write(mutants, options.mutants)
    print(f"{len(mutants)} mutants")


def run(options):
    tools = runner.Tools(options.tune, options.build, options.devices.split(","), options.problems, options.seed,
                         options.trials, options.limit)
    done, untried = results_of(options.results), {"verdict": ""}
    wanted = [mutant for mutant in mutation_list.read(options.mutants)
              if done.get(mutant.id, untried)["verdict"] in options.again and options.only in mutant.file
              and (options.build or mutant.file.startswith("kernels/templates/"))]
    tally = collections.Counter()
    with options.results.open("a") as results, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = {pool.submit(runner.judge, tools, mutant, options.method): mutant for mutant in wanted}
        for future in concurrent.futures.as_completed(futures):
            mutant = futures[future]
            try:
                outcome = future.result()
            except Exception as error:  # an error with one mutant must not stop the others
                outcome = {"verdict": "error", "how": type(error).__name__, "where": str(error)[:300]}
            tally[outcome["verdict"]] += 1
            if outcome["verdict"] != "error":  # the next run repeats it
                results.write(json.dumps({"id": mutant.id, **outcome}) + "\n")
                results.flush()
            else:
                print(f"{mutant.id} {mutant.file}:{mutant.line()}: {outcome['where']}", file=sys.stderr)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(tally.items())) or "nothing to do")
    return 1 if tally["error"] else 0


def explanations(file):
    if file is None:
        return {}
    return dict(line.split(": ", 1) for line in file.read_text().splitlines() if ": " in line)


def report(options):
    results, explained = results_of(options.results), explanations(options.explained)
    table = collections.defaultdict(collections.Counter)
    survivors, rows = [], []
    for mutant in mutation_list.read(options.mutants):
        result = results.get(mutant.id)
        if result is None:
            continue
        verdict = result["verdict"]
        if verdict == "survived" and mutant.id in explained:
            verdict = "explained"
        where = mutant.op or pathlib.Path(mutant.file).stem
        for row in (("op", where), ("kind", mutant.kind), ("all", "")):
            table[row][verdict] += 1
        rows.append([mutant.id, mutant.op, mutant.file, mutant.line(), mutant.kind, mutant.old, mutant.new,
                     verdict, result["how"], explained.get(mutant.id, result["where"])])
        if verdict == "survived":
            survivors.append(mutant)
    verdicts = ("found", "survived", "explained", "not compiled", "no mutant")
    print(f"{'':<30}" + "".join(f"{verdict:>14}" for verdict in verdicts) + f"{'found of':>12}")
    for (_, name), counts in sorted(table.items(), key=lambda row: (row[0][0] == "all", row[0])):
        observable = counts["found"] + counts["survived"]
        share = f"{counts['found'] / observable:.1%}" if observable else "-"
        print(f"{name or 'all':<30}" + "".join(f"{counts[verdict]:>14}" for verdict in verdicts) + f"{share:>12}")
    for mutant in survivors:
        print(f"\n{mutant.id} {mutant.file}:{mutant.line()} ({mutant.op}, {mutant.kind})\n- {mutant.old!r}\n+ {mutant.new!r}")
    if options.csv:
        with options.csv.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow("id op file line kind old new verdict how where".split())
            writer.writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)

    def command(function, *files):
        one = commands.add_parser(function.__name__)
        one.set_defaults(function=function)
        for file in files:
            one.add_argument(file, type=pathlib.Path)
        return one

    one = command(make, "mutants")
    one.add_argument("--count", type=int, default=1000)
    one.add_argument("--seed", type=int, default=1)
    one = command(run, "mutants", "results")
    one.add_argument("--tune", required=True)
    one.add_argument("--build")
    one.add_argument("--devices", default="vulkan:0,hip-host:1,hip-host:0,hip-host:2,hip-host:3,hip-host:4")
    one.add_argument("--method", choices=("verify", "tune"), default="verify")
    one.add_argument("--problems", type=int, default=200)
    one.add_argument("--trials", type=int, default=12)
    one.add_argument("--limit", type=float, default=600, help="seconds of one tool's run")
    one.add_argument("--jobs", type=int, default=os.cpu_count())
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--only", default="", help="mutants of files with this in their path")
    one.add_argument("--again", type=lambda text: ["", *text.split(",")], default=[""], metavar="VERDICT,...",
                     help="tries those with one of these verdicts once more, for instance survived")
    one = command(report, "mutants", "results")
    one.add_argument("--explained", type=pathlib.Path)
    one.add_argument("--csv", type=pathlib.Path)
    options = parser.parse_args()
    return options.function(options)


if __name__ == "__main__":
    sys.exit(main())
