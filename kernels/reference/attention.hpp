#pragma once

#include <memory>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Returns the FP64 reference of an attention problem. `inputs` contain Q, K, V and lengths, by
/// name. Q and the output have one row per sequence, query and head. K and V have one row per
/// sequence, KV head and key. `lengths` holds the number n of valid keys of each sequence. With a
/// causal mask, query i of q attends to keys j <= n - q + i. A query without keys gives zeros.
///
/// Checks all outputs of up to 2^28 multiplications of Q and K. For larger problems, checks at
/// least 16 queries of every head (or all): the first, the last, those at the edge of the last tile
/// of common heights, and random ones. All rows are scanned for NaN and Inf.
///
/// Error bound of an output o = sum w_j v_j with w_j = p_j / sum p, p_j = exp(s_j - max s), n keys,
/// u = 2^-24 and gamma(n) = dot_product_error(n). The bound is the sum of:
/// - Weights: sum w_j e_j (|v_j| + |o|), where e_j is the relative error of p_j. e_j is the sum of
///   |scale| gamma(dim) times the norm of the score's products (GemmErrorModel), 3u (|s_j| + |max
///   s|) for scaling and subtraction, and 4u (3 + 2 |x|) + 16u for the exponential 2^x. Vulkan
///   requires 2^x within 3 + 2 |x| ulp. The term occurs twice since weights are rescaled when a
///   greater score is found. For keys in random order this happens log(n) times, and the factors
///   are common to all earlier keys, so they nearly cancel in the quotient: 16u.
/// - Sums over keys, of p and of p v: gamma(n) (|o| + norm), norm = root of the sum of (w_j v_j)^2.
/// - If inputs have 16 bits, matrix instructions take weights of that type with unit roundoff r: r
///   |o| for the error that all weights have in common and 6 r norm for the rest. Independent
///   errors below r with mean zero exceed 6 r norm with probability at most 2 e^-18 (Hoeffding).
///   f16 weights below 2^-14 may be flushed to zero.
/// - 4u |o| for the quotient, and the rounding of the output.
/// Like GemmErrorModel's, the bound is probabilistic: it holds with overwhelming probability for
/// values of mean zero.
std::unique_ptr<Reference> attention_reference(const Problem& problem,
                                               const std::vector<HostTensor>& inputs,
                                               std::uint64_t seed);

}  // namespace greta::kernels
