#pragma once

#include <optional>
#include <span>

#include "kernels/catalog.hpp"
#include "kernels/model/byte_formats.hpp"
#include "kernels/model/weight_formats.hpp"
#include "kernels/model/weight_packing.hpp"
#include "runtime/device/result.hpp"
#include "runtime/pipeline/compute/tensor.hpp"

namespace greta::runtime {

enum class Layout { nn, nt, tn, tt };  ///< storage of A and B: n as they are, t transposed
/// Applied to a matrix product. swiglu and geglu are gated: the first half of B's columns are
/// gates, the second half what silu or gelu of the gates is multiplied by. C has half of B's
/// columns; more than 8 rows need layout nt or tt.
enum class Activation { none, silu, gelu, swiglu, geglu };
enum class GeluForm { tanh, erf };
enum class RopePairs { interleaved, half };  ///< elements 2i and 2i + 1, or i and i + dim / 2
enum class SoftmaxMask { none, causal };     ///< causal: row r attends to columns up to r mod cols

struct GemmOptions {
  Layout layout = Layout::nn;
  Activation activation = Activation::none;
  float alpha = 1;  ///< factor of the product
  float beta = 0;   ///< factor of C's old value
  /// Whether products of f32 may be computed as three of TF32, within the same error bound.
  bool tf32x3 = false;
  /// Whether B, of f16 or bf16 in layout nt, lies in panels of 16 rows (docs/gemm.md); its shape is
  /// that of rows, [n, k] without gaps, n is a multiple of 16 and k of 8.
  bool panels = false;
  Tensor bias{};      ///< [columns of B], of C's type; empty: none
  Tensor residual{};  ///< shape and type of C; empty: none
  /// [k], of A's type: A, of at most 8 rows, is replaced by its rmsnorm with this weight. Empty: A
  /// as it is.
  Tensor norm_weight{};
  float norm_epsilon = 1e-5F;
};

struct QuantizedGemmOptions {
  kernels::WeightFormat format = kernels::WeightFormat::int4;
  /// With int4 and int8: [n, groups] scales, of bf16 if A is, else of f16; a group has k / groups
  /// weights, which are 32, 64 or 128. With mxfp4: u8 [n, k / 32].
  Tensor scales{};
  Tensor zeros{};        ///< with int4 and int8: [n, groups] zero points, of u8; empty: none
  Tensor norm_weight{};  ///< [k] of A's type: A's rows are normalised first; empty: they are not
  float norm_epsilon = 1e-5F;
  // One of these at most.
  Tensor bias{};       ///< [n] of C's type, which is added; empty: none
  Tensor residual{};   ///< [m, n] of C's type, which is added; empty: none
  bool gated = false;  ///< C [m, n] = silu(gate) up; B has 2 n rows, those of gates first
  /// Whether weights may be rounded to A's type, of 16 bits, before they are multiplied. It is
  /// faster for many rows (docs/quantized-gemm.md).
  bool rounded_weights = false;
  /// awq, gptq and gptq_v2: B, scales and zeros are qweight, scales and qzeros of such a
  /// checkpoint, as of repack_weights(), and qweight begins at a multiple of 16 bytes; few variants
  /// read them. panels: B has panels of 16 rows,
  /// of int4, int8 or mxfp4. Not set, or rows: it has rows.
  std::optional<kernels::WeightPacking> packing{};
};

/// The rows of a product that gains nothing by rounded weights on an H200, up to this number
/// (results/2026-11-28-nvidia-h200-rounded-weights). A runtime's permission is for more.
constexpr std::int64_t most_exact_rows = 128;

/// How the weights of dequantize() are stored, as those of QuantizedGemmOptions.
struct DequantizeOptions {
  kernels::WeightFormat format = kernels::WeightFormat::int4;
  Tensor scales{}, zeros{};
  bool panels = false;  ///< whether B has panels of rows (WeightPacking::panels)
};

struct RepackOptions {
  /// rows: qweight has the type and the shape of B, and there are no other operands.
  kernels::WeightPacking packing = kernels::WeightPacking::awq;
  bool panels = false;  ///< B has panels of 16 rows (kernels::panel_place()); of rows always
  /// int4, or int8 of gptq and gptq_v2; of rows also mxfp4, and not used for numbers of 16 bits
  kernels::WeightFormat format = kernels::WeightFormat::int4;
  /// Both or none: the stored zero points, i32 [groups, n / 8], of int8 [groups, n / 4], and those
  /// of the result, u8 [n, groups]. None: all are 8, or of int8 128.
  Tensor qzeros{}, zeros{};
  /// i32 [k]: weight i of each row is the stored weight order[i]. Empty: as they are stored.
  Tensor order{};
};

struct QuantizedGroupedGemmOptions {
  kernels::WeightFormat format = kernels::WeightFormat::int4;
  Tensor scales{}, zeros{};  ///< as in QuantizedGemmOptions, with [groups, rows of B, ..]
  Activation activation = Activation::none;  ///< swiglu and geglu as in grouped_gemm(), or none
  /// Whether B has panels of 16 rows, of int4, int8 or mxfp4, as of QuantizedGemmOptions.
  bool panels = false;
};

/// What shares a scale of a scaled product: all elements of an operand, a row of it, 128 k of a row
/// of A and 128 k of 128 rows of B, or mx: 32 k of a row, as in microscaling formats, whose scales
/// are bytes e8m0.
enum class ScaleSharing { tensor, row, block, mx };

struct ScaledGemmOptions {
  kernels::ByteFormat format = kernels::ByteFormat::e4m3;
  ScaleSharing scales = ScaleSharing::tensor;
  /// Of B, with scales mx; std::nullopt: as A.
  std::optional<kernels::ByteFormat> format_b{};
};

/// How the matrices of experts() are stored.
struct ExpertsOptions {
  std::optional<kernels::WeightFormat> format{};  ///< std::nullopt: numbers of x's type
  /// Of down, if both are in different blocks; std::nullopt: as gate_up.
  std::optional<kernels::WeightFormat> down_format{};
  /// With int4 and int8: [experts, 2 hidden, dim / group] and [experts, dim, hidden / group], of
  /// bf16 if x is, else of f16; a group has 32, 64 or 128 weights.
  /// Scaled: f32, as scales_b of scaled_grouped_gemm().
  Tensor gate_up_scales{}, down_scales{};
  Tensor gate_up_zeros{}, down_zeros{};  ///< zero points of these, u8 like the scales; empty: none
  /// Of matrices of numbers of eight bits with scales, u8, without a format; std::nullopt: they are
  /// not scaled.
  std::optional<ScaledGemmOptions> scaled{};
  /// Whether gate_up and down have panels of 16 lines, of int4, int8 or mxfp4.
  bool panels = false;
};

struct ScaledGroupedGemmOptions : ScaledGemmOptions {
  Activation activation = Activation::none;  ///< swiglu and geglu as in grouped_gemm(), or none
};

/// Formats of quantised rows, and what is computed ahead of them: layernorm if `layernorm`, else
/// rmsnorm if there is a weight, add_rmsnorm if there are residual and sum, too, and silu_mul if
/// there is `up`.
struct QuantizeOptions {
  kernels::ByteFormat format = kernels::ByteFormat::e4m3;
  ScaleSharing scales = ScaleSharing::row;  ///< tensor: the scale is read
  Tensor weight{};                          ///< [cols] of x's type
  bool layernorm = false;                   ///< with weight and bias, weight, or none
  Tensor bias{};                            ///< [cols] of x's type, of layernorm
  Tensor residual{}, sum{};                 ///< as x
  Tensor up{};                              ///< as x, the gate
  float epsilon = 1e-5F;                    ///< of the norm
};

struct RopeAppendOptions {
  RopePairs pairs = RopePairs::interleaved;
  /// [dim] of q's type: weights of the RMS norms of q's and of k's heads before the rotation. Both
  /// or neither are given; empty: no norm.
  Tensor q_norm{}, k_norm{};
  float epsilon = 1e-5F;  ///< of the norms
  /// i32 [batch, pages of a sequence], as AttentionOptions::block_table. Empty: no pages.
  Tensor block_table{};
};

struct SoftmaxOptions {
  float scale = 1;                       ///< factor of the elements
  SoftmaxMask mask = SoftmaxMask::none;  ///< which elements a row attends to
  Tensor added{};                        ///< an additive mask, shape and type of x; empty: none
};

struct AttentionOptions {
  std::optional<float> scale{};  ///< factor of the scores; std::nullopt: 1 / sqrt(dim)
  bool causal = false;           ///< a query attends only to keys up to its position
  /// Number of keys that a causal query attends to, its own and those before it; std::nullopt: all.
  std::optional<std::int64_t> window{};
  std::optional<float> softcap{};  ///< limit c of the scores s, which become c tanh(s / c)
  Tensor sinks{};  ///< f32 [heads]: scores added to the sums of exponentials; empty: none
  Tensor lse{};    ///< f32 [batch, q, heads]: receives the logarithms of these sums; empty: none
  /// i32 [batch, pages of a sequence]: numbers of the pages of k and v, which are [pages, kv_heads,
  /// page, dim] then; a page has 16, 32, 64, 128 or 256 keys. Empty: no pages.
  Tensor block_table{};
  /// i32 [sequences + 1], both or none: where each sequence begins in packed tokens, and where the
  /// last one ends. q and out are [queries, heads, dim] then, k and v [keys, kv_heads, dim], and
  /// lengths is empty.
  Tensor cu_seqlens_q{};
  Tensor cu_seqlens_k{};
  /// Whether lengths of sequences are expected to differ: selects what was tuned for such ones
  /// (`--lengths ragged`). Results do not depend on it.
  bool ragged = false;
  /// i32 [batch, q, ceil(q / 32)]: the queries are the tokens of a speculative tree, whose keys are
  /// the last q valid ones. A query attends to all keys before these, to its own, and to that of
  /// token j if bit j % 32 of its word j / 32 is set. Without a mask, window, softcap, sinks and
  /// packed sequences. Empty: none.
  Tensor tree{};
};

struct LatentAttentionOptions {
  std::optional<float> scale{};  ///< factor of the scores; std::nullopt: 1 / sqrt(latent + rope)
  bool causal = false;           ///< a query attends only to rows up to its position
  Tensor tree{};                 ///< as AttentionOptions::tree
  Tensor lse{};                  ///< as AttentionOptions::lse
  /// i32 [batch, pages of a sequence]: numbers of the pages of the cache, which is [pages, page,
  /// latent + rope] then; a page has 16, 32, 64, 128 or 256 rows. Empty: no pages.
  Tensor block_table{};
  bool ragged = false;  ///< as AttentionOptions::ragged
};

/// Penalties of earlier tokens, both or none. x is changed in place: the logit of a token that
/// occurs `count` times in its row's history is divided by the repetition penalty, or multiplied by
/// it if it is not positive, and then reduced by frequency * count + presence.
struct SampleOptions {
  Tensor penalties{};  ///< f32 [rows, 3]: repetition (1: off), frequency and presence (0: off)
  Tensor history{};  ///< i32 [rows, tokens]; tokens that are negative or not below cols are skipped
};

/// What the score of an expert is: its share of the softmax over all experts, or the sigmoid of its
/// logit.
enum class ExpertScore { softmax, sigmoid };

struct RouteOptions {
  ExpertScore score = ExpertScore::softmax;
  bool renormalise = true;  ///< weights are scores over the sum of the token's scores
  Tensor bias{};            ///< f32 [experts]: selection is by score + bias; empty: none
  float scale = 1;          ///< factor of the weights
  /// Groups of neighbouring experts, 1, 2, 4, 8 or 16, of which the best top_groups (1, 2, 3, 4 or
  /// 8) have a token's experts: those of the largest score, or with a bias of the largest sum of
  /// two.
  std::int64_t groups = 1, top_groups = 1;
};

/// Scale and offset of an affine norm. Each is [cols] of x's type and may be empty.
struct NormOptions {
  Tensor weight{};
  Tensor bias{};  ///< layernorm only, requires a weight
  float epsilon = 1e-5F;
};

/// GRETA's operations (docs/kernels.md) on tensors. Dimensions are derived from the operands'
/// shapes; leading dimensions count as rows. Operands must be contiguous, and an operand that is
/// written must not overlap another one, with the exceptions stated below. Matrices of gemm may
/// have strides and begin at any element. Row operations (argmax, softmax, norms) also accept views
/// with a constant row stride, which must be the same for all inputs with rows, and the same for
/// all outputs. rope (x), kv_update (k and v, equal strides), rope_append (q; k and v, equal
/// strides) and attention (q) accept strided tokens. A call that can't be computed fails with
/// `invalid_argument`, and then nothing is run or recorded.
///
/// Queue runs operations immediately, Pipeline records them.
class Operations {
 public:
  virtual ~Operations() = default;

  /// C = act(alpha A B + bias + residual + beta C). A is [.., m, k] (tn, tt: [k, m]), B is [k, n]
  /// (nt, tt: [n, k]), and C is [.., m, n]. If B is [batch, k, n], A is [batch, m, k] and C [batch,
  /// m, n], or transposed as above: a product for each. Rows and matrices may be apart, and all may
  /// begin at any element. The residual is placed as C.
  Result<void> gemm(const Tensor& a, const Tensor& b, const Tensor& c,
                    const GemmOptions& options = {});
  /// C = A B[group] for groups of rows, as experts multiply. B is [groups, k, n] (nt: [groups, n,
  /// k]), and `groups` i32 [groups], which is read when kernels run. If A is [rows, k] and C [rows,
  /// n], the groups' rows lie one after the other and `groups` has the row after each one's last;
  /// ends must not decrease. If A is [groups, most, k] and C [groups, most, n], `groups` has the
  /// number of rows of each group that count. Other rows of C stay as they are. With activation
  /// swiglu or geglu and layout nt, B is [groups, 2 n, k]: a group's gates, then its ups; others
  /// than these and none are refused.
  Result<void> grouped_gemm(const Tensor& a, const Tensor& b, const Tensor& groups, const Tensor& c,
                            Layout layout = Layout::nt, Activation activation = Activation::none);
  /// C = A W^T, where W [n, k] is quantised: the weights of a row are the bytes of a row of B, u8
  /// [n, bytes], in the format (kernels/model/weight_formats.hpp). B must begin at a multiple of 16
  /// bytes if rows and blocks of the format are such multiples (int4, int8, q4_k, mxfp4), else
  /// of 2.
  Result<void> quantized_gemm(const Tensor& a, const Tensor& b, const Tensor& c,
                              const QuantizedGemmOptions& options = {});
  /// C = A W[group]^T for groups of rows as in grouped_gemm(), of which each has quantised weights:
  /// B is u8 [groups, n, bytes], or [groups, 2 n, bytes] with an activation.
  Result<void> quantized_grouped_gemm(const Tensor& a, const Tensor& b, const Tensor& groups,
                                      const Tensor& c,
                                      const QuantizedGroupedGemmOptions& options = {});
  /// out [rows, cols] = the weights that B, u8 [rows, bytes], stands for, as quantized_gemm reads
  /// it.
  Result<void> dequantize(const Tensor& b, const Tensor& out,
                          const DequantizeOptions& options = {});
  /// B, u8 [n, bytes], and scales [n, groups] as quantized_gemm() takes them, of weights as AWQ and
  /// GPTQ pack them (kernels::WeightPacking): qweight i32, [k, n / 8] of awq, else [k / 8, n] or of
  /// int8 [k / 4, n]; qscales [groups, n], of f16 or bf16. n is a multiple of 8, of panels of 16.
  /// Or panels of rows, whose scales stay as they are: qweight and B are u8 [n, bytes], or of
  /// numbers f16 or bf16 [n, k], or of several matrices [groups, n, ..]; qscales and scales are
  /// empty.
  Result<void> repack_weights(const Tensor& qweight, const Tensor& qscales, const Tensor& b,
                              const Tensor& scales, const RepackOptions& options = {});
  /// C = (scales_a A) (scales_b B)^T with A [.., k] and B [n, k] of u8, whose bytes are numbers of
  /// the format. Scales are f32: [1, 1] each; [m, 1] and [n, 1] of rows; or [m, ceil(k / 128)] and
  /// [ceil(n / 128), ceil(k / 128)] of blocks. k is a multiple of 16.
  Result<void> scaled_gemm(const Tensor& a, const Tensor& b, const Tensor& scales_a,
                           const Tensor& scales_b, const Tensor& c,
                           const ScaledGemmOptions& options = {});
  /// C = (scales_a A) (scales_b B[group])^T for groups of rows as in grouped_gemm(), with operands
  /// as in scaled_gemm(): B is u8 [groups, n, k], or [groups, 2 n, k] with an activation. Scales of
  /// tensors are [groups, 1] each. Those of rows are [rows of A, 1] and [groups x rows of B, 1],
  /// those of blocks [rows of A, ceil(k / 128)] and [groups x ceil(rows of B / 128), ceil(k /
  /// 128)].
  Result<void> scaled_grouped_gemm(const Tensor& a, const Tensor& b, const Tensor& scales_a,
                                   const Tensor& scales_b, const Tensor& groups, const Tensor& c,
                                   const ScaledGroupedGemmOptions& options = {});
  /// q = y / scale and its scales, as scaled_gemm reads A: y is x, or what the options say of it; x
  /// [.., 2 cols] holds gate, then up, for y = silu(gate) * up. q is u8 [.., cols], whose bytes are
  /// numbers of the format. Scales are f32, [rows, 1] or [rows, ceil(cols / 128)], or one that is
  /// read, [1, 1]. cols is a multiple of 4. x, and the same for all operands like it, and q may
  /// have row strides.
  Result<void> quantize(const Tensor& x, const Tensor& q, const Tensor& scales,
                        const QuantizeOptions& options = {});
  /// out = a + b, all of the same shape.
  Result<void> add(const Tensor& a, const Tensor& b, const Tensor& out);
  /// out = silu(gate) * up, all of the same shape.
  Result<void> silu_mul(const Tensor& gate, const Tensor& up, const Tensor& out);
  /// The same for packed operands: each row of x [.., 2 cols] holds gate, then up. out is [..,
  /// cols].
  Result<void> silu_mul(const Tensor& x, const Tensor& out);
  Result<void> gelu(const Tensor& x, const Tensor& out, GeluForm form = GeluForm::tanh);
  /// Rotates x [tokens, heads, dim] by the angles of `table` [positions, dim] (f32; cosine and sine
  /// of each pair) at each token's position (i32 [tokens]). `out` may be the same view as x.
  Result<void> rope(const Tensor& x, const Tensor& positions, const Tensor& table,
                    const Tensor& out, RopePairs pairs = RopePairs::interleaved);
  /// Writes k and v [tokens, kv_heads, dim] to the caches [kv_heads, capacity, dim], beginning at
  /// slot `position` (i32 [1]). v and its cache may have another dim. With `block_table` (i32, the
  /// numbers of a sequence's pages) the caches are pools [pages, kv_heads, page, dim], as
  /// AttentionOptions::block_table says.
  Result<void> kv_update(const Tensor& k, const Tensor& v, const Tensor& position,
                         const Tensor& k_cache, const Tensor& v_cache,
                         const Tensor& block_table = {});
  /// rope of q [batch, tokens, heads, dim] to `out` and of k [batch, tokens, kv_heads, dim], and
  /// kv_update with the rotated k and with v, in one launch. `positions` are i32 [batch, tokens],
  /// and `slots` (i32 [batch]) are those of the sequences' first tokens in the caches [batch,
  /// kv_heads, capacity, dim]; with a block table these are pools [pages, kv_heads, page, dim].
  /// `out` may be the same view as q. Tensors without a batch dimension are one sequence.
  Result<void> rope_append(const Tensor& q, const Tensor& k, const Tensor& v,
                           const Tensor& positions, const Tensor& table, const Tensor& slots,
                           const Tensor& k_cache, const Tensor& v_cache, const Tensor& out,
                           const RopeAppendOptions& options = {});
  /// Gathers the rows of `table` [vocabulary, dim] selected by `ids` (i32 [tokens]); out is
  /// [tokens, dim].
  Result<void> embedding(const Tensor& ids, const Tensor& table, const Tensor& out);
  /// Gathers the columns of x [.., width] selected by `ids` (i32 [cols]); out is [.., cols].
  Result<void> gather_columns(const Tensor& ids, const Tensor& x, const Tensor& out);
  /// Computes the lowest column of each row's largest value. x is [.., cols], index is i32 [rows].
  Result<void> argmax(const Tensor& x, const Tensor& index);
  /// Draws a token of each row of logits x [.., cols] to token, i32 [rows]. settings, f32 [rows,
  /// 4], are temperature (0: the largest logit), top_k (0: off), top_p (1: off) and min_p (0: off).
  /// seeds, i32 [rows, 3], are the two words of a seed and an offset, such as the position of the
  /// token. Both are read when kernels run. Equal logits, settings and seeds give equal tokens on
  /// every device. A row without a logit above -inf gives -1.
  Result<void> sample(const Tensor& x, const Tensor& settings, const Tensor& seeds,
                      const Tensor& token, const SampleOptions& options = {});
  /// Selects the experts of each token by logits [.., experts]: ids, i32 [.., top_k], the largest
  /// one first and of equal ones that with the lower number, and their weights, f32 [.., top_k].
  Result<void> route(const Tensor& logits, const Tensor& ids, const Tensor& weights,
                     const RouteOptions& options = {});
  /// Copies the rows of x [.., dim] to the experts of ids, i32 [.., top_k], as grouped_gemm takes
  /// them. `groups` is i32 [experts], and `places`, i32 [.., top_k], receives the row of `out` of
  /// each assignment, or -1. If `out` is [rows, dim], experts' rows lie one after the other, each
  /// expert's number of rows rounded up to a multiple of `block` (1, 16, 32, 64, 128 or 256) by
  /// rows of zeros, and `groups` receives the row after each one's last. `rows` must be tokens *
  /// top_k + (block - 1) * min(experts, tokens * top_k). If `out` is [experts, capacity, dim],
  /// `groups` receives the number of rows of each expert that count; those beyond the capacity are
  /// dropped. Other rows of `out` stay as they are. An id that is not below experts is of no
  /// expert.
  Result<void> permute(const Tensor& x, const Tensor& ids, const Tensor& out, const Tensor& groups,
                       const Tensor& places, std::int64_t block = 1);
  /// out [.., dim] = the sum of the rows of y [.., dim] at each token's places, i32 [.., top_k],
  /// times weights, f32 [.., top_k]. A place that y does not have adds nothing.
  Result<void> unpermute(const Tensor& y, const Tensor& places, const Tensor& weights,
                         const Tensor& out);
  /// out [.., dim] = the sum over each token's experts of weights, f32 [.., top_k], times down
  /// (silu(gate x) * (up x)), for up to 64 tokens; more of them are permute(), grouped_gemm() and
  /// unpermute(). x is [.., dim], ids i32 [.., top_k], gate_up [experts, 2 hidden, dim] with each
  /// expert's gates and then its ups, and down [experts, dim, hidden]. An id that is not below
  /// experts adds nothing, nor does one with a weight of 0; their matrices are not read. With a
  /// format of quantised weights, lines of gate_up and down are u8, as rows of quantized_gemm's B.
  Result<void> experts(const Tensor& x, const Tensor& ids, const Tensor& weights,
                       const Tensor& gate_up, const Tensor& down, const Tensor& out,
                       const ExpertsOptions& options = {});
  /// out = softmax(scale Q K^T) V. q and out are [batch, q, heads, dim], k and v are [batch,
  /// kv_heads, capacity, dim], and lengths (i32 [batch]) is the number of valid keys per sequence.
  /// v and out may have another dim than q and k. Tensors without a batch dimension are one
  /// sequence.
  Result<void> attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& lengths,
                         const Tensor& out, const AttentionOptions& options = {});
  /// Multi-head latent attention in its absorbed form. q is [batch, q, heads, latent + rope], and
  /// the cache, of all heads, [batch, capacity, latent + rope]: its rows are the keys, and their
  /// first `latent` elements the values. out is [batch, q, heads, latent], and lengths (i32
  /// [batch]) is the number of valid rows per sequence. Tensors without a batch dimension are one
  /// sequence.
  Result<void> latent_attention(const Tensor& q, const Tensor& cache, const Tensor& lengths,
                                const Tensor& out, const LatentAttentionOptions& options = {});
  /// Joins partial results of attention over parts of the keys by their log-sum-exps: outs [parts,
  /// .., heads, dim] and lses (f32 [parts, .., heads]) into out [.., heads, dim] and, if given, lse
  /// (f32 [.., heads]), the log-sum-exps of all parts.
  Result<void> attention_merge(const Tensor& outs, const Tensor& lses, const Tensor& out,
                               const Tensor& lse = {});
  /// Operations on each row. y may be the same view as x.
  Result<void> softmax(const Tensor& x, const Tensor& y, const SoftmaxOptions& options = {});
  Result<void> layernorm(const Tensor& x, const Tensor& y, const NormOptions& options = {});
  Result<void> rmsnorm(const Tensor& x, const Tensor& y, const NormOptions& options = {});
  /// sum = x + residual, y = rmsnorm(sum).
  Result<void> add_rmsnorm(const Tensor& x, const Tensor& residual, const Tensor& sum,
                           const Tensor& y, const NormOptions& options = {});
  /// y = rmsnorm(layernorm(x)) * gain. A gain, [cols], is required with a weight and must be empty
  /// without one.
  Result<void> layernorm_rmsnorm(const Tensor& x, const Tensor& y, const Tensor& gain,
                                 const NormOptions& options = {});

  /// Copies elements. Both tensors are contiguous and have the same type and number of elements.
  /// They must not overlap.
  virtual Result<void> copy(const Tensor& to, const Tensor& from) = 0;
  /// Runs a problem on its operands, in the order of Operation::tensors. The methods above call
  /// this one.
  virtual Result<void> run(const Problem& problem, std::span<const Tensor> operands) = 0;
  /// Returns the operations that run() supports.
  virtual const Catalog& catalog() const = 0;

  /// Returns whether products of this many rows of A, of this type, may round quantised weights
  /// without an option of their own (RuntimeOptions::rounded_weights).
  bool rounds_weights(DType a, std::int64_t rows) const {
    return rounded_weights_ && bits_of(a) == 16 && rows > most_exact_rows;
  }

 protected:
  /// `rounded_weights`: RuntimeOptions::rounded_weights.
  explicit Operations(bool rounded_weights = false) : rounded_weights_(rounded_weights) {}

 private:
  /// Checks that no operand is missing, and runs.
  Result<void> start(const Problem& problem, std::span<const Tensor> operands);

  bool rounded_weights_;
};

/// Checks whether `from` can be copied to `to`.
Result<void> check_copy(const Tensor& to, const Tensor& from);
/// Records a copy between tensors with memory.
Result<void> record_copy(Stream& stream, const Tensor& to, const Tensor& from);

}  // namespace greta::runtime
