#!/usr/bin/env python3
"""Fits the coefficients of the static prior to recorded configurations and judges them on problems and devices that
they were not fitted to.

    greta-tune prior --space A.jsonl.gz --db B.db … --csv terms.csv
    scripts/fit_prior.py terms.csv

Prints PriorCoefficients for kernels/prior/prior.cpp, then tables: fitted to all recordings, to all but those of the
same problem, to all but those of the same device. Each row has the number of configurations, Spearman's rank
correlation, and the regret of the best of the first 1, 5 and 20 predictions.

The fit minimises the squared differences of the logarithms of predicted and measured times, each recording with a
factor of its own and equal weight, each configuration with a weight of optimum / time: fast ones matter. It is the
method of Levenberg and Marquardt, with factors drawn to 1 while few recordings determine them. Needs numpy.
"""

import argparse
import csv
import sys

import numpy as np

HELD = 0.05  # weight of a factor's logarithm
FIRST_NORM = 2.0


def read(path):
    """Returns the names of the terms and for each recording (device, problem) its times and terms."""
    csv.field_size_limit(1 << 20)
    with open(path, newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        header = next(rows)
        recordings = {}
        for row in rows:
            recordings.setdefault((row[0], row[1]), []).append([float(x) for x in row[3:]])
    return header[4:], {key: np.array(rows) for key, rows in recordings.items()}


def predicted(theta, terms):
    """The logarithm of predicted_cycles() in kernels/prior/prior.cpp; theta: logarithms of factors, of norm - 1."""
    factors, norm = np.exp(theta[:-1]), 1 + np.exp(theta[-1])
    scaled = terms[:, :-1] * factors[:-1]
    greatest = scaled.max(axis=1, keepdims=True) + 1e-300
    combined = greatest[:, 0] * ((scaled / greatest) ** norm).sum(axis=1) ** (1 / norm)
    return np.log(combined + terms[:, -1] * factors[-1])


def residuals(theta, recordings, start):
    parts = []
    for rows in recordings:
        times, terms = rows[:, 0], rows[:, 1:]
        weights = times.min() / times
        weights /= weights.sum()
        off = predicted(theta, terms) - np.log(times)
        parts.append((off - (weights * off).sum()) * np.sqrt(weights))
    return np.concatenate(parts + [HELD * (theta - start)])


def fit(recordings, terms, steps=30):
    start = np.zeros(terms + 1)
    start[-1] = np.log(FIRST_NORM - 1)
    theta, damping = start.copy(), 1e-2
    at = residuals(theta, recordings, start)
    for _ in range(steps):
        jacobian = np.empty((len(at), len(theta)))
        for i in range(len(theta)):
            moved = theta.copy()
            moved[i] += 1e-3
            jacobian[:, i] = (residuals(moved, recordings, start) - at) / 1e-3
        curvature, slope = jacobian.T @ jacobian, jacobian.T @ at
        for _ in range(8):
            step = np.linalg.solve(curvature + damping * np.diag(np.diag(curvature) + 1e-6), -slope)
            moved = theta + np.clip(step, -1, 1)
            there = residuals(moved, recordings, start)
            if there @ there < at @ at:
                theta, at, damping = moved, there, max(damping / 3, 1e-6)
                break
            damping *= 4
        else:
            break
    return theta


def ranks(values):
    order = np.argsort(values, kind="stable")
    result = np.empty(len(values))
    result[order] = np.arange(len(values))
    return result


def judge(theta, rows):
    guess, times = predicted(theta, rows[:, 1:]), rows[:, 0]
    order = np.argsort(guess, kind="stable")
    regrets = [times[order[:top]].min() / times.min() - 1 for top in (1, 5, 20)]
    return [np.corrcoef(ranks(guess), ranks(times))[0, 1], *regrets]


def print_table(title, recordings, theta_of):
    print(f"\n{title}")
    figures = []
    for key, rows in sorted(recordings.items()):
        figures.append(judge(theta_of(key), rows))
        print("  {:4.2f}  {:6.1%} {:6.1%} {:6.1%}  {:6}  {}: {}".format(*figures[-1], len(rows), *key))
    figures = np.array(figures)
    means = np.expm1(np.log1p(figures[:, 1:]).mean(axis=0))
    print("  {:4.2f}  {:6.1%} {:6.1%} {:6.1%}          mean".format(figures[:, 0].mean(), *means))


def leave_out(recordings, terms, same):
    """Returns a function that fits to the recordings that are not alike, by `same` of their keys."""
    known = {}

    def theta_of(key):
        if same(key) not in known:
            others = [rows for other, rows in recordings.items() if same(other) != same(key)]
            known[same(key)] = fit(others, terms, 15) if others else None
        return known[same(key)]

    return theta_of


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("csv", help="what greta-tune prior --csv wrote")
    parser.add_argument("--least", type=int, default=100, help="configurations of a recording that is used")
    options = parser.parse_args()
    names, recordings = read(options.csv)
    recordings = {key: rows for key, rows in recordings.items() if len(rows) >= options.least}
    if not recordings:
        sys.exit(f"{options.csv}: no recording has {options.least} configurations")
    theta = fit(list(recordings.values()), len(names))
    factors = ", ".join(f"{value:.3g}" for value in np.exp(theta[:-1]))
    print(f".factors = {{{factors}}},  // {', '.join(names)}\n.norm = {1 + np.exp(theta[-1]):.4g}")
    print("\nrank correlation, regret of the best of the first 1, 5 and 20, configurations, recording")
    print_table("fitted to all", recordings, lambda key: theta)
    print_table("fitted to other problems", recordings, leave_out(recordings, len(names), lambda key: key[1]))
    if len({device for device, _ in recordings}) > 1:
        print_table("fitted to other devices", recordings, leave_out(recordings, len(names), lambda key: key[0]))


if __name__ == "__main__":
    main()
