#include "kernels/reference/dequantized.hpp"

#include <algorithm>
#include <optional>

#include "kernels/model/block_formats.hpp"
#include "kernels/model/parallel.hpp"

namespace greta::kernels {
namespace {

/// Returns integer `i` of a row, without a zero point.
double integer_of(const QuantizedMatrix& matrix, const std::byte* row, std::int64_t i) {
  const bool four = traits(matrix.format).bits == 4;
  const int byte = std::to_integer<int>(row[four ? i / 2 : i]);
  if (four) return byte >> (i % 2 == 1 ? 4 : 0) & 15;
  return matrix.zeros != nullptr || byte < 128 ? byte : byte - 256;
}

}  // namespace

double weight_of_group(const QuantizedMatrix& matrix, std::int64_t r, std::int64_t i) {
  const std::byte* const row =
      matrix.integers->data.data() + r * row_bytes(matrix.format, matrix.k);
  const auto group = static_cast<std::size_t>(r * (matrix.k / matrix.group) + i / matrix.group);
  if (matrix.format == WeightFormat::mxfp4) {
    return e2m1_value(static_cast<int>(integer_of(matrix, row, i))) *
           e8m0_value(static_cast<int>(matrix.scales->at(group)));
  }
  const double implied = matrix.format == WeightFormat::int4 ? 8 : 0;
  const double zero = matrix.zeros != nullptr ? matrix.zeros->at(group) : implied;
  return (integer_of(matrix, row, i) - zero) * matrix.scales->at(group);
}

std::vector<float> dequantized(const QuantizedMatrix& matrix) {
  const std::int64_t bytes = row_bytes(matrix.format, matrix.k);
  const std::optional<BlockFormat> blocks = traits(matrix.format).blocks;
  std::vector<float> weights(static_cast<std::size_t>(matrix.rows * matrix.k));
  parallel_parts(matrix.rows, [&](std::int64_t first, std::int64_t last) {
    std::vector<double> values(static_cast<std::size_t>(matrix.k));
    for (std::int64_t r = first; r < last; ++r) {
      const std::byte* const row = matrix.integers->data.data() + r * bytes;
      if (blocks) {
        const auto count = static_cast<std::size_t>(matrix.k / block_weights(matrix.format));
        decode_blocks(*blocks, row, count, values.data());
      } else {
        for (std::int64_t i = 0; i < matrix.k; ++i) {
          values[static_cast<std::size_t>(i)] = weight_of_group(matrix, r, i);
        }
      }
      std::transform(values.begin(), values.end(), weights.begin() + r * matrix.k,
                     [](double value) { return static_cast<float>(value); });
    }
  });
  return weights;
}

}  // namespace greta::kernels
