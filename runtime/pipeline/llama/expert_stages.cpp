#include "runtime/pipeline/llama/expert_stages.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace greta::runtime::stages {
namespace {

constexpr double no_expert = std::numeric_limits<double>::quiet_NaN();
constexpr double no_logit = -std::numeric_limits<double>::infinity();

double comparable(double logit) {
  return std::isnan(logit) ? no_logit : logit;
}

/// Returns e^(logit - largest); 0 where no logit is above -inf.
double share_of(double logit, double largest) {
  return largest == no_logit ? 0 : std::exp(comparable(logit) - largest);
}

}  // namespace

TraceMatrix select_experts(const TraceMatrix& logits, std::int64_t top_k) {
  TraceMatrix selected(logits.rows, top_k);
  std::vector<std::int64_t> order(static_cast<std::size_t>(logits.cols));
  for (std::int64_t row = 0; row < logits.rows; ++row) {
    const double* const keys = logits.row(row);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return comparable(keys[a]) > comparable(keys[b]);
    });
    std::copy_n(order.begin(), top_k, selected.row(row));
  }
  return selected;
}

TraceMatrix expert_weights(const TraceMatrix& logits, const TraceMatrix& experts,
                           bool renormalise) {
  TraceMatrix weights(experts.rows, experts.cols);
  for (std::int64_t row = 0; row < experts.rows; ++row) {
    const double* const all = logits.row(row);
    std::vector<double> own;
    for (std::int64_t i = 0; i < experts.cols; ++i) {
      const double expert = experts.row(row)[i];
      const bool known = expert >= 0 && expert < static_cast<double>(logits.cols);
      own.push_back(known ? comparable(all[static_cast<std::int64_t>(expert)]) : no_expert);
    }
    const std::vector<double> summed =
        renormalise ? own : std::vector<double>(all, all + logits.cols);
    double largest = no_logit, sum = 0;
    for (const double logit : summed) largest = std::max(largest, comparable(logit));
    for (const double logit : summed) sum += share_of(logit, largest);
    for (std::int64_t i = 0; i < experts.cols; ++i) {
      const double logit = own[static_cast<std::size_t>(i)];
      weights.row(row)[i] = std::isnan(logit) ? no_expert
                            : sum > 0         ? share_of(logit, largest) / sum
                                              : 0;
    }
  }
  return weights;
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

TraceMatrix repeated(const TraceMatrix& x, std::int64_t times) {
  TraceMatrix rows(x.rows * times, x.cols);
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    std::copy_n(x.row(row / times), x.cols, rows.row(row));
  }
  return rows;
}

namespace {

/// Calls body(expert, its rows of x, their numbers) for each expert that has some.
template <typename Body>
void for_each_expert(std::size_t count, const TraceMatrix& experts, const TraceMatrix& x,
                     const Body& body) {
  for (std::size_t e = 0; e < count; ++e) {
    std::vector<std::int64_t> own;
    for (std::int64_t row = 0; row < x.rows; ++row) {
      if (experts.values[static_cast<std::size_t>(row)] == static_cast<double>(e)) {
        own.push_back(row);
      }
    }
    if (own.empty()) continue;
    TraceMatrix rows(static_cast<std::int64_t>(own.size()), x.cols);
    for (std::int64_t i = 0; i < rows.rows; ++i) {
      std::copy_n(x.row(own[static_cast<std::size_t>(i)]), x.cols, rows.row(i));
    }
    body(e, rows, own);
  }
}

/// Copies rows to those of these numbers.
void put_rows(const TraceMatrix& rows, const std::vector<std::int64_t>& numbers, TraceMatrix& to) {
  for (std::int64_t i = 0; i < rows.rows; ++i) {
    std::copy_n(rows.row(i), rows.cols, to.row(numbers[static_cast<std::size_t>(i)]));
  }
}

}  // namespace

TraceMatrix multiply_by_experts(const Weights& weights, const std::vector<LlamaExpert>& networks,
                                WeightView LlamaExpert::*matrix, const TraceMatrix& experts,
                                const TraceMatrix& x, TraceMatrix* norms) {
  const std::int64_t cols = (networks.front().*matrix).rows;
  TraceMatrix result(x.rows, cols);
  std::fill(result.values.begin(), result.values.end(), no_expert);
  if (norms != nullptr) *norms = TraceMatrix(x.rows, cols);
  for_each_expert(networks.size(), experts, x,
                  [&](std::size_t e, const TraceMatrix& rows, const auto& numbers) {
                    TraceMatrix own;
                    TraceMatrix* const of_rows = norms != nullptr ? &own : nullptr;
                    put_rows(multiply(weights, networks[e].*matrix, rows, of_rows), numbers,
                             result);
                    if (norms != nullptr) put_rows(own, numbers, *norms);
                  });
  return result;
}

TraceMatrix multiply_sizes_by_experts(const Weights& weights,
                                      const std::vector<LlamaExpert>& networks,
                                      WeightView LlamaExpert::*matrix, const TraceMatrix& experts,
                                      const TraceMatrix& x) {
  TraceMatrix result(x.rows, (networks.front().*matrix).rows);
  for_each_expert(networks.size(), experts, x,
                  [&](std::size_t e, const TraceMatrix& rows, const auto& numbers) {
                    put_rows(multiply_sizes(weights, networks[e].*matrix, rows), numbers, result);
                  });
  return result;
}

TraceMatrix weighted_sum(const TraceMatrix& rows, const TraceMatrix& weights, TraceMatrix* norms) {
  TraceMatrix result(weights.rows, rows.cols);
  if (norms != nullptr) *norms = TraceMatrix(weights.rows, rows.cols);
  for (std::int64_t row = 0; row < weights.rows; ++row) {
    for (std::int64_t col = 0; col < rows.cols; ++col) {
      double sum = 0, squares = 0;
      for (std::int64_t i = 0; i < weights.cols; ++i) {
        const double product = weights.row(row)[i] * rows.row(row * weights.cols + i)[col];
        sum += product;
        squares += product * product;
      }
      result.row(row)[col] = sum;
      if (norms != nullptr) norms->row(row)[col] = std::sqrt(squares);
    }
  }
  return result;
}

}  // namespace greta::runtime::stages
