#include "runtime/pipeline/llama/sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/model/random.hpp"
#include "runtime/device/result.hpp"

namespace greta {
namespace {

__extension__ using Uint128 = unsigned __int128;

constexpr int point = 60;  ///< fractional bits of fixed-point numbers
constexpr std::uint64_t one = std::uint64_t{1} << point;
constexpr std::uint64_t ln2 = 0xb17217f7d1cf79aULL;  ///< of 2^60

/// 2^f of a fraction with 32 bits, 1 <= 2^f < 2: its Taylor series by Horner's rule, exact to some
/// 2^-57.
std::uint64_t exp2_fraction(std::uint32_t fraction) {
  const auto y = static_cast<std::uint64_t>((Uint128{fraction} * ln2) >> 32);
  std::uint64_t sum = one;
  for (std::uint64_t k = 18; k > 0; --k) {
    sum = one + static_cast<std::uint64_t>((Uint128{sum} * y) >> point) / k;
  }
  return sum;
}

/// e^x of x <= 0 as a number of 0 … most. A product and a rounding: nothing that a compiler could
/// fuse into other bits.
std::uint64_t weight(double x, std::uint64_t most) {
  constexpr double log2_e = 1.4426950408889634;
  const double powers = x * (log2_e * 0x1p32);
  if (!(powers > -0x1p38)) return 0;
  const auto fixed = static_cast<std::int64_t>(std::floor(powers));
  const auto fraction = static_cast<std::uint32_t>(fixed & 0xffffffff);
  const Uint128 scaled = (Uint128{exp2_fraction(fraction)} * most) >> point;
  return static_cast<std::uint64_t>(scaled >> -(fixed >> 32));
}

}  // namespace

void SamplerOptions::check() const {
  const auto refuse = [](const char* name, double value, const char* allowed) {
    throw Error(fmt::format("{} is {}; allowed: {}", name, value, allowed));
  };
  if (!std::isfinite(temperature) || temperature < 0) {
    refuse("temperature", temperature, "0 (the likeliest token) and more");
  }
  if (!(top_p > 0 && top_p <= 1)) refuse("top-p", top_p, "above 0, up to 1");
}

Sampler::Sampler(const SamplerOptions& options) : options_(options), random_(options.seed) {
  options_.check();
}

std::int32_t largest(std::span<const float> logits) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::size_t best = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]) || logits[i] == infinity) {
      throw Error(fmt::format("the logit of token {} is {}", i, logits[i]));
    }
    if (logits[i] > logits[best]) best = i;
  }
  if (logits.empty() || logits[best] == -infinity) throw Error("no token has a finite logit");
  return static_cast<std::int32_t>(best);
}

std::int32_t Sampler::next(std::span<const float> logits) {
  const std::int32_t best = largest(logits);
  if (options_.temperature == 0) return best;
  const double most = logits[static_cast<std::size_t>(best)];
  const std::uint64_t unit = (std::uint64_t{1} << 62) / logits.size();  // so that sums fit
  std::vector<std::uint64_t> weights(logits.size());
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    weights[i] = weight((logits[i] - most) / options_.temperature, unit);
    total += weights[i];
  }
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (options_.top_p < 1) {
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return weights[a] > weights[b]; });
    const auto enough = static_cast<std::uint64_t>(static_cast<double>(total) * options_.top_p);
    total = 0;
    std::size_t kept = 0;
    while (kept < order.size() && (kept == 0 || total < enough)) total += weights[order[kept++]];
    order.resize(kept);
  }
  std::uint64_t draw = uniform_below(random_, total);
  for (const std::size_t i : order) {
    if (draw < weights[i]) return static_cast<std::int32_t>(i);
    draw -= weights[i];
  }
  throw Error("the weights of a draw don't add up");  // draw < total, their sum
}

}  // namespace greta
