#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string_view>

#include "kernels/model/byte_formats.hpp"
#include "kernels/model/parallel.hpp"
#include "kernels/reference/gemm.hpp"
#include "kernels/reference/references.hpp"

namespace greta::kernels {
namespace {

/// Returns the numbers of an operand as f32, which represents them exactly.
HostTensor decoded(ByteFormat format, const HostTensor& bytes) {
  TensorSpec spec = bytes.spec;
  spec.dtype = DType::f32;
  HostTensor numbers{spec, std::vector<std::byte>(spec.bytes())};
  std::array<float, 256> number{};
  for (std::size_t byte = 0; byte < number.size(); ++byte) {
    number.at(byte) = decode_byte(format, static_cast<std::uint8_t>(byte));
  }
  parallel_parts(std::ssize(bytes.data), [&](std::int64_t first, std::int64_t last) {
    for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) {
      const float& of_byte = number[std::to_integer<std::size_t>(bytes.data[i])];
      std::memcpy(numbers.data.data() + i * sizeof(float), &of_byte, sizeof(float));
    }
  });
  return numbers;
}

/// Returns the scales of an operand with `rows` lines of `k`.
LineScales scales_of(const HostTensor& tensor, std::int64_t rows, std::int64_t k) {
  constexpr std::int64_t block = 128;
  LineScales scales;
  scales.across = tensor.spec.cols;
  // A tensor's only scale is as that of blocks of all rows.
  scales.lines = tensor.spec.rows == rows ? 1 : tensor.spec.rows == 1 ? rows : block;
  scales.length = tensor.spec.cols == 1 ? k : block;
  for (std::size_t i = 0; i < tensor.spec.elements(); ++i) {
    scales.values.push_back(static_cast<float>(tensor.at(i)));
  }
  return scales;
}

double largest_of(const LineScales& scales) {
  double largest = 0;
  for (const float scale : scales.values) largest = std::max<double>(largest, std::abs(scale));
  return largest;
}

}  // namespace

bool scaled_gemm_fully_checked(const Problem& problem) {
  return gemm_fully_checked(plain_product(problem, DType::f32));
}

std::unique_ptr<Reference> scaled_gemm_reference(const Problem& problem,
                                                 const std::vector<HostTensor>& inputs,
                                                 std::uint64_t seed) {
  const ByteFormat format = byte_format_from_string(problem.attribute("format", "e4m3")).value();
  const std::int64_t k = problem.dim("k");
  const HostTensor &a = tensor_named(inputs, "A"), &b = tensor_named(inputs, "B");
  ProductScales scales;
  scales.a = scales_of(tensor_named(inputs, "scales_a"), a.spec.rows, k);
  scales.b = scales_of(tensor_named(inputs, "scales_b"), b.spec.rows, k);
  if (format != ByteFormat::int8) {
    scales.of_norm = 24 * 0x1p-13;
    // Matrix cores do not normalise subnormal numbers: their exponent is that of the least normal.
    scales.least_number = std::ldexp(1, 1 - traits(format).bias);
  }
  // A scale, a product with it or of two that is flushed.
  const double most = traits(format).largest + 1;
  scales.least = 0x1p-126 * static_cast<double>(k) * most * most * (1 + largest_of(scales.a)) *
                 (1 + largest_of(scales.b));
  Problem plain = plain_product(problem, DType::f32);
  const std::string epilogue = problem.attribute("epilogue", "none");
  if (epilogue != "none") plain.attributes.emplace_back("epilogue", epilogue);
  return scaled_product_reference(plain, {decoded(format, a), decoded(format, b)}, scales, seed);
}

}  // namespace greta::kernels
