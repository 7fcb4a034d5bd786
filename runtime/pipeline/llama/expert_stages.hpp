#pragma once

#include <cstdint>
#include <vector>

#include "runtime/pipeline/llama/stages.hpp"

/// The stages of a mixture of experts in FP64, as those of stages.hpp.
namespace greta::runtime::stages {

/// Returns the numbers of the top_k largest logits of each row, the largest first, of equal ones
/// the lower number first. NaN counts as -inf.
TraceMatrix select_experts(const TraceMatrix& logits, std::int64_t top_k);

/// Returns the weights of the selected experts: shares of the softmax over all experts, or with
/// `renormalise` over the selected ones. An expert that there isn't has the weight NaN.
TraceMatrix expert_weights(const TraceMatrix& logits, const TraceMatrix& experts, bool renormalise);

double sigmoid(double x);

/// Returns each row `times` times.
TraceMatrix repeated(const TraceMatrix& x, std::int64_t times);

/// Returns the product of each row of x with the matrix of its expert: row i has expert i of
/// `experts` in row-major order. Of one that there isn't, the product is NaN. `norms` is as in
/// multiply().
TraceMatrix multiply_by_experts(const Weights& weights, const std::vector<LlamaExpert>& networks,
                                WeightView LlamaExpert::*matrix, const TraceMatrix& experts,
                                const TraceMatrix& x, TraceMatrix* norms = nullptr);

/// Returns the sums of the products' sizes, of rows that aren't negative, as multiply_sizes() does.
TraceMatrix multiply_sizes_by_experts(const Weights& weights,
                                      const std::vector<LlamaExpert>& networks,
                                      WeightView LlamaExpert::*matrix, const TraceMatrix& experts,
                                      const TraceMatrix& x);

/// Returns the sum of the rows of each token times its weights [tokens, top_k]. `norms` receives
/// the root of the sum of the squared products of each element.
TraceMatrix weighted_sum(const TraceMatrix& rows, const TraceMatrix& weights,
                         TraceMatrix* norms = nullptr);

}  // namespace greta::runtime::stages
