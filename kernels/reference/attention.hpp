#pragma once

#include <memory>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// FP64 reference of an attention problem. `inputs` are Q, K, V and lengths, found by name: Q and
/// the output with a row for each sequence, query and head; K and V for each sequence, KV head and
/// key; lengths with the valid keys of each sequence. With n of these, causal query i of q sees
/// keys j <= n - q + i. A query that sees none gives zeros.
///
/// All outputs are checked up to 2^28 multiplications of Q and K; beyond, at least 16 queries of
/// every head (or all) in full: first, last, those beside the edge of the last tile of every usual
/// height, and random ones. NaN and Inf are found in all rows.
///
/// The bound of an output o = sum w_j v_j, w_j = p_j / sum p, p_j = exp(s_j - max s), for n keys,
/// with u = 2^-24, adds up:
/// - Weights: sum w_j e_j (|v_j| + |o|), with a relative error e_j of p_j. It has the score's own,
///   as a dot product accumulated in f32 (scale gamma(dim) times the norm of its products, see
///   GemmErrorModel), and 3 u (|s_j| + |max s|) of its scaling and difference; and that of the
///   exponential, (3 + 2 |x|) units in the last place for 2^x as Vulkan demands it, twice, since
///   weights are multiplied by another one when a greater score turns up. That happens log(n) times
///   to keys in random order, whose factors are the same for all keys before and so hardly remain
///   in the quotient: 16 u.
/// - Sums over keys, of p and of p v: gamma(n) (|o| + norm), norm = root of the sum of (w_j v_j)^2.
/// - Where inputs have 16 bits, so do the weights that matrix cores take: with their unit roundoff
///   r, r |o| for what all have in common, and 6 r norm for the rest: independent errors below r of
///   mean zero exceed that with a probability of 2 e^-18 (Hoeffding), and they are smaller than r.
///   f16 weights below 2^-14 may become zeros.
/// - 4 u |o| for the quotient, and the output's rounding.
/// As GemmErrorModel's, it holds for values of mean zero and with overwhelming probability.
std::unique_ptr<Reference> attention_reference(const Problem& problem,
                                               const std::vector<HostTensor>& inputs,
                                               std::uint64_t seed);

}  // namespace greta::kernels
