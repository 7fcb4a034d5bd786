#include <algorithm>
#include <cmath>

#include "kernels/model/byte_formats.hpp"
#include "tests/kernels/bounds/emulation.hpp"
#include "tests/layers.hpp"

namespace greta::test::bounds {
namespace {

using kernels::ByteFormat;

ByteFormat format_of(const Given& given) {
  return kernels::byte_format_from_string(given.problem.attribute("format", "e4m3")).value();
}

/// A row of what is quantised.
std::vector<Float> row_of(const Given& given, std::size_t row, std::vector<float>& sums) {
  const std::size_t cols = given.dim("cols");
  const std::string fused = given.problem.attribute("fused", "none");
  const bool packed = given.problem.attribute("layout", "separate") == "packed";
  std::vector<Float> y(cols);
  for (std::size_t col = 0; col < cols; ++col) {
    const std::size_t at = row * cols + col;
    if (packed) {
      const std::size_t gate = 2 * row * cols + col;
      y[col] = silu(given["X"][gate]) * Float(given["X"][gate + cols]);
    } else if (fused == "silu_mul") {
      y[col] = silu(given["gate"][at]) * Float(given["up"][at]);
    } else {
      y[col] = given["X"][at];
    }
    if (fused != "add_rmsnorm") continue;
    y[col] = y[col] + Float(given["residual"][at]);
    sums.push_back(y[col].value());
  }
  if (given.has("weight")) {
    over_root(given, y);
    weigh(given, "weight", y);
  }
  return y;
}

Outputs quantize(const Given& given) {
  const std::size_t rows = given.dim("rows"), cols = given.dim("cols");
  const ByteFormat format = format_of(given);
  const bool blocks = given.problem.attribute("scales", "row") == "block";
  const std::size_t width = blocks ? 128 : cols;
  std::vector<float> sums, codes, scales;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::vector<Float> y = row_of(given, row, sums);
    for (std::size_t first = 0; first < cols; first += width) {
      const std::size_t end = std::min(cols, first + width);
      Float scale;
      if (given.has("scale")) {
        scale = given["scale"][0];
      } else {
        float most = 0;
        for (std::size_t i = first; i < end; ++i) most = std::max(most, std::abs(y[i].value()));
        scale = Float(most) / Float(static_cast<float>(kernels::traits(format).largest));
        if (scale < Float(0x1p-126F)) scale = 0x1p-126F;
        scales.push_back(scale.value());
      }
      const Float inverse = Float(1) / scale;
      for (std::size_t i = first; i < end; ++i) {
        codes.push_back(kernels::encode_byte(format, (y[i] * inverse).value()));
      }
    }
  }
  Outputs outputs;
  if (!sums.empty()) outputs.push_back(sums);
  outputs.push_back(codes);
  if (!scales.empty()) outputs.push_back(scales);
  return outputs;
}

/// Returns numbers between two neighbours of the format times `scale`; each `cols`-th one is the
/// format's largest number.
Contents borders(ByteFormat format, double scale, std::size_t cols) {
  return [=](double draw, std::size_t i) {
    if (i % cols == 0) return scale * kernels::traits(format).largest;
    const auto code = static_cast<std::uint8_t>(40 + 70 * std::abs(draw));
    const double low = kernels::decode_byte(format, code);
    const double high = kernels::decode_byte(format, static_cast<std::uint8_t>(code + 1));
    return std::copysign(scale * (low + high) / 2, draw);
  };
}

std::vector<Case> quantize_cases(const DTypes&) {
  const auto plain = [](const char* what, ByteFormat format, const char* scales, double scale,
                        const Factors& factors) {
    const Contents given = [scale](double, std::size_t) { return scale; };
    return Case{what,
                {{"format", std::string(kernels::to_string(format))},
                 {"scales", scales},
                 {"rows", "60"},
                 {"cols", "512"}},
                {{"X", borders(format, scale, 128)}, {"scale", given}},
                factors};
  };
  const auto fused = [](const char* what, const char* operation, const char* cols,
                        std::vector<std::pair<std::string, std::string>> more,
                        const Factors& factors) {
    more.insert(more.end(),
                {{"format", "int8"}, {"fused", operation}, {"rows", "200"}, {"cols", cols}});
    return Case{what, more, {{"gate", times(8)}}, factors};
  };
  return {
      plain("rows", ByteFormat::e4m3, "row", 1, {1.1, 1.1, 1.1}),
      plain("blocks", ByteFormat::e5m2, "block", 0.25, {1.1, 1.1, 1.1}),
      plain("blocks of e4m3_fnuz", ByteFormat::e4m3_fnuz, "block", 1, {1.1, 1.1, 1.1}),
      plain("rows of e5m2_fnuz", ByteFormat::e5m2_fnuz, "row", 1, {1.1, 1.1, 1.1}),
      plain("a given scale", ByteFormat::e4m3, "tensor", 0.5, {1.1, 1.1, 1.1}),
      plain("a given scale of integers", ByteFormat::int8, "tensor", 0.5, {1.1, 1.1, 1.1}),
      fused("rmsnorm", "rmsnorm", "1000", {{"epsilon", "0.25"}}, {5, 5, 5}),
      fused("add_rmsnorm", "add_rmsnorm", "1000", {{"scales", "block"}}, {5, 5, 5}),
      fused("silu_mul", "silu_mul", "1000", {}, {2, 2, 2}),
      fused("silu_mul of packed operands", "silu_mul", "1000", {{"layout", "packed"}}, {2, 2, 2})};
}

}  // namespace

std::vector<Emulation> quantize_emulations() {
  return {{"quantize", quantize_cases, quantize}};
}

}  // namespace greta::test::bounds
