#include "runtime/pipeline/llama/sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/model/random.hpp"
#include "runtime/device/result.hpp"

namespace greta::runtime {
namespace {

__extension__ using Uint128 = unsigned __int128;

constexpr double least_repetition = 0.01;  ///< quotients of logits by less might be infinite
constexpr double most_penalty = 100;
constexpr int point = 60;  ///< fractional bits of fixed-point numbers
constexpr std::uint64_t fixed_one = std::uint64_t{1} << point;
constexpr std::uint64_t ln2 = 0xb17217f7d1cf79aULL;  ///< as a fixed-point number

/// Multiplies fixed-point numbers.
std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint64_t>((Uint128{a} * b) >> point);
}

/// Returns e^y for 0 <= y < 1: the Taylor series by Horner's rule.
std::uint64_t series(std::uint64_t y) {
  std::uint64_t sum = fixed_one;
  for (std::uint64_t k = 18; k > 0; --k) sum = fixed_one + times(sum, y) / k;
  return sum;
}

/// Computes unnormalised probabilities in integers.
class Weights {
 public:
  Weights() {
    for (std::size_t i = 0; i < first_.size(); ++i) {
      first_[i] = series((ln2 >> 8) * i);
      second_[i] = series((ln2 >> 16) * i);
    }
  }

  /// Returns e^x for x <= 0, scaled to 0 … most. The floating-point part is one multiplication and
  /// one conversion, so that compilers can't contract operations and change the result.
  std::uint64_t operator()(double x, std::uint64_t most) const {
    constexpr double log2_e = 1.4426950408889634;
    const double powers = x * (log2_e * 0x1p32);
    if (!(powers > -0x1p38)) return 0;
    const auto fixed = static_cast<std::int64_t>(powers);
    const std::uint64_t scaled = times(power(static_cast<std::uint32_t>(fixed & 0xffffffff)), most);
    return scaled >> std::min<std::int64_t>(-(fixed >> 32), 63);
  }

 private:
  using Table = std::array<std::uint64_t, 256>;

  /// Returns 2^f for the fraction f = fraction / 2^32, 1 <= 2^f < 2, accurate to about 2^-55: a
  /// table for each of the first two groups of eight bits, and the series for the rest.
  std::uint64_t power(std::uint32_t fraction) const {
    const auto y = static_cast<std::uint64_t>((Uint128{fraction & 0xffffU} * ln2) >> 32);
    const std::uint64_t rest = fixed_one + times(y, fixed_one + times(y, fixed_one + y / 3) / 2);
    return times(times(first_[fraction >> 24], second_[fraction >> 16 & 0xffU]), rest);
  }

  Table first_{}, second_{};
};

}  // namespace

void SamplerOptions::check() const {
  const auto refuse = [](const char* name, double value, const char* allowed) {
    throw Error(fmt::format("{} is {}; allowed: {}", name, value, allowed));
  };
  if (!std::isfinite(temperature) || temperature < 0) {
    refuse("temperature", temperature, "0 (the most likely token) and more");
  }
  if (!(top_p > 0 && top_p <= 1)) refuse("top-p", top_p, "above 0, up to 1");
  if (!(min_p >= 0 && min_p <= 1)) refuse("min-p", min_p, "0 to 1");
  constexpr std::int64_t most = 1 << 24;  // exact in f32
  if (top_k < 0 || top_k > most) refuse("top-k", static_cast<double>(top_k), "0 (off) to 2^24");
  if (!(repetition >= least_repetition && repetition <= most_penalty)) {
    refuse("repetition penalty", repetition, "0.01 to 100; 1: off");
  }
  for (const auto& [name, value] :
       {std::pair{"frequency penalty", frequency}, std::pair{"presence penalty", presence}}) {
    if (!(std::abs(value) <= most_penalty)) refuse(name, value, "-100 to 100");
  }
}

Sampler::Sampler(const SamplerOptions& options) : options_(options), random_(options.seed) {
  options_.check();
  if (options_.penalises()) throw Error("penalties are of draws on the device");
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
  // Sums of logits.size() weights up to `unit` do not overflow.
  const std::uint64_t unit = (std::uint64_t{1} << 62) / logits.size();
  static const Weights weight;
  weights_.resize(logits.size());
  std::uint64_t total = 0;
  const auto least = static_cast<std::uint64_t>(options_.min_p * static_cast<double>(unit));
  for (std::size_t i = 0; i < logits.size(); ++i) {
    weights_[i] = weight((logits[i] - most) / options_.temperature, unit);
    if (weights_[i] < least) weights_[i] = 0;
    total += weights_[i];
  }
  if (options_.top_p < 1 || options_.top_k > 0) total = keep_likeliest(total);
  std::uint64_t draw = uniform_below(random_, total);
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (draw < weights_[i]) return static_cast<std::int32_t>(i);
    draw -= weights_[i];
  }
  throw Error("the weights of a draw don't add up");  // draw < total, their sum
}

std::uint64_t Sampler::keep_likeliest(std::uint64_t total) {
  const auto share = [this](std::uint64_t of) {
    const auto part = static_cast<std::uint64_t>(static_cast<double>(of) * options_.top_p);
    return options_.top_p < 1 ? std::min(part, of) : of;
  };
  const std::size_t most =
      options_.top_k > 0 ? static_cast<std::size_t>(options_.top_k) : weights_.size();
  // Tokens with smaller weights sum to less than the excluded part.
  const std::uint64_t least =
      options_.top_k > 0 ? 1 : std::max<std::uint64_t>(1, (total - share(total)) / weights_.size());
  order_.clear();
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (weights_[i] >= least) order_.push_back({weights_[i], i});
    weights_[i] = 0;
  }
  std::sort(order_.begin(), order_.end(), [](const Ranked& a, const Ranked& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.index < b.index;
  });
  if (options_.top_k > 0) {
    order_.resize(std::min(order_.size(), most));
    total = 0;
    for (const Ranked& token : order_) total += token.weight;
  }
  const std::uint64_t enough = share(total);
  std::uint64_t kept = 0;
  for (const Ranked& token : order_) {
    if (kept >= enough && kept > 0) break;
    weights_[token.index] = token.weight;
    kept += token.weight;
  }
  return kept;
}

}  // namespace greta::runtime
