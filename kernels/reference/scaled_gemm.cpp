#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "kernels/model/byte_formats.hpp"
#include "kernels/model/weight_formats.hpp"
#include "kernels/reference/gemm.hpp"
#include "kernels/reference/references.hpp"

namespace greta::kernels {
namespace {

/// The numbers of an operand, which f32 represents exactly.
class ByteLines : public OperandLines {
 public:
  ByteLines(ByteFormat format, HostTensor bytes)
      : bits_(traits(format).bits), bytes_(std::move(bytes)) {
    for (std::size_t byte = 0; byte < number_.size(); ++byte) {
      number_.at(byte) = decode_byte(format, static_cast<std::uint8_t>(byte));
    }
  }

  void read(std::int64_t line, std::int64_t first, std::int64_t count, double* to) const override {
    const std::int64_t of_byte = 8 / bits_;
    const std::byte* const row = bytes_.data.data() + line * bytes_.spec.cols;
    if (of_byte == 1) {
      for (std::int64_t i = 0; i < count; ++i) to[i] = number(row[first + i]);
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const auto shift = static_cast<int>((first + i) % of_byte) * bits_;
      to[i] = number(row[(first + i) / of_byte] >> shift);
    }
  }

 private:
  double number(std::byte code) const { return number_[std::to_integer<std::size_t>(code)]; }

  int bits_;
  HostTensor bytes_;
  std::array<double, 256> number_{};
};

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
double flushed(const ProductOperands& operands, bool mx, double k, double most) {
  const LineScales &of_a = operands.a.scales, &of_b = operands.b.scales;
  const double a = largest_of(of_a), b = largest_of(of_b);
  if (!mx) return 0x1p-126 * k * most * (1 + a) * (1 + b);
  // Powers of two are exact, so that only those of an operand that has subnormal ones are lost.
  return 0x1p-126 * k * most * (1 + (any_subnormal(of_a) ? b : 0) + (any_subnormal(of_b) ? a : 0));
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
  ProductOperands operands;
  operands.a = {std::make_shared<const ByteLines>(format, a),
                scales_of(tensor_named(inputs, "scales_a"), a.spec.rows, k)};
  operands.b = {std::make_shared<const ByteLines>(format_b, b),
                scales_of(tensor_named(inputs, "scales_b"), b.spec.rows, k)};
  if (format != ByteFormat::int8) {
    operands.of_norm = 24 * 0x1p-13;
    // Matrix cores do not normalise subnormal numbers: their exponent is that of the least normal.
    operands.a.scales.least_number = std::ldexp(1, 1 - traits(format).bias);
    operands.b.scales.least_number = std::ldexp(1, 1 - traits(format_b).bias);
  }
  const double most = (traits(format).largest + 1) * (traits(format_b).largest + 1);
  operands.least = flushed(operands, problem.attribute("scales", "tensor") == "mx",
                           static_cast<double>(k), most);
  Problem plain = plain_product(problem, DType::f32);
  const std::string epilogue = problem.attribute("epilogue", "none");
  if (epilogue != "none") plain.attributes.emplace_back("epilogue", epilogue);
  return product_reference(plain, inputs, std::move(operands), seed);
}

}  // namespace greta::kernels
