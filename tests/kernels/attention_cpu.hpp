#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "kernels/model/operation.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// Extents of an attention problem; 0 selects the operation's default.
struct AttentionShape {
  std::int64_t batch = 1, heads = 1, kv_heads = 0, queries = 1, keys = 1, dim = 64;
  bool causal = false;
  std::int64_t v_dim = 0;
};

Problem attention_problem(const AttentionShape& shape, DType in = DType::f32,
                          DType out = DType::f32, const std::string& scale = "auto");

/// Returns the template's inputs with these numbers of valid keys per sequence.
std::vector<HostTensor> attention_inputs(const Problem& problem, std::uint64_t seed,
                                         const std::vector<std::int64_t>& lengths = {});

/// Errors of an incorrect kernel.
struct AttentionMistakes {
  std::int64_t skip_from = 0, skip_to = 0;  ///< keys left out
  std::int64_t f16_every = 0;      ///< sums are rounded to f16 after this number of keys; 0: never
  bool f16_scores = false;         ///< scores are rounded to f16
  bool sees_next = false;          ///< causal queries see the next key as well
  bool wrong_heads = false;        ///< heads use KV heads in turn instead of in groups
  bool no_maximum = false;         ///< the maximum is not subtracted before the exponential
  bool ignores_lengths = false;    ///< all keys up to the capacity are used
  float lowest_score = -INFINITY;  ///< initial value of the maximum
};

/// Computes the output with plain loops and an online softmax in f32, rounded to the output type.
HostTensor cpu_attention(const Problem& problem, const std::vector<HostTensor>& inputs,
                         const AttentionMistakes& mistakes = {});

}  // namespace greta::test
