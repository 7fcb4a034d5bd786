"""The rows of groups, and the experts of tokens, that GRETA measures with."""

import math

BITS = (1 << 64) - 1


def mixed(word):
    """Returns the word's hash, as mix64 in kernels/model/random.hpp."""
    word = (word + 0x9E3779B97F4A7C15) & BITS
    word = ((word ^ word >> 30) * 0xBF58476D1CE4E5B9) & BITS
    word = ((word ^ word >> 27) * 0x94D049BB133111EB) & BITS
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


class Random:
    """std::mt19937_64 of C++."""

    def __init__(self, seed):
        self.state, self.at = [seed], 312
        for i in range(1, 312):
            last = self.state[-1]
            self.state.append((6364136223846793005 * (last ^ last >> 62) + i) & BITS)

    def __call__(self):
        if self.at == 312:
            for i in range(312):
                word = self.state[i] & ~0x7FFFFFFF | self.state[(i + 1) % 312] & 0x7FFFFFFF
                self.state[i] = self.state[(i + 156) % 312] ^ word >> 1 ^ (0xB5026F5AA96619E9 if word & 1 else 0)
            self.at = 0
        word, self.at = self.state[self.at], self.at + 1
        word ^= word >> 29 & 0x5555555555555555
        word ^= word << 17 & 0x71D67FFFEDA60000
        word ^= word << 37 & 0xFFF7EEE000000000 & BITS
        return word ^ word >> 43

    def below(self, bound):
        draw = self()
        while draw < (1 << 64) % bound:
            draw = self()
        return draw % bound


def different_experts(tokens, experts, top_k):
    """Returns the experts of each token when GRETA measures `experts` (kernels/planning/expert_ids.cpp, with the seed 1)."""
    random, lines = Random(1), []
    for _ in range(tokens):
        line = []
        for _ in range(top_k):
            expert = random.below(experts)
            while expert in line:
                expert = (expert + 1) % experts
            line.append(expert)
        lines.append(line)
    return lines
