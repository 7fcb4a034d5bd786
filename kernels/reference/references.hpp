#pragma once

#include <memory>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

// FP64 references of operations, each with its error bound. `inputs` are in the order of the
// operation's tensors; `seed` chooses what is checked where not every element is.

/// Checks every element of C = A + B. Error bound: 2^-24 of the sum and 2^-126 (devices may flush)
/// for one f32 addition, then one rounding to the output's type.
std::unique_ptr<Reference> add_reference(const Problem& problem,
                                         const std::vector<HostTensor>& inputs, std::uint64_t seed);

/// Returns the FP64 reference of an add_rmsnorm problem, which checks every element of both
/// outputs. `inputs` contain X, residual and, if the problem has one, weight, by name. Error
/// bounds: one rounding for the sum, rows::RmsNorm for Y.
std::unique_ptr<Reference> add_rmsnorm_reference(const Problem& problem,
                                                 const std::vector<HostTensor>& inputs,
                                                 std::uint64_t seed);

/// Checks every row exactly: the lowest column of the row's largest value. NaN is smaller than all
/// other values, including -infinity. A row of NaN alone gives 0. Zeros of either sign are equal.
std::unique_ptr<Reference> argmax_reference(const Problem& problem,
                                            const std::vector<HostTensor>& inputs,
                                            std::uint64_t seed);

/// Checks every element of joined partial results of attention, and their log-sum-exps if the
/// problem stores these. Error bound of an output sum w_i x_i with w_i = p_i / sum p, p_i = exp(l_i
/// - max l), n parts and u = 2^-24: sum w_i |x_i| (e_i + E + (n + 4) u) with the relative errors
/// e_i of p_i (3u |l_i - max l| and that of 2^x, as for attention) and E = sum w_i e_i + n u of
/// their sum; 2^-126 for each part that may be flushed; the rounding of the output. A log-sum-exp
/// has E, and 8u of its terms.
std::unique_ptr<Reference> attention_merge_reference(const Problem& problem,
                                                     const std::vector<HostTensor>& inputs,
                                                     std::uint64_t seed);

/// Returns the FP64 reference of an attention problem. `inputs` contain Q, K, V and lengths, by
/// name. Q and the output have one row per sequence, query and head. K and V have one row per
/// sequence, KV head and key. `lengths` holds the number n of valid keys of each sequence. With a
/// causal mask, query i of q attends to keys j <= n - q + i, with a window to the last of these. A
/// query without keys gives zeros.
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
/// - With a limit c of the scores, e_j grows by 3u |s_j| + 16u c: the limit is c - 2c / (2^x + 1),
///   whose derivative by the score is at most 1. A sink is a further p without a value.
/// A log-sum-exp has the relative error of the sum, and 8u of its terms for the logarithm.
/// Like GemmErrorModel's, the bound is probabilistic: it holds with overwhelming probability for
/// values of mean zero.
std::unique_ptr<Reference> attention_reference(const Problem& problem,
                                               const std::vector<HostTensor>& inputs,
                                               std::uint64_t seed);

/// Returns whether the problem is small enough to check every element.
bool attention_fully_checked(const Problem& problem);

/// Checks every element of out = the rows of the table that ids select: exact, or rounded once to a
/// smaller type. An invalid id gives a row of NaN.
std::unique_ptr<Reference> embedding_reference(const Problem& problem,
                                               const std::vector<HostTensor>& inputs,
                                               std::uint64_t seed);

/// Checks every element of out = the columns of x that ids select: exact, or rounded once to a
/// smaller type. An invalid id gives a column of NaN.
std::unique_ptr<Reference> gather_columns_reference(const Problem& problem,
                                                    const std::vector<HostTensor>& inputs,
                                                    std::uint64_t seed);

/// Checks every element of out = gelu(x), in the form with erf or with tanh. Error bound: the
/// evaluation in f32 (activation.hpp) and one rounding to the output's type.
std::unique_ptr<Reference> gelu_reference(const Problem& problem,
                                          const std::vector<HostTensor>& inputs,
                                          std::uint64_t seed);

/// Returns the FP64 reference of a grouped_gemm problem, which checks the rows of each group as
/// gemm's reference checks a product of its own. `inputs` contain A, B and ends (contiguous) or
/// rows (masked), by name. Rows of no group must still have the NaN that outputs have before a
/// launch.
std::unique_ptr<Reference> grouped_gemm_reference(const Problem& problem,
                                                  const std::vector<HostTensor>& inputs,
                                                  std::uint64_t seed);

/// Returns the same of a quantized_grouped_gemm problem: each group is checked as by
/// quantized_gemm_reference(). `inputs` are found by name.
std::unique_ptr<Reference> quantized_grouped_gemm_reference(const Problem& problem,
                                                            const std::vector<HostTensor>& inputs,
                                                            std::uint64_t seed);

/// Returns the same of a scaled_grouped_gemm problem: each group is checked as by
/// scaled_gemm_reference(), and with gates as grouped_gemm.
std::unique_ptr<Reference> scaled_grouped_gemm_reference(const Problem& problem,
                                                         const std::vector<HostTensor>& inputs,
                                                         std::uint64_t seed);

/// Returns whether the problem, of either operation, is small enough to check every element.
bool grouped_gemm_fully_checked(const Problem& problem);

/// Returns the FP64 reference of a quantize problem, which checks every element. `inputs` contain
/// those of the fused operation, by name, and with one given scale `scale`.
///
/// With u = 2^-24 and the precision that Vulkan requires (division within 2.5 ulp):
/// - what is quantised, y, has the error e of the fused operation in f32 (rows::RmsNorm,
///   silu_mul_reference()), and 2^-126 as devices may flush. Infinities count as f32's largest
///   number.
/// - a scale is the largest |y| divided by the format's largest number, between that of the largest
///   |y| - e and of the largest |y| + e, and 5u for the division. It is 2^-126 at least, also if it
///   is given. NaN does not count, but with int8, which has no NaN, makes the scale NaN.
/// - a code is that of a number nearest to the quotients y / scale that these errors, 5u for the
///   inverse of the scale and u for the product permit. Two codes are permitted near the border
///   between two numbers. The inverse of a scale above 2^126 may be flushed. Zeros of either sign
///   are equal, and any code of NaN is NaN.
/// - the sum of add_rmsnorm: as there.
std::unique_ptr<Reference> quantize_reference(const Problem& problem,
                                              const std::vector<HostTensor>& inputs,
                                              std::uint64_t seed);

/// Returns the FP64 reference of a quantized_gemm problem: that of gemm for the dequantised
/// weights, with its bound. `inputs` contain A, B and, if the problem has them, scales and zeros,
/// by name.
///
/// Kernels may scale sums of products with integers, which is exact up to one rounding for each
/// sum, or products. Both are among the roundings of a dot product in any order, for which gamma of
/// GemmErrorModel has room. A weight of q4_k has a rounding of its own.
std::unique_ptr<Reference> quantized_gemm_reference(const Problem& problem,
                                                    const std::vector<HostTensor>& inputs,
                                                    std::uint64_t seed);

/// Returns whether the problem is small enough to check every element.
bool quantized_gemm_fully_checked(const Problem& problem);

/// Checks every element of caches to which new keys and values are appended from `position` on.
/// Appended elements are exact, or rounded once to a smaller type. All other elements must be
/// unchanged, bit for bit. Tokens beyond the capacity of the caches are dropped.
std::unique_ptr<Reference> kv_update_reference(const Problem& problem,
                                               const std::vector<HostTensor>& inputs,
                                               std::uint64_t seed);

/// Returns the FP64 reference of a layernorm problem, which checks every element. `inputs` contain
/// X and, if the problem has them, weight and bias, by name. Error bounds: rows::LayerNorm.
std::unique_ptr<Reference> layernorm_reference(const Problem& problem,
                                               const std::vector<HostTensor>& inputs,
                                               std::uint64_t seed);

/// Returns the FP64 reference of a layernorm_rmsnorm problem, which checks every element. `inputs`
/// contain X and, if the problem has them, weight and bias, by name. Error bounds:
/// rows::LayerRmsNorm.
std::unique_ptr<Reference> layernorm_rmsnorm_reference(const Problem& problem,
                                                       const std::vector<HostTensor>& inputs,
                                                       std::uint64_t seed);

/// Returns the FP64 reference of an rmsnorm problem, which checks every element. `inputs` contain X
/// and, if the problem has one, weight, by name. Error bounds: rows::RmsNorm.
std::unique_ptr<Reference> rmsnorm_reference(const Problem& problem,
                                             const std::vector<HostTensor>& inputs,
                                             std::uint64_t seed);

/// Checks every element of the rotation of each head's pairs: (a, b) becomes (a cos - b sin, a sin
/// + b cos), with cos and sin from the table row of the token's position. Error bound: 2^-24 (|a
/// cos| + |b sin|) each for a product and the sum, and one rounding to the output's type. A
/// position outside of the table gives NaN.
std::unique_ptr<Reference> rope_reference(const Problem& problem,
                                          const std::vector<HostTensor>& inputs,
                                          std::uint64_t seed);

/// Checks every element of the rotated queries and of caches to which the rotated keys and the
/// values are appended. Error bound of what is rotated: that of rope, and with a norm the errors of
/// rows::RmsNorm of both elements, times |cos| and |sin|. Values and all other elements of the
/// caches are as in kv_update; a position outside of the table gives NaN.
std::unique_ptr<Reference> rope_append_reference(const Problem& problem,
                                                 const std::vector<HostTensor>& inputs,
                                                 std::uint64_t seed);

/// Returns the FP64 reference of a scaled_gemm problem: that of gemm for the scaled numbers, which
/// FP64 represents exactly. `inputs` contain A, B, scales_a and scales_b, by name. NaN and
/// infinities among the numbers give what FP64 does, if every element is checked.
///
/// The bound is that of gemm with more of the norm for floating-point formats. Matrix cores of
/// NVIDIA's sm_89 and sm_90 add 32 products and the sum before them with 13 bits below the largest
/// one's first bit, rounding towards zero. Kernels add at most 128 k so, and their sums in f32. In
/// units of v = 2^-13, each of four additions has an error of v times the sum, which is about the
/// root of k / 128 times the norm of the 128 k, and of up to v times the largest product for each
/// product that is much smaller. Errors of different 128 k are independent. In an emulation of such
/// additions the worst of 40,000 elements has 6 v of the norm: 24 v leaves a margin of 4. Scaling
/// has two roundings more, for which gamma has room as k is 16 or more, and devices may flush
/// scales, their products and sums below 2^-126.
std::unique_ptr<Reference> scaled_gemm_reference(const Problem& problem,
                                                 const std::vector<HostTensor>& inputs,
                                                 std::uint64_t seed);

/// Returns whether the problem is small enough to check every element.
bool scaled_gemm_fully_checked(const Problem& problem);

/// Returns the FP64 reference of a sample problem, which checks every row. A token is right if it
/// is that of FP64 arithmetic, or if the bounds of the weights permit it: which tokens precede it
/// among the largest, the masses that top_p compares, and the sums that the draw compares are
/// intervals. With u = 2^-24, the distance d of a logit to the largest one, in octaves, has an
/// error of at most 4.4u d + 2^-24: u for the difference, u for its product with the scale, 2u for
/// the scale, a quotient that is rounded towards 0, 0.35u for log2(e) in f32, and 24 fractional
/// bits. A weight has that times ln(2), 2^-22 for the power of 2, and 2^-32 of the largest weight
/// for rounding it. Penalised logits: PenalisedLogits.
std::unique_ptr<Reference> sample_reference(const Problem& problem,
                                            const std::vector<HostTensor>& inputs,
                                            std::uint64_t seed);

/// Checks every element of permuted rows, the ends or numbers of experts' rows, and the places of
/// assignments: all are exact. Rows of no expert must still have the NaN that outputs have before a
/// launch.
std::unique_ptr<Reference> permute_reference(const Problem& problem,
                                             const std::vector<HostTensor>& inputs,
                                             std::uint64_t seed);

/// Checks every element of sums of weighted rows. Error bound: 2^-24 (top_k + 1) times the sum of
/// |w y|, 2^-126 for each factor and product that may be flushed, and one rounding to the output's
/// type.
std::unique_ptr<Reference> unpermute_reference(const Problem& problem,
                                               const std::vector<HostTensor>& inputs,
                                               std::uint64_t seed);

/// Checks every dequantised weight. All are exact in f32 but those of q4_k, differences of two
/// products, which are wrong by 2^-23 times the sum of their sizes at most; one rounding to the
/// output's type.
std::unique_ptr<Reference> dequantize_reference(const Problem& problem,
                                                const std::vector<HostTensor>& inputs,
                                                std::uint64_t seed);

/// Checks every element of repacked weights: all integers and zero points are exact, and scales are
/// rounded once to another type. A zero point of 256, of gptq with 8 bits, becomes 0.
std::unique_ptr<Reference> repack_weights_reference(const Problem& problem,
                                                    const std::vector<HostTensor>& inputs,
                                                    std::uint64_t seed);

/// Returns the FP64 reference of an experts problem, which checks every element. With u = 2^-24, K
/// = dim and L = top_k hidden:
/// - An element of h = silu(gate) * up has the errors of two dot products, gamma(K) times the root
///   of the sum of their squared products (GemmErrorModel), of which silu changes the gate's by at
///   most its Lipschitz constant, each times the other factor; and the errors of evaluating silu
///   and of the product.
/// - The former are independent for the elements of an expert's h and of mean zero, as gamma
///   assumes of roundings: in the sum of weight down h they are added as the root of the sum of
///   their squares. Those of different slots are not, as experts can be the same. The latter are
///   added as they are.
/// - That sum itself has gamma(L) + u sqrt(L), for the product with the weight, times the root of
///   the sum of its squared terms.
/// - Products and partial sums below 2^-126 may be flushed, and the output is rounded once.
std::unique_ptr<Reference> experts_reference(const Problem& problem,
                                             const std::vector<HostTensor>& inputs,
                                             std::uint64_t seed);

/// Returns the FP64 reference of a route problem, which checks every token. Without a bias, experts
/// must be exactly those of the largest logits. With one, scores + biases have errors: an expert is
/// right if none that is picked later, or not at all, has surely a larger one; the same of groups.
/// Weights are checked
/// for the experts that the kernel has picked. With u = 2^-24, the relative errors are u (6 + 5
/// |x|) of an exponential e^x, with the rounding of x; u for each addition; 5u for a quotient,
/// within 2.5 ulp; u for a scale. Scores below 2^-126 may be flushed.
std::unique_ptr<Reference> route_reference(const Problem& problem,
                                           const std::vector<HostTensor>& inputs,
                                           std::uint64_t seed);

/// Checks every element of out = silu(gate) * up. Error bound: the error of silu in f32
/// (activation.hpp) times |up|, one rounding for the product, one rounding to the output's type,
/// and 2^-126 (1 + |silu(gate)| + |up|) because devices may flush up, silu(gate) and the product.
std::unique_ptr<Reference> silu_mul_reference(const Problem& problem,
                                              const std::vector<HostTensor>& inputs,
                                              std::uint64_t seed);

/// Returns the FP64 reference of a softmax problem, which checks every element. `inputs` contain X
/// and, if it is additive, mask, by name.
///
/// An element is e^d / S, where d is its distance to the row's largest element and S the sum over
/// the row. With u = 2^-24, its relative error in f32 is at most the sum of
/// - (6 + 3 |d|) 2u for its exponential, which is the product of two: of the element relative to a
///   thread's maximum, and of that relative to the row's. Each is within 3 + 2 |x| ulp (Vulkan's
///   precision of exp), with differences rounded once. e^0 is exact.
/// - the error of S through its terms: the mean over the row, weighted with the elements' shares,
///   of (3 (1 + m) + 3 |d|) 2u. m is the number of merges of partial sums, each of which may
///   rescale.
/// - rows::sum_error(cols) for the additions.
/// - 7u for a division within 2.5 ulp and two products.
/// - u (|a| + |b|) for elements that are scaled or masked, where a and b are the rounded
///   intermediate results of this element and of the largest. If the rounding errors exceed the
///   distances, an element may have any share between its own and that of the largest element.
/// Rounding to the output type is added.
std::unique_ptr<Reference> softmax_reference(const Problem& problem,
                                             const std::vector<HostTensor>& inputs,
                                             std::uint64_t seed);

}  // namespace greta::kernels
