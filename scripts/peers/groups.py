"""The rows of groups that GRETA measures with."""

import math


def mixed(word):
    """Returns the word's hash, as mix64 in kernels/model/random.hpp."""
    bits = (1 << 64) - 1
    word = (word + 0x9E3779B97F4A7C15) & bits
    word = ((word ^ word >> 30) * 0xBF58476D1CE4E5B9) & bits
    word = ((word ^ word >> 27) * 0x94D049BB133111EB) & bits
    return word ^ word >> 31


def ends_of_groups(groups, rows, routing):
    """Returns where contiguous groups end when GRETA measures (kernels/templates/grouped_gemm/rows.cpp)."""
    shares = [0.75 + 0.5 * (mixed(group) >> 32) / (1 << 32) for group in range(groups)]
    if routing == "skewed":
        for rank, group in enumerate(sorted(range(groups), key=mixed)):
            shares[group] = 1 / (rank + 1)
    total, so_far, ends = math.fsum(shares), 0.0, []
    for share in shares:
        so_far += share
        ends.append(min(rows, math.floor(rows * so_far / total + 0.5)))
    ends[-1] = rows
    return ends
