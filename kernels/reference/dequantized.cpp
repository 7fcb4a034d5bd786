#include "kernels/reference/dequantized.hpp"

#include "kernels/model/parallel.hpp"

namespace greta::kernels {
namespace {

unsigned byte_at(const std::byte* data, std::int64_t index) {
  return std::to_integer<unsigned>(data[index]);
}
int signed_byte_at(const std::byte* data, std::int64_t index) {
  return static_cast<std::int8_t>(byte_at(data, index));
}
double f16_at(const std::byte* data) {
  return load_element(DType::f16, data, 0);
}
/// Returns the lower half of a byte, or the upper one.
int half_of(const std::byte* data, std::int64_t index, bool upper) {
  return static_cast<int>(byte_at(data, index) >> (upper ? 4 : 0) & 15U);
}

double q4_0(const std::byte* block, std::int64_t i) {
  return f16_at(block) * (half_of(block + 2, i % 16, i >= 16) - 8);
}

double q8_0(const std::byte* block, std::int64_t i) {
  return f16_at(block) * signed_byte_at(block + 2, i);
}

/// The 6-bit scale and minimum of sub-block j of eight.
struct SubBlock {
  unsigned scale, minimum;
};
SubBlock sub_block(const std::byte* packed, std::int64_t j) {
  if (j < 4) return {byte_at(packed, j) & 63U, byte_at(packed, j + 4) & 63U};
  const unsigned low = byte_at(packed, j + 4);
  return {(low & 15U) | byte_at(packed, j - 4) >> 6 << 4, low >> 4 | byte_at(packed, j) >> 6 << 4};
}

double q4_k(const std::byte* block, std::int64_t i) {
  const SubBlock sub = sub_block(block + 4, i / 32);
  const int q = half_of(block + 16, i / 64 * 32 + i % 32, i / 32 % 2 == 1);
  return f16_at(block) * sub.scale * q - f16_at(block + 2) * sub.minimum;
}

double q6_k(const std::byte* block, std::int64_t i) {
  const std::int64_t half = i / 128, quarter = i % 128 / 32, place = i % 32;
  const int low = half_of(block, half * 64 + quarter % 2 * 32 + place, quarter >= 2);
  const auto high = static_cast<int>(byte_at(block, 128 + half * 32 + place) >> 2 * quarter & 3U);
  return f16_at(block + 208) * signed_byte_at(block, 192 + i / 16) * ((low | high << 4) - 32);
}

/// Returns weight `i` of a block.
double weight_of_block(WeightFormat format, const std::byte* block, std::int64_t i) {
  switch (format) {
    case WeightFormat::q4_0:
      return q4_0(block, i);
    case WeightFormat::q8_0:
      return q8_0(block, i);
    case WeightFormat::q4_k:
      return q4_k(block, i);
    default:
      return q6_k(block, i);
  }
}

double weight_of_group(const QuantizedMatrix& matrix, const std::byte* row, std::int64_t r,
                       std::int64_t i) {
  const auto group = static_cast<std::size_t>(r * (matrix.k / matrix.group) + i / matrix.group);
  const bool four = matrix.format == WeightFormat::int4;
  double q = four ? half_of(row, i / 2, i % 2 == 1) : signed_byte_at(row, i);
  if (matrix.zeros != nullptr) {
    if (!four) q = byte_at(row, i);
    q -= matrix.zeros->at(group);
  } else if (four) {
    q -= 8;
  }
  return q * matrix.scales->at(group);
}

}  // namespace

std::vector<float> dequantized(const QuantizedMatrix& matrix) {
  const std::int64_t bytes = row_bytes(matrix.format, matrix.k);
  const WeightFormatTraits& format = traits(matrix.format);
  std::vector<float> weights(static_cast<std::size_t>(matrix.rows * matrix.k));
  parallel_parts(matrix.rows, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t r = first; r < last; ++r) {
      const std::byte* const row = matrix.integers->data.data() + r * bytes;
      float* const to = weights.data() + r * matrix.k;
      for (std::int64_t i = 0; i < matrix.k; ++i) {
        to[i] = static_cast<float>(
            in_blocks(matrix.format)
                ? weight_of_block(matrix.format, row + i / format.block * format.block_bytes,
                                  i % format.block)
                : weight_of_group(matrix, row, r, i));
      }
    }
  });
  return weights;
}

}  // namespace greta::kernels
