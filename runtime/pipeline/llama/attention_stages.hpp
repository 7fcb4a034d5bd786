#pragma once

#include <cstdint>
#include <vector>

#include "runtime/pipeline/llama/stages.hpp"
#include "runtime/pipeline/llama/trace_bounds.hpp"
#include "runtime/pipeline/llama/trace_check.hpp"

/// The stages in a launch of attention: scores, softmax and the weighted sum of values. They are in
/// no memory. The weights of the sum appear as results if a value is one-hot: with value j of all
/// KV heads 1 in column c and 0 elsewhere, column c of the result is the weight of key j.
namespace greta::runtime {

/// Decides from probes which stage of attention is wrong.
///
/// With queries of 0, only the mask, the sum of the weights and the summation of values count. With
/// the pass's own queries, the logarithm of (weight / expected weight) of a row is constant over
/// the keys if the scores are right up to a constant, and constant in ranges of keys if weights are
/// rescaled wrongly between tiles. So a row is wrong in
///
/// - its weighted sum, if equal weights do not sum to 1, or the keys whose weights are not 0 are
///   wrong but their ratios are not those of the scores;
/// - its softmax, if equal weights go to the wrong keys, or ratios are constant in ranges;
/// - its scores otherwise.
///
/// The stage of most wrong rows is the one that fails.
class AttentionStages {
 public:
  AttentionStages(const TraceTypes& types, std::int64_t layer, std::int64_t heads,
                  std::int64_t length, std::int64_t dim);

  /// Adds a row. `attended` are the visible keys, which are the first ones; `equal` are the same of
  /// a query of 0.
  void add(std::int64_t row, const stages::Attended& attended, const stages::Attended& equal,
           const double* weights, const double* uniform);

  /// Returns the findings on attn_scores, attn_softmax and, if the weighted sum is wrong,
  /// attention.
  std::vector<StageFinding> findings() const;

 private:
  enum Part { scores, softmax, sum };

  /// Returns the expected weights of all keys.
  std::vector<Expected> expected(const stages::Attended& attended) const;
  /// Returns the weight that is farthest from its expectation.
  StageFinding worst(std::int64_t row, const double* weights,
                     const std::vector<Expected>& expected) const;
  void note(Part part, const StageFinding& finding);

  TraceBounds bounds_;
  std::int64_t layer_, heads_, length_, dim_;
  std::int64_t wrong_[3] = {0, 0, 0};  ///< rows
  StageFinding worst_[3];              ///< of right rows, or of wrong ones if there are any
};

}  // namespace greta::runtime
