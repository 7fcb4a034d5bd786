#pragma once

#include <optional>
#include <span>

#include "kernels/catalog.hpp"
#include "runtime/device/result.hpp"
#include "runtime/pipeline/compute/tensor.hpp"

namespace greta::runtime {

enum class Layout { nn, nt, tn };  ///< how A and B are stored: n as they are, t transposed
enum class Activation { none, silu, gelu };  ///< behind a product
enum class GeluForm { tanh, erf };
enum class RopePairs { interleaved, half };  ///< elements 2i and 2i + 1, or i and i + dim / 2
enum class SoftmaxMask { none, causal };     ///< causal: a row sees columns up to row mod cols

struct GemmOptions {
  Layout layout = Layout::nn;
  Activation activation = Activation::none;
  float alpha = 1;    ///< factor of the product
  float beta = 0;     ///< factor of C's old value
  Tensor bias{};      ///< [n], of C's type; empty: none
  Tensor residual{};  ///< as C; empty: none
};

struct SoftmaxOptions {
  float scale = 1;                       ///< factor of the elements
  SoftmaxMask mask = SoftmaxMask::none;  ///< what a row sees
  Tensor added{};                        ///< a mask that is added, as x; empty: none
};

struct AttentionOptions {
  std::optional<float> scale{};  ///< factor of the scores; nothing: 1 / sqrt(dim)
  bool causal = false;           ///< a query sees only the keys up to its own
};

/// What an affine norm scales and shifts by; each is [cols] of x's type, and may be empty.
struct NormOptions {
  Tensor weight{};
  Tensor bias{};  ///< layernorm only, and with a weight only
  float epsilon = 1e-5F;
};

/// GRETA's operations (docs/kernels.md) on tensors. Dimensions are taken from the operands' shapes:
/// leading dimensions count as rows. Operands must be contiguous, and no operand that is written
/// may overlap another, except where it is said. Operations on rows (argmax, softmax and the norms)
/// also take views whose rows are evenly further apart than packed: all inputs that have rows
/// alike, and all outputs alike; so do rope, kv_update and attention of x, of k and v alike, and of
/// q whose tokens are. What can't be computed is a Failure (`invalid_argument`), and then nothing
/// is run or recorded.
///
/// Queue runs them at once, Pipeline records them.
class Operations {
 public:
  virtual ~Operations() = default;

  /// C = act(alpha A B + bias + residual + beta C). A is [.., m, k] (tn: [k, m]), B [k, n] (nt: [n,
  /// k]), C [.., m, n].
  Result<void> gemm(const Tensor& a, const Tensor& b, const Tensor& c,
                    const GemmOptions& options = {});
  /// out = a + b, all of one shape.
  Result<void> add(const Tensor& a, const Tensor& b, const Tensor& out);
  /// out = silu(gate) * up, all of one shape.
  Result<void> silu_mul(const Tensor& gate, const Tensor& up, const Tensor& out);
  /// The same where each row of x [.., 2 cols] holds gate, then up; out is [.., cols].
  Result<void> silu_mul(const Tensor& x, const Tensor& out);
  Result<void> gelu(const Tensor& x, const Tensor& out, GeluForm form = GeluForm::tanh);
  /// Rotates x [tokens, heads, dim] by the angles of `table` [positions, dim] (f32; cosine and sine
  /// of each pair) at each token's position, i32 [tokens]. `out` may be x itself.
  Result<void> rope(const Tensor& x, const Tensor& positions, const Tensor& table,
                    const Tensor& out, RopePairs pairs = RopePairs::interleaved);
  /// Writes k and v [tokens, kv_heads, dim] into the caches [kv_heads, capacity, dim] from slot
  /// `position` (i32 [1]) on.
  Result<void> kv_update(const Tensor& k, const Tensor& v, const Tensor& position,
                         const Tensor& k_cache, const Tensor& v_cache);
  /// Rows of `table` [vocabulary, dim] that `ids` (i32 [tokens]) name; out is [tokens, dim].
  Result<void> embedding(const Tensor& ids, const Tensor& table, const Tensor& out);
  /// The lowest column of each row's largest value. x is [.., cols], index i32 [rows].
  Result<void> argmax(const Tensor& x, const Tensor& index);
  /// softmax(scale Q K^T) V. q and out are [batch, q, heads, dim], k and v [batch, kv_heads,
  /// capacity, dim], lengths i32 [batch]: how many keys of each sequence are valid. Without a batch
  /// of their own, tensors count as one sequence.
  Result<void> attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& lengths,
                         const Tensor& out, const AttentionOptions& options = {});
  /// Of each row. y may be x itself.
  Result<void> softmax(const Tensor& x, const Tensor& y, const SoftmaxOptions& options = {});
  Result<void> layernorm(const Tensor& x, const Tensor& y, const NormOptions& options = {});
  Result<void> rmsnorm(const Tensor& x, const Tensor& y, const NormOptions& options = {});
  /// sum = x + residual, y = rmsnorm(sum).
  Result<void> add_rmsnorm(const Tensor& x, const Tensor& residual, const Tensor& sum,
                           const Tensor& y, const NormOptions& options = {});
  /// y = rmsnorm(layernorm(x)) * gain; a gain, [cols], exactly where there is a weight.
  Result<void> layernorm_rmsnorm(const Tensor& x, const Tensor& y, const Tensor& gain,
                                 const NormOptions& options = {});

  /// Copies elements. Both are contiguous, of one type and as many elements; they don't overlap.
  virtual Result<void> copy(const Tensor& to, const Tensor& from) = 0;
  /// Runs a problem on its operands, in the order of Operation::tensors. What the methods
  /// above end in; for problems that are made elsewhere.
  virtual Result<void> run(const Problem& problem, std::span<const Tensor> operands) = 0;
  /// The operations that run() knows.
  virtual const Catalog& catalog() const = 0;

 private:
  /// Checks that every operand is there, and runs.
  Result<void> start(const Problem& problem, std::span<const Tensor> operands);
};

/// Whether `from` can be copied to `to`.
Result<void> check_copy(const Tensor& to, const Tensor& from);
/// Records a copy of tensors that have memory.
Result<void> record_copy(Stream& stream, const Tensor& to, const Tensor& from);

}  // namespace greta::runtime
