#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/reference/philox.hpp"
#include "tests/kernels/bounds/emulation.hpp"
#include "tests/layers.hpp"

namespace greta::test::bounds {
namespace {

constexpr double full_weight = 0x1p29 - 1;

/// full_weight 2^(-octaves), between the powers for multiples of 1/512 by chords, and rounded down.
std::uint64_t weight_of(double octaves) {
  const double part = std::floor(octaves * 512), inside = octaves * 512 - part;
  const double chord =
      (1 - inside) * std::exp2(-part / 512) + inside * std::exp2(-(part + 1) / 512);
  return octaves < 29 ? static_cast<std::uint64_t>(full_weight * chord) : 0;
}

/// Draws by sorting, with distances in f32 and weights as integers.
float drawn(const Given& given, std::size_t row) {
  const std::size_t cols = given.dim("cols");
  const float* const x = given["x"].data() + row * cols;
  const float* const settings = given["settings"].data() + 4 * row;
  const float* const seeds = given["seeds"].data() + 3 * row;
  const float most = *std::max_element(x, x + cols);
  std::vector<std::size_t> order(cols);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return x[a] > x[b]; });
  std::vector<std::uint64_t> weights(cols);
  const Float scale = Float(1.442695F * 0x1p24F) / Float(settings[0]);
  std::uint64_t total = 0;
  auto left = static_cast<std::size_t>(settings[1]);
  for (const std::size_t i : order) {
    const float far = ((Float(most) - Float(x[i])) * scale).value();
    const std::uint64_t weight = weight_of(std::floor(far) * 0x1p-24);
    if (static_cast<double>(weight) <
        std::min(full_weight, static_cast<double>(settings[3]) * 0x1p29)) {
      continue;
    }
    if (settings[1] > 0 && left-- == 0) break;
    weights[i] = weight;
    total += weight;
  }
  const double enough = static_cast<double>(settings[2]) * static_cast<double>(total);
  std::uint64_t kept = 0;
  for (const std::size_t i : order) {
    if (settings[2] < 1 && static_cast<double>(kept) >= enough) weights[i] = 0;
    kept += weights[i];
  }
  const auto word = [&](std::size_t i) { return static_cast<std::uint32_t>(seeds[i]); };
  const auto random = kernels::philox4x32({word(2), 0, 0, 0}, {word(0), word(1)});
  double draw = (random[1] + random[0] * 0x1p-32) * 0x1p-32 * static_cast<double>(kept);
  for (std::size_t i = 0; i < cols; ++i) {
    if (draw < static_cast<double>(weights[i])) return static_cast<float>(i);
    draw -= static_cast<double>(weights[i]);
  }
  return -1;
}

Outputs sample(const Given& given) {
  std::vector<float> tokens(given.dim("rows"));
  for (std::size_t row = 0; row < tokens.size(); ++row) tokens[row] = drawn(given, row);
  return {tokens};
}

/// Settings of every row: temperature, top_k, top_p and min_p.
Contents settings(double temperature, double top_k, double top_p, double min_p) {
  return [=](double, std::size_t i) {
    return std::data({temperature, top_k, top_p, min_p})[i % 4];
  };
}

std::vector<Case> sample_cases(const DTypes&) {
  const auto with = [](const char* what, const char* rows, const char* cols, double size,
                       const Contents& of) {
    return Case{what,
                {{"rows", rows}, {"cols", cols}},
                {{"x", times(size)}, {"settings", of}, {"seeds", index_below(100000)}},
                {}};
  };
  return {with("all tokens", "40000", "7", 8, settings(1, 0, 1, 0)),
          with("top-p", "40000", "21", 12, settings(0.8, 0, 0.7, 0)),
          with("top-k and top-p", "20000", "21", 12, settings(1.3, 6, 0.9, 0)),
          with("min-p", "20000", "13", 12, settings(1, 0, 1, 0.05))};
}

}  // namespace

std::vector<Emulation> sample_emulations() {
  return {{"sample", sample_cases, sample, true}};
}

}  // namespace greta::test::bounds
