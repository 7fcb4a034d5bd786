#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/model/byte_formats.hpp"
#include "kernels/reference/activation.hpp"
#include "kernels/reference/elements.hpp"
#include "kernels/reference/findings.hpp"
#include "kernels/reference/norms.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/reference/rows.hpp"

namespace greta::kernels {
namespace {

using reference::u;
using rows::Value;

constexpr double least_normal = 0x1p-126;
constexpr double most_finite = std::numeric_limits<float>::max();
constexpr std::int64_t block_columns = 128, mx_columns = 32;

/// A number between two others.
struct Interval {
  double low = 0, high = 0;
};

/// The scale of a row or a block, and between what a kernel's may lie.
struct Scale {
  double value = 0;
  Interval range;
};

/// Codes that a kernel may store, from that of the smallest number on.
struct Codes {
  std::uint8_t nearest = 0, low = 0, high = 0;
};

/// Returns the magnitude of what is quantised: infinities are the largest finite number.
double finite(double value) {
  return std::isnan(value) ? value : std::clamp(value, -most_finite, most_finite);
}

/// The elements of what is quantised, in FP64, with their errors in f32.
std::function<Value(std::int64_t, std::int64_t)> elements_of(
    const Problem& problem, const std::vector<HostTensor>& inputs) {
  const std::string fused = problem.attribute("fused", "none");
  const std::int64_t cols = problem.dim("cols");
  if (fused == "rmsnorm" || fused == "add_rmsnorm") {
    const auto norm = std::make_shared<rows::RmsNorm>(problem, inputs);
    return [norm](std::int64_t row, std::int64_t col) { return norm->normalised(row, col); };
  }
  if (fused == "layernorm") {
    const auto norm = std::make_shared<rows::LayerNorm>(problem, inputs);
    return [norm](std::int64_t row, std::int64_t col) { return norm->normalised(row, col); };
  }
  if (fused == "none") {
    return [cols, x = keep_tensor(inputs, "X")](std::int64_t row, std::int64_t col) {
      const double value = x->at(static_cast<std::size_t>(row * cols + col));
      const bool may_vanish = std::abs(value) < least_normal;
      return Value{value, may_vanish ? std::abs(value) : 0};
    };
  }
  const bool packed = problem.attribute("layout", "separate") == "packed";
  return [cols, packed, gates = keep_tensor(inputs, packed ? "X" : "gate"),
          ups = keep_tensor(inputs, packed ? "X" : "up")](std::int64_t row, std::int64_t col) {
    const auto at = static_cast<std::size_t>((packed ? 2 : 1) * row * cols + col);
    const double gate = gates->at(at),
                 up = ups->at(at + static_cast<std::size_t>(packed ? cols : 0));
    const double gated = activate(ActivationFunction::silu, gate), value = gated * up;
    const double error = activation_error(ActivationFunction::silu, gate) * std::abs(up);
    return Value{value,
                 error + std::abs(value) * u + (1 + std::abs(gated) + std::abs(up)) * least_normal};
  };
}

class QuantizeReference final : public Reference {
 public:
  QuantizeReference(const Problem& problem, const std::vector<HostTensor>& inputs)
      : format_(byte_format_from_string(problem.attribute("format", "e4m3")).value()),
        rows_(problem.dim("rows")),
        cols_(problem.dim("cols")),
        element_(elements_of(problem, inputs)) {
    const std::string scales = problem.attribute("scales", "row");
    mx_ = scales == "mx";
    width_ = mx_ ? mx_columns : scales == "block" ? block_columns : cols_;
    columns_ = (cols_ + width_ - 1) / width_;
    if (problem.attribute("fused", "none") == "add_rmsnorm") {
      const auto norm = std::make_shared<rows::RmsNorm>(problem, inputs);
      plain_.push_back({{"sum", Role::output, problem.dtype, rows_, cols_},
                        [norm, type = problem.dtype](std::int64_t row, std::int64_t col) {
                          const Value sum = norm->element(row, col);
                          return rounded(type, sum.value, sum.error);
                        }});
    }
    if (scales == "tensor") {
      const double given = keep_tensor(inputs, "scale")->at(0);
      // Devices may flush the smaller numbers, which count as 2^-126 as negative ones and NaN do.
      const double used = given >= least_normal ? given : least_normal;
      scales_.assign(static_cast<std::size_t>(rows_ * columns_), Scale{used, {used, used}});
      return;
    }
    const auto of_rows = rows::for_each_row(rows_, [this](std::int64_t row) {
      std::vector<Scale> list;
      for (std::int64_t part = 0; part < columns_; ++part) list.push_back(scale_of(row, part));
      return list;
    });
    for (const auto& list : of_rows) scales_.insert(scales_.end(), list.begin(), list.end());
    scale_output_ = ExpectedOutput{
        {"scales", Role::output, mx_ ? DType::u8 : DType::f32, rows_, columns_},
        [this](std::int64_t row, std::int64_t part) { return expected_scale(row, part); }};
  }

  Verdict check(const std::vector<HostTensor>& outputs) const override {
    const HostTensor& codes = tensor_named(outputs, "Q");
    Verdict verdict = check_codes(codes);
    std::vector<ExpectedOutput> plain = plain_;
    if (scale_output_) plain.push_back(*scale_output_);
    if (plain.empty()) return verdict;
    const Verdict others = elements_reference(plain)->check(outputs);
    return worse(verdict, others);
  }

  std::optional<std::vector<std::vector<Expected>>> expected() const override {
    std::vector<std::vector<Expected>> lists;
    for (const ExpectedOutput& output : plain_) lists.push_back(all_of(output));
    const std::int64_t of_byte = 8 / traits(format_).bits;
    lists.push_back(
        all_of({{"Q", Role::output, DType::u8, rows_, cols_ / of_byte},
                [this, of_byte](std::int64_t row, std::int64_t byte) {
                  Expected all = as_bytes(codes_of(row, byte * of_byte));
                  if (of_byte == 1) return all;
                  const Expected upper = as_bytes(codes_of(row, byte * of_byte + 1));
                  return Expected{all.value + 16 * upper.value, all.bound + 16 * upper.bound};
                }}));
    if (scale_output_) lists.push_back(all_of(*scale_output_));
    return lists;
  }

 private:
  static std::vector<Expected> all_of(const ExpectedOutput& output) {
    std::vector<Expected> list;
    for (std::int64_t row = 0; row < output.spec.rows; ++row) {
      for (std::int64_t col = 0; col < output.spec.cols; ++col) {
        list.push_back(output.element(row, col));
      }
    }
    return list;
  }

  const Scale& scale(std::int64_t row, std::int64_t part) const {
    return scales_[static_cast<std::size_t>(row * columns_ + part)];
  }

  /// The largest number divided by the format's: 2.5 ulp, and at least 2^-126.
  Scale scale_of(std::int64_t row, std::int64_t part) const {
    const double largest = traits(format_).largest;
    double size = 0;
    Interval sizes;
    for (std::int64_t col = part * width_; col < std::min(cols_, (part + 1) * width_); ++col) {
      const auto [value, error] = element_(row, col);
      if (std::isnan(value)) {
        if (format_ != ByteFormat::int8 && format_ != ByteFormat::e2m1) continue;
        return {value, {value, value}};
      }
      const double own = std::abs(finite(value));
      const double unsure = std::isfinite(value) ? error : 0;
      size = std::max(size, own);
      sizes.low = std::max(sizes.low, own - unsure);
      sizes.high = std::max(sizes.high, std::min(own + unsure, most_finite));
    }
    if (mx_) return {power_for(size), {power_for(sizes.low), power_for(sizes.high)}};
    const auto from = [&](double number, double factor) {
      return std::max(number / largest * factor, least_normal);
    };
    return {from(size, 1), {from(sizes.low, 1 - 5 * u), from(sizes.high, 1 + 5 * u)}};
  }

  /// The power of two that numbers up to this size have as their scale in a microscaling format.
  double power_for(double size) const {
    const int exponent = size > 0 ? std::ilogb(size) : -127;
    return std::ldexp(1, std::max(exponent - std::ilogb(traits(format_).largest), -127));
  }

  Expected expected_scale(std::int64_t row, std::int64_t part) const {
    const auto& [value, range] = scale(row, part);
    if (mx_) {
      const auto code = [](double power) {
        return std::isnan(power) ? 255 : std::ilogb(power) + 127;
      };
      const double nearest = code(value);
      return {nearest, std::max(code(range.high) - nearest, nearest - code(range.low))};
    }
    if (std::isnan(value)) return {value, 0};
    return {value, std::max(range.high - value, value - range.low)};
  }

  /// The quotient of an element and the scale: 2.5 ulp for the scale's inverse, which may be
  /// flushed if it is below 2^-126, and u for the product.
  Codes codes_of(std::int64_t row, std::int64_t col) const {
    const auto [value, error] = element_(row, col);
    const auto& [scale, range] = this->scale(row, col / width_);
    if (std::isnan(value) || std::isnan(scale)) {
      const std::uint8_t nan = encode_byte(format_, std::nan(""));
      return {nan, nan, nan};
    }
    const double y = finite(value);
    const double unsure = std::isfinite(value) ? error : 0;
    const double low = std::max(y - unsure, -most_finite), high = std::min(y + unsure, most_finite);
    const auto quotient = [](double number, double divisor, double factor) {
      return number / divisor * factor;
    };
    // Powers of two and products with them are exact.
    const double rounding = mx_ ? 0 : 6 * u * reference::slack;
    const double less = 1 - rounding, more = 1 + rounding;
    double least = low < 0 ? quotient(low, range.low, more) : quotient(low, range.high, less);
    double greatest = high < 0 ? quotient(high, range.high, less) : quotient(high, range.low, more);
    if (range.high > 0x1p126) {
      least = std::min(least, 0.0);
      greatest = std::max(greatest, 0.0);
    }
    return {encode_byte(format_, y / scale), encode_byte(format_, least),
            encode_byte(format_, greatest)};
  }

  bool is_nan(std::uint8_t code) const { return std::isnan(decode_byte(format_, code)); }

  bool permits(const Codes& codes, std::uint8_t code) const {
    if (is_nan(codes.nearest)) return is_nan(code);
    const float number = decode_byte(format_, code);
    return decode_byte(format_, codes.low) <= number && number <= decode_byte(format_, codes.high);
  }

  /// The bytes of neighbours differ by 1 where both have the same sign.
  Expected as_bytes(const Codes& codes) const {
    const int sign = 1 << (traits(format_).bits - 1);
    double bound = 0;
    for (const std::uint8_t other : {codes.low, codes.high}) {
      if ((other ^ codes.nearest) >= sign) continue;
      bound = std::max(bound, std::abs(static_cast<double>(other) - codes.nearest));
    }
    return {static_cast<double>(codes.nearest), bound};
  }

  Verdict check_codes(const HostTensor& codes) const {
    Findings all = find_in_parts(rows_, cols_, rows_,
                                 [&](std::int64_t first, std::int64_t last, Findings& part) {
                                   for (std::int64_t row = first; row < last; ++row)
                                     check_row(codes, row, part);
                                 });
    Verdict verdict = all.verdict("full");
    if (!verdict.passed) verdict.detail = "Q: " + verdict.detail;
    return verdict;
  }

  void check_row(const HostTensor& codes, std::int64_t row, Findings& part) const {
    const std::int64_t start = codes.spec.row_start(row);
    for (std::int64_t col = 0; col < cols_; ++col) {
      const int bits = traits(format_).bits;
      const std::byte byte = codes.data[static_cast<std::size_t>(start + col * bits / 8)];
      const auto code =
          static_cast<std::uint8_t>(byte >> col * bits % 8 & std::byte{0xff} >> (8 - bits));
      const Codes permitted = codes_of(row, col);
      if (permits(permitted, code)) {
        part.pass(1);
        continue;
      }
      // The numbers, as messages show them.
      const double want = decode_byte(format_, permitted.nearest);
      const double bound = std::max(std::abs(decode_byte(format_, permitted.low) - want),
                                    std::abs(decode_byte(format_, permitted.high) - want));
      part.compare(row, col, decode_byte(format_, code), want, std::isnan(bound) ? 0 : bound);
    }
  }

  ByteFormat format_;
  bool mx_ = false;  ///< scales are powers of two, as bytes
  std::int64_t rows_, cols_, width_ = 0, columns_ = 0;
  std::function<Value(std::int64_t, std::int64_t)> element_;
  std::vector<Scale> scales_;          ///< of every row
  std::vector<ExpectedOutput> plain_;  ///< outputs in other types than bytes
  std::optional<ExpectedOutput> scale_output_;
};

}  // namespace

std::unique_ptr<Reference> quantize_reference(const Problem& problem,
                                              const std::vector<HostTensor>& inputs,
                                              std::uint64_t) {
  return std::make_unique<QuantizeReference>(problem, inputs);
}

}  // namespace greta::kernels
