#pragma once

#include "kernels/model/operation.hpp"

namespace greta::kernels {

// The built-in operations. Each is defined in its own folder.

/// Makes the operation C = A + B.
Operation make_add();

/// Makes the operation sum = X + residual, Y = sum / sqrt(mean of sum^2 + epsilon) * weight on each
/// row. The matrices are row-major, rows x cols; weight is 1 x cols. Y is computed from the f32 sum
/// before it is rounded to the output's type. Squares and their sum are f32, so elements of f32 and
/// bf16 should stay below 1e17.
Operation make_add_rmsnorm();

/// Makes the operation that returns the lowest column of each row's largest value.
Operation make_argmax();

/// Scaled dot-product attention: prefill and decode.
Operation make_attention();

/// Makes the operation that joins partial results of attention over parts of the keys, such as
/// those of several devices, by their log-sum-exps: out = sum of exp(lse_i - lse) out_i with lse =
/// log(sum of exp(lse_i)). Outputs are [part, token, head, dim], log-sum-exps [part, token, head].
Operation make_attention_merge();

/// Makes the operation that gathers rows of a table by ids.
Operation make_embedding();

/// Makes the operation that gathers columns of a matrix by ids, e.g. to put them in another order.
Operation make_gather_columns();

/// Makes the operation gelu: x times the normal distribution function of x.
Operation make_gelu();

/// C = act(alpha * op(A) op(B) + bias + residual + beta * C), row-major and packed. op(A) is m x k,
/// op(B) is k x n, and C is m x n. bias is 1 x n and residual m x n, both of C's type. Accumulation
/// is in f32.
///
/// `layout` specifies how A and B are stored: n as op(A) or op(B), t transposed (tn: A is k x m;
/// nt: B is n x k). With beta = 0, C is not read. silu(x) = x / (1 + e^-x); gelu is the tanh form,
/// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
Operation make_gemm();

/// Makes the operation that multiplies groups of rows, each by a matrix of its own, as the experts
/// of a mixture do: C[row] = A[row] B[group of row]. A is rows x k and C rows x n, row-major and
/// packed, with the rows of contiguous groups one after the other, or m rows for each masked group.
/// B is groups x n x k (layout nt) or groups x k x n (nn). The groups' ends or numbers of rows are
/// i32 in device memory, where kernels read them. Accumulation is in f32.
Operation make_grouped_gemm();

/// Makes the operation quantized_grouped_gemm: grouped_gemm with weights that are stored as those
/// of quantized_gemm. B, scales and zero points have the rows of all groups one after the other.
Operation make_quantized_grouped_gemm();

/// Makes the operation that writes the numbers that quantised weights stand for: out = scale (B -
/// zero), rows x cols, of weights as quantized_gemm has them, rounded once to out's type. Scales of
/// int4 and int8 are bf16 with an out of bf16, else f16.
Operation make_dequantize();

/// Makes the operation that turns weights as AWQ and GPTQ pack them (WeightPacking) into rows of
/// int4 or int8 with scales and zero points, as quantized_gemm reads them: B [n, k / 2] or [n, k],
/// scales and zeros [n, k / group]. Without zero points, all stored ones must be 8, or of int8 128;
/// they are not read. With order=given, weight i of each row is the stored weight order[i], so that
/// A's columns need the same order.
Operation make_repack_weights();

/// Makes the operation that appends new keys and values to their caches.
Operation make_kv_update();

/// Makes the operation latent_attention: multi-head latent attention of DeepSeek-V2 and V3 in its
/// absorbed form (DeepSeek-AI, "DeepSeek-V2", 2024): out = softmax(scale Q C^T) V with one cache C
/// for all heads, whose rows have latent + rope elements, and V the first `latent` of each. Q is
/// [batch, q, heads, latent + rope], the cache [batch, kv, latent + rope] or a pool of pages [page,
/// row, latent + rope], and out [batch, q, heads, latent].
Operation make_latent_attention();

/// Makes the operation Y = (X - mean) / sqrt(variance + epsilon) * weight + bias on each row. The
/// matrices are row-major, rows x cols; weight and bias are 1 x cols. Squares and their sum are
/// f32, so distances from the mean should stay below 1e17.
Operation make_layernorm();

/// Makes the operation Y = y / sqrt(mean of y^2 + epsilon) * gain with y = (X - mean) /
/// sqrt(variance + epsilon) * weight + bias: the rmsnorm of the layernorm of each row. The matrices
/// are row-major, rows x cols; weight, bias and gain are 1 x cols; y is f32. affine=weight omits
/// the bias, none omits all three. Squares and their sums are f32, so distances from the mean
/// should stay below 1e17.
Operation make_layernorm_rmsnorm();

/// Makes the operation that multiplies by quantised weights: C = A W^T with W = scale (B - zero). A
/// is m x k and C is m x n, row-major and packed. B has n rows of k weights in a WeightFormat;
/// scales (f16, or bf16 with an A of bf16) and zero points (bytes) of int4 and int8 are n x k /
/// group. Accumulation is in f32: elements of A should stay below 1e30, as they are multiplied by
/// integers before these are scaled.
Operation make_quantized_gemm();

/// Makes the operation Y = X / sqrt(mean of X^2 + epsilon) * weight on each row. The matrices are
/// row-major, rows x cols; weight is 1 x cols. Squares and their sum are f32, so elements of f32
/// and bf16 should stay below 1e17.
Operation make_rmsnorm();

/// Makes the rotary position embedding.
Operation make_rope();

/// Makes the operation that rotates queries and keys, each head optionally normalised before, and
/// appends keys and values to their caches.
Operation make_rope_append();

/// Makes the operation that quantises rows to bytes in a ByteFormat, with f32 scales by which the
/// numbers are multiplied to get y back: what scaled_gemm reads as A. y is X, rows x cols, or the
/// result of rmsnorm, add_rmsnorm (which also stores the sum) or silu_mul in f32, and is not
/// rounded to another type in between. A scale is the largest size in a row, or in 128 columns of
/// it, divided by the format's largest number; or one scale is given for all. Q = y / scale
/// saturates, rounds to nearest even and is row-major; cols is a multiple of 4.
///
/// Scales are at least 2^-126, so rows of zeros have that scale; a given scale below, or NaN,
/// counts as 2^-126. Infinities count as f32's largest number. NaN gives NaN and does not count in
/// scales; with int8 it gives 0, and makes the scale NaN unless that is given.
Operation make_quantize();

/// Makes the operation that multiplies scaled numbers of eight bits: C = (scales_a A) (scales_b
/// B)^T. A is m x k, B is n x k and C is m x n, row-major and packed, with bytes in a ByteFormat.
/// Scales are f32, row-major: one each, or m and n of rows, or m x ceil(k / 128) of 128 k of A's
/// rows and ceil(n / 128) x ceil(k / 128) of B's blocks of 128 x 128. Products of at most 128 k are
/// added before they are scaled, of integers all that have the same scales; these sums, the scales
/// and their products should be within f32's range.
Operation make_scaled_gemm();

/// Makes the operation scaled_grouped_gemm: grouped_gemm with operands and scales as scaled_gemm
/// has them. With scales of tensors, each group has one of its rows of A and one of its B.
Operation make_scaled_grouped_gemm();

/// Makes the operation that draws a token for each row of logits x. settings are rows x 4 of f32:
/// temperature (0: the largest logit, the lowest column of equal ones), top_k (0: off), top_p (1:
/// off) and min_p (0: off). seeds are rows x 3 of i32: a seed's two words and an offset, the key
/// and the counter of Philox4x32-10. With a history of tokens, rows x history, x is first changed
/// in place by penalties, rows x 3: repetition (1: off), frequency and presence (0: off).
///
/// Tokens have weights, their probabilities relative to that of the largest logit, as multiples of
/// 2^-31. Of these, min_p keeps weights of at least min_p, top_k the largest ones, and top_p the
/// fewest of the largest whose sum reaches the share top_p of what remains. Equal logits, and those
/// whose distances to the largest one agree to 24 fractional bits of an octave, count from the
/// lowest column. The draw is by the inverse transform in the order of columns. As weights are
/// integers, equal inputs give equal tokens on every device, in every configuration.
Operation make_sample();

/// Makes the operation that routes tokens to experts: the top_k experts of each token, the largest
/// first, and their weights, from tokens x experts of logits. An expert's score is its share of the
/// softmax over all experts, or the sigmoid of its logit. Experts are selected by their logits, or
/// with a bias of each expert (f32) by score + bias; of equal ones the one with the lower number
/// comes first. Weights are the scores times `scale`. Renormalised ones, which is the default, are
/// first divided by the sum of the token's top_k scores; they keep their precision where all of
/// these scores are tiny.
///
/// With `groups` of neighbouring experts, a token's experts are of the best top_groups of them:
/// those of the largest logit, or with a bias of the largest sum of two experts' score + bias.
///
/// A NaN logit counts as -inf, and a NaN sum of score and bias, too. Experts whose logit is +inf
/// share a softmax's sum of 1 evenly. A token without a logit above -inf, or if renormalised
/// without one among its picks, has weights of 0, but for sigmoids that are not renormalised.
Operation make_route();

/// Makes the operation that copies the rows of tokens to their experts, in the form that
/// grouped_gemm takes: x is tokens x dim, ids (i32) are the top_k experts of each token. The rows
/// of an expert are in the order of tokens. Outputs:
/// - out: the rows of all experts one after the other, and `ends` (i32), the row after each
///   expert's last. An expert's number of rows is rounded up to a multiple of `block` by rows of
///   zeros, so that tiles of so many rows have one expert; out has room for tokens x top_k rows and
///   block - 1 more for each expert that may have some. With a capacity: capacity rows for each
///   expert, and `rows` (i32), how many of these count; assignments beyond the capacity are
///   dropped. Other rows of out are not written.
/// - places (i32): the row of out that each of a token's top_k has, or -1 where there is none.
Operation make_permute();

/// Makes the operation that adds up the rows of y that are at a token's top_k places (i32), times
/// weights (f32, both tokens x top_k): out is tokens x dim. A place that y does not have adds
/// nothing, and rows without a place are not read.
Operation make_unpermute();

/// Makes the operation that computes the feed-forward layers of a token's top_k experts and adds
/// them up, for up to 64 tokens: out[t] = sum of weights[t, k] down[e] (silu(gate[e] x[t]) * (up[e]
/// x[t])), e = ids[t, k], with f32 between the two products. x and out are tokens x dim, ids (i32)
/// and weights (f32) tokens x top_k. gate_up has 2 hidden x dim elements for each expert, its gates
/// and then its ups, as grouped_gemm takes them with epilogue swiglu, and down dim x hidden. An id
/// that is no expert adds nothing; nor does one with a weight of 0. No matrix is read but those of
/// the others.
Operation make_experts();

/// Makes the operation out = silu(gate) * up, the gated activation of feed-forward layers.
Operation make_silu_mul();

/// Makes the operation Y = softmax(scale * X + mask) on each row of a row-major matrix of rows x
/// cols. With the causal mask, row r attends to its first r mod cols + 1 columns, as in stacked
/// square score matrices. The additive mask is a tensor of X's shape and type. With place=in, Y
/// replaces X in memory.
///
/// A row that is fully masked or -inf throughout gives zeros. +inf elements share the row's sum of
/// 1 evenly. A row with an unmasked NaN is NaN. Scaled elements are f32, so values beyond its range
/// count as infinite.
Operation make_softmax();

/// Makes the operation tree_attention: attention of the q tokens of a speculative tree, whose keys
/// are the last q valid ones of each sequence, in the tokens' order. A query sees all keys before
/// these, its own, and those of the tokens whose bits it has: bit j % 32 of word j / 32 of its row
/// of `tree`, i32 [batch, q, ceil(q / 32)], stands for token j.
Operation make_tree_attention();

}  // namespace greta::kernels
