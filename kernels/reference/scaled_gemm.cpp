#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string_view>

#include "kernels/model/byte_formats.hpp"
#include "kernels/model/parallel.hpp"
#include "kernels/model/weight_formats.hpp"
#include "kernels/reference/gemm.hpp"
#include "kernels/reference/references.hpp"

namespace greta::kernels {
namespace {

/// Returns the numbers of an operand as f32, which represents them exactly.
HostTensor decoded(ByteFormat format, const HostTensor& bytes) {
  TensorSpec spec = bytes.spec;
  spec.dtype = DType::f32;
  const int bits = traits(format).bits, of_byte = 8 / bits;
  spec.cols *= of_byte;
  HostTensor numbers{spec, std::vector<std::byte>(spec.bytes())};
  std::array<float, 256> number{};
  for (std::size_t byte = 0; byte < number.size(); ++byte) {
    number.at(byte) = decode_byte(format, static_cast<std::uint8_t>(byte));
  }
  parallel_parts(std::ssize(bytes.data) * of_byte, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::byte byte = bytes.data[static_cast<std::size_t>(i / of_byte)];
      const float& value = number[std::to_integer<std::size_t>(byte >> i % of_byte * bits)];
      std::memcpy(numbers.data.data() + i * std::ptrdiff_t{sizeof(float)}, &value, sizeof(float));
    }
  });
  return numbers;
}

/// Returns the scales of an operand with `rows` lines of `k`.
LineScales scales_of(const HostTensor& tensor, std::int64_t rows, std::int64_t k) {
  constexpr std::int64_t block = 128, mx_block = 32;
  LineScales scales;
  scales.across = tensor.spec.cols;
  if (tensor.spec.dtype == DType::u8) {
    scales.length = mx_block;
    for (std::size_t i = 0; i < tensor.spec.elements(); ++i) {
      scales.values.push_back(static_cast<float>(e8m0_value(static_cast<int>(tensor.at(i)))));
    }
    return scales;
  }
  // A tensor's only scale is as that of blocks of all rows.
  scales.lines = tensor.spec.rows == rows ? 1 : tensor.spec.rows == 1 ? rows : block;
  scales.length = tensor.spec.cols == 1 ? k : block;
  for (std::size_t i = 0; i < tensor.spec.elements(); ++i) {
    scales.values.push_back(static_cast<float>(tensor.at(i)));
  }
  return scales;
}

/// NaN does not count.
double largest_of(const LineScales& scales) {
  double largest = 0;
  for (const float scale : scales.values) largest = std::max<double>(largest, std::abs(scale));
  return largest;
}

bool any_subnormal(const LineScales& scales) {
  return std::any_of(scales.values.begin(), scales.values.end(),
                     [](float scale) { return std::abs(scale) < 0x1p-126F; });
}

/// Returns how large an error of a result may be where devices flush to zero: a scale, the product
/// of two, or a sum times these. `most`: the largest number of A times that of B.
double flushed(const ProductScales& scales, bool mx, double k, double most) {
  const double a = largest_of(scales.a), b = largest_of(scales.b);
  if (!mx) return 0x1p-126 * k * most * (1 + a) * (1 + b);
  // Powers of two are exact, so that only those of an operand that has subnormal ones are lost.
  return 0x1p-126 * k * most *
         (1 + (any_subnormal(scales.a) ? b : 0) + (any_subnormal(scales.b) ? a : 0));
}

}  // namespace

bool scaled_gemm_fully_checked(const Problem& problem) {
  return gemm_fully_checked(plain_product(problem, DType::f32));
}

std::unique_ptr<Reference> scaled_gemm_reference(const Problem& problem,
                                                 const std::vector<HostTensor>& inputs,
                                                 std::uint64_t seed) {
  const ByteFormat format = byte_format_from_string(problem.attribute("format", "e4m3")).value();
  const ByteFormat format_b =
      byte_format_from_string(problem.attribute("format_b", "same")).value_or(format);
  const std::int64_t k = problem.dim("k");
  const HostTensor &a = tensor_named(inputs, "A"), &b = tensor_named(inputs, "B");
  ProductScales scales;
  scales.a = scales_of(tensor_named(inputs, "scales_a"), a.spec.rows, k);
  scales.b = scales_of(tensor_named(inputs, "scales_b"), b.spec.rows, k);
  if (format != ByteFormat::int8) {
    scales.of_norm = 24 * 0x1p-13;
    // Matrix cores do not normalise subnormal numbers: their exponent is that of the least normal.
    scales.a.least_number = std::ldexp(1, 1 - traits(format).bias);
    scales.b.least_number = std::ldexp(1, 1 - traits(format_b).bias);
  }
  const double most = (traits(format).largest + 1) * (traits(format_b).largest + 1);
  scales.least =
      flushed(scales, problem.attribute("scales", "tensor") == "mx", static_cast<double>(k), most);
  Problem plain = plain_product(problem, DType::f32);
  const std::string epilogue = problem.attribute("epilogue", "none");
  if (epilogue != "none") plain.attributes.emplace_back("epilogue", epilogue);
  return scaled_product_reference(plain, {decoded(format, a), decoded(format_b, b)}, scales, seed);
}

}  // namespace greta::kernels
