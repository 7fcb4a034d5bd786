#include "runtime/pipeline/llama/stages.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/model/parallel.hpp"
#include "kernels/reference/rounded_weights.hpp"

namespace greta::runtime::stages {
namespace {

double rounded_to(DType type, double value) {
  std::array<std::byte, 8> stored{};
  store_element(type, stored.data(), 0, value);
  return load_element(type, stored.data(), 0);
}

/// Calls body(i) for 0 to count - 1, on all cores if the total work is large. `work` is the number
/// of multiplications per call.
template <typename Body>
void for_each(std::int64_t count, std::int64_t work, const Body& body) {
  const auto part = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) body(i);
  };
  if (count * work < 1 << 20) return part(0, count);
  parallel_parts(count, part);
}

}  // namespace

std::vector<double> Weights::row(const WeightView& weights, std::int64_t row) const {
  std::vector<double> values(static_cast<std::size_t>(weights.cols));
  const bool kept = !weights.format().plain();
  weights.read(static_cast<std::size_t>(row) * values.size(), values.size(), values.data(),
               kept && rounding_ ? std::optional(scales_type(*rounding_)) : std::nullopt);
  if (!rounding_ || kept || weights.fits(*rounding_)) return values;
  for (double& value : values) value = rounded_to(*rounding_, value);
  return values;
}

double Weights::rounding_of_products(const WeightView& weights) const {
  const auto format = weights.format().quantised;
  if (!rounded_products_ || !rounding_ || !format) return 0;
  return kernels::rounding_of_weights(*format, *rounding_, weights.cols);
}

TraceMatrix multiply(const Weights& weights, const WeightView& matrix, const TraceMatrix& x,
                     TraceMatrix* norms) {
  TraceMatrix result(x.rows, matrix.rows);
  if (norms != nullptr) *norms = TraceMatrix(x.rows, matrix.rows);
  for_each(matrix.rows, x.rows * matrix.cols, [&](std::int64_t col) {
    const std::vector<double> w = weights.row(matrix, col);
    for (std::int64_t row = 0; row < x.rows; ++row) {
      const double* values = x.row(row);
      double sum = 0, squares = 0;
      for (std::size_t i = 0; i < w.size(); ++i) {
        const double product = values[i] * w[i];
        sum += product;
        squares += product * product;
      }
      result.row(row)[col] = sum;
      if (norms != nullptr) norms->row(row)[col] = std::sqrt(squares);
    }
  });
  return result;
}

QuantisedRows quantised_rows(const ScaledWeights& by, const TraceMatrix& x, double relative) {
  const ScaledFormat& format = by.format;
  constexpr double u = 0x1p-24, least = 0x1p-126, most = std::numeric_limits<float>::max();
  const auto number = [&](double value) {
    return static_cast<double>(
        kernels::decode_byte(format.numbers, kernels::encode_byte(format.numbers, value)));
  };
  const std::int64_t width = format.blocks ? ScaledFormat::block : x.cols;
  QuantisedRows rows{TraceMatrix(x.rows, x.cols), TraceMatrix(x.rows, x.cols)};
  for (std::int64_t row = 0; row < x.rows; ++row) {
    const double* from = x.row(row);
    for (std::int64_t first = 0; first < x.cols; first += width) {
      const std::int64_t end = std::min(x.cols, first + width);
      double largest = 0;
      for (std::int64_t i = first; i < end; ++i) {
        if (!std::isnan(from[i])) largest = std::max(largest, std::min(std::abs(from[i]), most));
      }
      const double own = largest / traits(format.numbers).largest;
      const double scale = std::max(format.given_input ? by.input_scale : own, least);
      for (std::int64_t i = first; i < end; ++i) {
        const double quotient = std::clamp(from[i], -most, most) / scale, near = number(quotient);
        double apart = 0;
        // An element and the largest one, whose quotient is what is rounded.
        const double by = 12 * u + 2 * relative;
        for (const double factor : {1 - by, 1 + by}) {
          apart = std::max(apart, std::abs(number(quotient * factor) - near));
        }
        rows.values.row(row)[i] = near * scale;
        rows.errors.row(row)[i] = ((6 * u + relative) * std::abs(near) + apart) * scale;
      }
    }
  }
  return rows;
}

TraceMatrix multiply_sizes(const Weights& weights, const WeightView& matrix, const TraceMatrix& x) {
  TraceMatrix result(x.rows, matrix.rows);
  for_each(matrix.rows, x.rows * matrix.cols, [&](std::int64_t col) {
    const std::vector<double> w = weights.row(matrix, col);
    for (std::int64_t row = 0; row < x.rows; ++row) {
      double sum = 0;
      for (std::size_t i = 0; i < w.size(); ++i) sum += std::abs(x.row(row)[i] * w[i]);
      result.row(row)[col] = sum;
    }
  });
  return result;
}

double rms_factor(const TraceMatrix& x, std::int64_t row, double epsilon) {
  double squares = 0;
  for (std::int64_t col = 0; col < x.cols; ++col) squares += x.row(row)[col] * x.row(row)[col];
  return 1 / std::sqrt(squares / static_cast<double>(x.cols) + epsilon);
}

TraceMatrix rms_norm(const Weights& weights, const WeightView& gains, const TraceMatrix& x,
                     double epsilon) {
  const std::vector<double> gain = weights.row(gains, 0);
  TraceMatrix result(x.rows, x.cols);
  for (std::int64_t row = 0; row < x.rows; ++row) {
    const double factor = rms_factor(x, row, epsilon);
    for (std::int64_t col = 0; col < x.cols; ++col) {
      result.row(row)[col] = x.row(row)[col] * factor * gain[static_cast<std::size_t>(col)];
    }
  }
  return result;
}

TraceMatrix head_norm(const Weights& weights, const WeightView& gains, const TraceMatrix& x,
                      double epsilon) {
  TraceMatrix heads = x;
  heads.cols = gains.cols;
  heads.rows = x.rows * (x.cols / gains.cols);
  TraceMatrix result = rms_norm(weights, gains, heads, epsilon);
  result.rows = x.rows;
  result.cols = x.cols;
  return result;
}

void add_bias(const Weights& weights, const WeightView& bias, TraceMatrix& x) {
  const std::vector<double> values = weights.row(bias, 0);
  for (std::int64_t row = 0; row < x.rows; ++row) {
    for (std::int64_t col = 0; col < x.cols; ++col) {
      x.row(row)[col] += values[static_cast<std::size_t>(col)];
    }
  }
}

std::int64_t rope_partner(const LlamaConfig& config, std::int64_t index) {
  if (config.rope_style == RopeStyle::interleaved) return index ^ 1;
  const std::int64_t half = config.head_dim / 2;
  return index < half ? index + half : index - half;
}

TraceMatrix rope(const LlamaConfig& config, const std::vector<double>& frequencies,
                 const TraceMatrix& x, std::int64_t first, TraceMatrix* sizes) {
  TraceMatrix result(x.rows, x.cols);
  if (sizes != nullptr) *sizes = TraceMatrix(x.rows, x.cols);
  for (std::int64_t row = 0; row < x.rows; ++row) {
    for (std::int64_t col = 0; col < x.cols; ++col) {
      const std::int64_t index = col % config.head_dim, partner = rope_partner(config, index);
      const bool interleaved = config.rope_style == RopeStyle::interleaved;
      const std::int64_t pair = interleaved ? index / 2 : std::min(index, partner);
      const double angle =
          static_cast<double>(first + row) * frequencies[static_cast<std::size_t>(pair)];
      // The pair's first element becomes a cos - b sin, its second b cos + a sin.
      const double sign = index < partner ? -1 : 1;
      const double factor = config.rope_scaling.attention_factor;
      const double own = x.row(row)[col] * factor * std::cos(angle);
      const double other = x.row(row)[col - index + partner] * factor * std::sin(angle);
      result.row(row)[col] = own + sign * other;
      if (sizes != nullptr) sizes->row(row)[col] = std::abs(own) + std::abs(other);
    }
  }
  return result;
}

Attended attend(const double* query, const double* keys, const double* values, std::int64_t stride,
                std::int64_t n, std::int64_t dim) {
  const double scale = 1 / std::sqrt(static_cast<double>(dim));
  const auto count = static_cast<std::size_t>(n);
  Attended a{std::vector<double>(count), std::vector<double>(count), std::vector<double>(count),
             std::vector<double>(static_cast<std::size_t>(dim))};
  for (std::size_t j = 0; j < count; ++j) {
    const double* key = keys + static_cast<std::int64_t>(j) * stride;
    double sum = 0, squares = 0;
    for (std::int64_t d = 0; d < dim; ++d) {
      const double product = query[d] * key[d];
      sum += product;
      squares += product * product;
    }
    a.scores[j] = scale * sum;
    a.norms[j] = scale * std::sqrt(squares);
  }
  const double most = *std::max_element(a.scores.begin(), a.scores.end());
  double total = 0;
  for (std::size_t j = 0; j < count; ++j) total += a.weights[j] = std::exp(a.scores[j] - most);
  for (std::size_t j = 0; j < count; ++j) {
    a.weights[j] /= total;
    const double* value = values + static_cast<std::int64_t>(j) * stride;
    for (std::int64_t d = 0; d < dim; ++d) {
      a.result[static_cast<std::size_t>(d)] += a.weights[j] * value[d];
    }
  }
  return a;
}

Attended attend_equally(std::int64_t n) {
  const auto count = static_cast<std::size_t>(n);
  return {std::vector<double>(count),
          std::vector<double>(count),
          std::vector<double>(count, 1 / static_cast<double>(n)),
          {}};
}

double silu_mul(double gate, double up) {
  return gate / (1 + std::exp(-gate)) * up;
}

}  // namespace greta::runtime::stages
