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
  if (fused == "layernorm") {
    centre(given, y);
  } else if (given.has("weight")) {
    over_root(given, y);
    weigh(given, "weight", y);
  }
  return y;
}

Outputs quantize(const Given& given) {
  const std::size_t rows = given.dim("rows"), cols = given.dim("cols");
  const ByteFormat format = format_of(given);
  const std::string shared = given.problem.attribute("scales", "row");
  const bool mx = shared == "mx";
  const std::size_t width = mx ? 32 : shared == "block" ? 128 : cols;
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
        const int power = std::ilogb(most) - std::ilogb(kernels::traits(format).largest);
        if (mx) scale = std::ldexp(1.0F, power);
        scales.push_back(mx ? static_cast<float>(power + 127) : scale.value());
      }
      const Float inverse = Float(1) / scale;
      for (std::size_t i = first; i < end; ++i) {
        // Products with powers of two are exact.
        const float quotient = mx ? y[i].value() / scale.value() : (y[i] * inverse).value();
        const float code = kernels::encode_byte(format, quotient);
        if (kernels::traits(format).bits == 8 || i % 2 == 0) {
          codes.push_back(code);
        } else {
          codes.back() += 16 * code;
        }
      }
    }
  }
  Outputs outputs;
  if (!sums.empty()) outputs.push_back(sums);
  outputs.push_back(codes);
  if (!scales.empty()) outputs.push_back(scales);
  return outputs;
}

constexpr std::size_t columns = 512;

/// Returns numbers between two neighbours of the format times `scale`; each 128th one of a row is
/// the largest. Every other row has a larger one, by which no quotient is exact.
Contents borders(ByteFormat format, double scale) {
  return [=](double draw, std::size_t i) {
    if (i % 128 == 0) {
      const double more = i / columns % 2 == 0 ? 1 : 1.0061;
      return scale * more * kernels::traits(format).largest;
    }
    const bool four_bits = format == ByteFormat::e2m1;
    const auto code =
        static_cast<std::uint8_t>(four_bits ? 1 + 11 * std::abs(draw) : 40 + 70 * std::abs(draw));
    const double low = kernels::decode_byte(format, code);
    const double high = kernels::decode_byte(format, static_cast<std::uint8_t>(code + 1));
    return std::copysign(scale * (low + high) / 2, draw);
  };
}

/// The same for a given scale, and a few units in the last place of f32 off.
Contents near_borders(ByteFormat format, double scale) {
  return [=, at = borders(format, scale)](double draw, std::size_t i) {
    const double off = static_cast<double>(i % 31) - 15;
    return at(draw, i) * (1 + off * 0x1p-24);
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
                 {"cols", std::to_string(columns)}},
                {{"X", factors.f16 > 0 ? borders(format, scale) : near_borders(format, scale)},
                 {"scale", given}},
                factors};
  };
  const auto fused = [](const char* what, const char* operation, const char* cols,
                        std::vector<std::pair<std::string, std::string>> more,
                        const Factors& factors) {
    more.insert(more.end(),
                {{"format", "int8"}, {"fused", operation}, {"rows", "200"}, {"cols", cols}});
    return Case{what, more, {{"gate", times(8)}}, factors};
  };
  // silu(40) is 40 in f32, times numbers near borders.
  const auto of_powers = [](const char* what, ByteFormat format, const Factors& factors) {
    const Contents gate = [](double, std::size_t) { return 40; };
    return Case{what,
                {{"format", std::string(kernels::to_string(format))},
                 {"scales", "mx"},
                 {"fused", "silu_mul"},
                 {"rows", "200"},
                 {"cols", std::to_string(columns)}},
                {{"gate", gate}, {"up", near_borders(format, 1.0 / 40)}},
                factors};
  };
  return {
      plain("rows", ByteFormat::e4m3, "row", 0.75, {3.8, 2.3, 2.3}),
      plain("blocks", ByteFormat::e5m2, "block", 0.75, {3.8, 2.3, 2.3}),
      plain("blocks of e4m3_fnuz", ByteFormat::e4m3_fnuz, "block", 0.75, {3.8, 3.8, 3.8}),
      plain("rows of e5m2_fnuz", ByteFormat::e5m2_fnuz, "row", 0.75, {3.8, 2.3, 2.3}),
      of_powers("silu_mul in e4m3 with scales mx", ByteFormat::e4m3, {1}),
      of_powers("silu_mul in e2m1 with scales mx", ByteFormat::e2m1, {1}),
      plain("a given scale", ByteFormat::e4m3, "tensor", 0.7, {1.1}),
      plain("a given scale of integers", ByteFormat::int8, "tensor", 0.7, {1.1}),
      fused("rmsnorm", "rmsnorm", "1000", {{"epsilon", "0.25"}}, {8.3, 7.8, 5}),
      fused("add_rmsnorm", "add_rmsnorm", "1000", {{"scales", "block"}}, {0, 5, 2.2}),
      fused("layernorm", "layernorm", "1000", {{"scales", "block"}}, {6.6, 7, 12}),
      fused("layernorm with weights", "layernorm", "1000", {{"affine", "weight"}}, {7, 8.8, 6.4}),
      fused("layernorm of nothing else", "layernorm", "1000",
            {{"affine", "none"}, {"epsilon", "0.25"}}, {6, 6.5, 12.5}),
      fused("silu_mul", "silu_mul", "1000", {}, {0, 2.4, 2.6}),
      fused("silu_mul of packed operands", "silu_mul", "1000", {{"layout", "packed"}},
            {0, 1.6, 1.6})};
}

}  // namespace

std::vector<Emulation> quantize_emulations() {
  return {{"quantize", quantize_cases, quantize}};
}

}  // namespace greta::test::bounds
