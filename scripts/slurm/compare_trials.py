#!/usr/bin/env python3
"""Compares the trials that two databases have of the same tunes: compare_trials.py A.db B.db. Of each problem, the
configurations of the search and whether they passed must be the same, in the same order. Times differ."""

import sqlite3
import sys


def searches(file):
    """The searched configurations of each problem and device model, in order."""
    rows = sqlite3.connect(f"file:{file}?mode=ro", uri=True).execute("""
        SELECT p.key, d.fingerprint, s.seed, s.outcome, t.config, t.status
        FROM sessions s JOIN problems p ON p.id = s.problem JOIN devices d ON d.id = s.device
          LEFT JOIN trials t ON t.session = s.id AND t.phase = 'search' ORDER BY t.id""")
    found = {}
    for problem, device, seed, outcome, config, status in rows:
        found.setdefault((problem, device, seed, outcome), []).append((config, status))
    return found


def main():
    first, second = (searches(file) for file in sys.argv[1:3])
    wrong = [f"only in one: {key[0]} ({key[3]})" for key in first.keys() ^ second.keys()]
    for key in sorted(first.keys() & second.keys()):
        if first[key] != second[key]:
            same = next((i for i, (a, b) in enumerate(zip(first[key], second[key])) if a != b),
                        min(len(first[key]), len(second[key])))
            wrong.append(f"{key[0]}: {len(first[key])} and {len(second[key])} trials, the same up to {same}")
    print("\n".join(wrong) or f"{len(first)} problems, {sum(map(len, first.values()))} trials: the same")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
