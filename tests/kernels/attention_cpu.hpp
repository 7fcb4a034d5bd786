#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "kernels/model/operation.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// An attention problem's extents; what is 0 has the operation's default.
struct AttentionShape {
  std::int64_t batch = 1, heads = 1, kv_heads = 0, queries = 1, keys = 1, dim = 64;
  bool causal = false;
};

Problem attention_problem(const AttentionShape& shape, DType in = DType::f32,
                          DType out = DType::f32, const std::string& scale = "auto");

/// The template's inputs with these valid keys for each sequence.
std::vector<HostTensor> attention_inputs(const Problem& problem, std::uint64_t seed,
                                         const std::vector<std::int64_t>& lengths = {});

/// What a wrong kernel may do.
struct AttentionMistakes {
  std::int64_t skip_from = 0, skip_to = 0;  ///< keys left out
  std::int64_t f16_every = 0;  ///< sums of values are f16 again after so many keys; 0: they are not
  bool f16_scores = false;     ///< scores are rounded to f16
  bool sees_next = false;      ///< causal queries see the key after theirs
  bool wrong_heads = false;    ///< heads take KV heads in turn instead of in groups
  bool no_maximum = false;     ///< exponentials are of the scores themselves
  bool ignores_lengths = false;    ///< all keys that there is room for are seen
  float lowest_score = -INFINITY;  ///< what the greatest score is at first
};

/// The output by plain loops in f32, with a softmax that runs along, rounded to the output type.
HostTensor cpu_attention(const Problem& problem, const std::vector<HostTensor>& inputs,
                         const AttentionMistakes& mistakes = {});

}  // namespace greta::test
