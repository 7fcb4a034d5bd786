#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/device/attention_call.hpp"
#include "runtime/device/hip/cudnn/descriptors.hpp"

namespace greta::device::hip::cudnn {

/// The tensors of attention that have memory, by their unique numbers.
enum class Operand : std::int64_t {
  q = 1,
  k,
  v,
  out,
  query_lengths,  ///< queries of each sequence, i32 in device memory
  lengths,
  sinks,
  lse,
  // In host memory
  scale,
  hidden,  ///< the score of a key that a query does not see
  window,
  softcap,
};

/// Describes an AttentionCall as the graph of operations that cuDNN's engines for attention
/// recognise: product of Q and K, scale, limit, masks, softmax by reductions, product with V. The
/// order and the types of intermediate results follow NVIDIA's cudnn-frontend (MIT licence). The
/// logarithm of a row's sum is always a part, since engines write it without a check.
class AttentionGraph {
 public:
  /// Makes the graph's descriptors. Throws a Refusal.
  AttentionGraph(Descriptors& descriptors, const AttentionCall& call, Handle handle);

  Descriptor descriptor() const { return graph_; }
  /// Returns the operands of the call.
  const std::vector<Operand>& operands() const { return operands_; }

 private:
  using Extents = std::array<std::int64_t, 4>;

  struct Tensor {
    std::int64_t number;
    Data type;
    Extents extents, strides;
    bool is_virtual = false, is_value = false;
  };
  Descriptor tensor(const Tensor& form);
  Descriptor operand(Operand which, Data type, const Extents& extents, const Extents& strides);
  Descriptor value(Operand which, Data type);
  /// Return intermediate results: a score for each query and key, or a number for each query.
  Descriptor scores(Data type = Data::f32);
  Descriptor rows();

  /// Adds an operation and returns its result, `y`.
  struct Inputs {
    Descriptor x, b = nullptr, t = nullptr;
    std::int64_t axis = -1;
  };
  Descriptor pointwise(Pointwise mode, Data math, const Inputs& inputs, Descriptor y);
  Descriptor reduce(Reduction mode, Descriptor x);
  struct Lengths {
    Descriptor m = nullptr, n = nullptr, k = nullptr;
  };
  Descriptor multiply(Descriptor a, Descriptor b, Descriptor c, const Lengths& lengths);

  Descriptor index(Descriptor of, Data math, std::int64_t axis);
  Descriptor moved(Pointwise mode, Descriptor indices, Descriptor lengths);
  Descriptor only(Descriptor of, Descriptor condition);
  Descriptor scaled(Descriptor scores);
  Descriptor within_lengths(Descriptor scores);
  Descriptor causal(Descriptor scores);
  Descriptor within_window(Descriptor scores);
  Descriptor softmax(Descriptor scores);
  void finish(Handle handle);

  Descriptors& descriptors_;
  const AttentionCall& call_;
  std::vector<Operand> operands_;
  std::vector<Descriptor> operations_;
  std::int64_t next_ = 100;  ///< number of an intermediate result
  Descriptor query_lengths_ = nullptr, lengths_ = nullptr, hidden_ = nullptr;
  Descriptor graph_ = nullptr;
};

}  // namespace greta::device::hip::cudnn
