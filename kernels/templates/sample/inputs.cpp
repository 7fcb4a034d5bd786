#include "kernels/templates/sample/inputs.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <random>

#include "kernels/model/random.hpp"
#include "kernels/reference/sample_integers.hpp"

namespace greta::kernels::sampling {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

void store(HostTensor& tensor, std::size_t index, double value) {
  store_element(tensor.spec.dtype, tensor.data.data(), index, value);
}

/// The sum of eight uniform numbers, of variance 1.
double nearly_normal(std::uint64_t seed) {
  double sum = 0;
  for (const std::uint64_t bits : {mix64(seed), mix64(~seed)}) {
    for (int shift = 0; shift < 64; shift += 16) {
      sum += (static_cast<double>(bits >> shift & 0xffff) + 0.5) * 0x1p-16 - 0.5;
    }
  }
  return sum * 1.224744871;  // sqrt(12 / 8)
}

/// A token of the vocabulary, or -1 in place of one.
double past_token(const Problem& problem, std::uint64_t draw) {
  const auto cols = static_cast<std::uint64_t>(problem.dim("cols"));
  if (draw % 8 == 0) return -1;
  // Some tokens are frequent.
  return static_cast<double>((draw >> 8) %
                             (draw % 8 < 4 ? std::min<std::uint64_t>(cols, 5) : cols));
}

template <std::size_t n>
double one_of(const double (&values)[n], std::mt19937_64& random) {
  return values[uniform_below(random, n)];
}

/// NaN and infinities in some rows.
void mix_in_special_values(HostTensor& x, std::mt19937_64& random) {
  for (std::int64_t row = 0; row < x.spec.rows; ++row) {
    if (uniform_below(random, 4) != 0) continue;
    const double one = one_of({nan, infinity, -infinity}, random);
    const double other = one_of({one, one, one, nan, infinity, -infinity}, random);
    const std::uint64_t of_four = 1 + uniform_below(random, 4);
    for (std::int64_t col = 0; col < x.spec.cols; ++col) {
      if (uniform_below(random, 4) < of_four) {
        store(x, static_cast<std::size_t>(row * x.spec.cols + col),
              uniform_below(random, 2) == 0 ? one : other);
      }
    }
  }
}

/// Few values in some rows, so that many tokens are equal. With the longest step, only tokens of
/// the largest one have a weight, and sums of weights are exact; with the shortest one, neighbours
/// differ by the least distance. Other rows have logits at all distances that have a weight, so
/// that borders lie in any bin of a histogram, or in none.
void mix_in_levels(HostTensor& x, std::mt19937_64& random) {
  for (std::int64_t row = 0; row < x.spec.rows; ++row) {
    if (uniform_below(random, 3) != 0) continue;
    const double step = one_of({0, 0x1p-24, 0.25, 0.6931471805599453, 1, 40}, random);
    const std::uint64_t levels = 1 + uniform_below(random, 4);
    const bool spread = uniform_below(random, 2) == 0;
    for (std::int64_t col = 0; col < x.spec.cols; ++col) {
      const auto index = static_cast<std::size_t>(row * x.spec.cols + col);
      if (spread) {
        store(x, index, -30 * uniform(random));
        continue;
      }
      const std::uint64_t level = uniform_below(random, levels);
      // Powers of 2 are at borders of histograms' bins (put_border()).
      const double power = std::exp2(-static_cast<double>(uniform_below(random, 16)));
      store(x, index, step > 0 ? -step * static_cast<double>(level) : level == 0 ? 0 : -power);
    }
  }
}

/// Makes most tokens of some rows far ones, and a few near ones that have most of the mass:
/// histograms bound the mass of far ones badly, and many of them count.
void mix_in_far_tokens(HostTensor& x, std::mt19937_64& random) {
  const auto cols = static_cast<std::uint64_t>(x.spec.cols);
  for (std::int64_t row = 0; row < x.spec.rows; ++row) {
    if (uniform_below(random, 4) != 0) continue;
    constexpr double farthest = 20;
    const double nearest = one_of({8.5, 11.2, 14}, random);
    const std::uint64_t near = 1 + uniform_below(random, 8);
    const auto place = [&](std::uint64_t col) {
      return static_cast<std::size_t>(row) * cols + col;
    };
    for (std::uint64_t col = 0; col < cols; ++col) {
      store(x, place(col), -nearest - (farthest - nearest) * uniform(random));
    }
    for (std::uint64_t i = 0; i < near; ++i) {
      store(x, place(uniform_below(random, cols)), -8 * uniform(random));
    }
  }
}

/// Returns a top_p whose share of these tokens ends exactly with one that is nearer than the next
/// one, half of the time with one of the first ones if possible; nothing if f32 has none.
std::optional<float> border_of(const std::vector<sampled::Weighed>& tokens,
                               std::mt19937_64& random) {
  std::vector<std::uint64_t> sums{0};
  for (const sampled::Weighed& token : tokens) sums.push_back(sums.back() + token.weight);
  const std::size_t count = tokens.size();
  if (count < 2) return std::nullopt;
  const std::size_t start = uniform_below(
      random, uniform_below(random, 2) == 0 ? count : std::min<std::size_t>(count, 8));
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t end = 1 + (start + i) % count;
    if (end == count || tokens[end].distance == tokens[end - 1].distance) continue;
    const float about = static_cast<float>(sums[end]) / static_cast<float>(sums.back());
    for (const float top_p : {about, std::nextafter(about, 0.0F), std::nextafter(about, 1.0F)}) {
      if (top_p < 1 && sampled::share_of(sums.back(), top_p) == sums[end]) return top_p;
    }
  }
  return std::nullopt;
}

/// Settings that keep the tokens up to a random one of a row, or end next to it: by its rank, by
/// the share of the tokens up to it, by its weight, or by a share of the tokens up to it.
void put_border(const HostTensor& x, std::int64_t row, HostTensor& settings,
                std::mt19937_64& random) {
  std::vector<double> logits;
  for (std::int64_t col = 0; col < x.spec.cols; ++col) {
    const double logit = x.at(static_cast<std::size_t>(row * x.spec.cols + col));
    if (std::isfinite(logit)) logits.push_back(logit);
  }
  if (logits.empty()) return;
  std::sort(logits.begin(), logits.end(), std::greater<>());
  // With the first, differences that are powers of 2 are such parts of an octave, too. With the
  // last, logits have weights whose differences f32 does not have.
  const bool huge = logits.front() / 2 - logits.back() / 2 > 0x1p125;
  const double temperature = one_of({double{sampled::octave_temperature}, huge ? 2e38 : 1}, random);
  const auto weight_of = [&](double logit) {
    return std::exp((logit - logits.front()) / temperature);
  };
  // Of the tokens that have a weight.
  const auto end = std::find_if(logits.begin(), logits.end(), [&](double logit) {
    return logit < logits.front() - 20 * temperature;
  });
  const auto rank = uniform_below(random, static_cast<std::uint64_t>(end - logits.begin()));
  double all = 0, kept = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double weight = weight_of(logits[i]);
    all += weight;
    if (i <= rank) kept += weight;
  }
  const double top_k = static_cast<double>(rank) + 1;
  const std::uint64_t kind = uniform_below(random, 5);
  const double min_p = kind >= 3 ? weight_of(logits[rank]) : 0;
  const sampled::Draw draw{static_cast<float>(temperature), 0, 1, static_cast<float>(min_p)};
  const double near = border_of(sampled::kept(x, row, draw), random).value_or(kept / all);
  const double top_p = one_of({kept / all, near, near, 0.25, 0.5, 0.75}, random);
  const auto first = static_cast<std::size_t>(row * 4);
  store(settings, first, temperature);
  store(settings, first + 1, kind == 0 || kind == 2 ? top_k : 0);
  store(settings, first + 2, kind == 1 || kind == 2 || kind == 4 ? top_p : 1);
  store(settings, first + 3, min_p);
}

/// Makes a draw among tokens of the least weights, of which each random number has its own: whoever
/// takes one too few or too many draws another token.
void draw_exactly(HostTensor& x, std::int64_t row, HostTensor& settings, HostTensor& seeds,
                  std::mt19937_64& random) {
  constexpr std::uint32_t tries = 1 << 20;  // of the 2^29 numbers of the largest weight
  const auto cols = x.spec.cols;
  const auto largest =
      static_cast<std::int64_t>(uniform_below(random, static_cast<std::uint64_t>(cols)));
  for (std::int64_t col = 0; col < cols; ++col) {
    store(x, static_cast<std::size_t>(row * cols + col), col == largest ? 0 : -28);
  }
  for (std::size_t i = 0; i < 4; ++i) {
    store(settings, static_cast<std::size_t>(row) * 4 + i,
          std::data({double{sampled::octave_temperature}, 0.0, 1.0, 0.0})[i]);
  }
  sampled::Draw draw;
  for (std::uint32_t& word : draw.key) word = static_cast<std::uint32_t>(random());
  const std::uint64_t all = 0x1fffffff + static_cast<std::uint64_t>(cols) - 1;
  const auto before = static_cast<std::uint64_t>(largest);
  for (; draw.offset < tries; ++draw.offset) {
    const std::uint64_t left = (sampled::random_bits(draw) >> 32) * all >> 32;
    if (left < before || left >= before + 0x1fffffff) break;
  }
  const std::uint32_t words[] = {draw.key[0], draw.key[1], draw.offset};
  for (std::size_t i = 0; i < 3; ++i) {
    store(seeds, static_cast<std::size_t>(row) * 3 + i, static_cast<std::int32_t>(words[i]));
  }
}

/// Draws the last token that a row's settings keep, if a few seeds have one that does: whoever
/// keeps other tokens draws another one then. `tries`: how many seeds may be tried.
void draw_last(const HostTensor& x, std::int64_t row, const HostTensor& settings, HostTensor& seeds,
               std::uint32_t& tries, std::mt19937_64& random) {
  const auto setting = [&](std::size_t i) {
    return static_cast<float>(settings.at(static_cast<std::size_t>(row) * 4 + i));
  };
  sampled::Draw draw{setting(0), setting(1), setting(2), setting(3)};
  if (!(draw.temperature > 0x1p-64F)) return;
  const std::vector<sampled::Weighed> tokens = sampled::kept(x, row, draw);
  if (tokens.empty()) return;
  const sampled::Weighed& last = tokens.back();
  std::uint64_t mass = 0, before = 0;
  for (const sampled::Weighed& token : tokens) {
    mass += token.weight;
    if (token.column < last.column) before += token.weight;
  }
  if (mass / last.weight > tries / 2) return;
  for (std::uint32_t& word : draw.key) word = static_cast<std::uint32_t>(random());
  for (; tries > 0; ++draw.offset, --tries) {
    const std::uint64_t at = sampled::place_in(mass, sampled::random_bits(draw));
    if (at < before || at >= before + last.weight) continue;
    const std::uint32_t words[] = {draw.key[0], draw.key[1], draw.offset};
    for (std::size_t i = 0; i < 3; ++i) {
      store(seeds, static_cast<std::size_t>(row) * 3 + i, static_cast<std::int32_t>(words[i]));
    }
    return;
  }
}

void vary_settings(const Problem& problem, const HostTensor& x, HostTensor& settings,
                   std::mt19937_64& random) {
  const auto cols = static_cast<double>(problem.dim("cols"));
  for (std::size_t i = 0; i < settings.spec.elements(); i += 4) {
    const std::uint64_t kind = uniform_below(random, 5);
    if (kind == 0) continue;
    if (kind <= 2) {
      put_border(x, static_cast<std::int64_t>(i / 4), settings, random);
      continue;
    }
    store(settings, i,
          one_of({1, 0.7, 1.5, 0, 1e-3, 100, -1, nan, infinity, 1e-30, 1e36, 2e38}, random));
    const double top_k =
        one_of({0, 1, 2, 5, 50, 3000, cols / 2, cols - 1, cols, 1e9, nan, -3}, random);
    if (uniform_below(random, 2) == 0) store(settings, i + 1, top_k);
    store(settings, i + 2, one_of({1, 0.9, 0.5, 0.1, 1e-6, 0, -1, nan, 0.999999, 2}, random));
    const double min_p = one_of({0.05, 0.3, 1e-5, 1, 2, infinity, nan, -1}, random);
    if (uniform_below(random, 3) == 0) store(settings, i + 3, min_p);
  }
}

}  // namespace

HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed) {
  HostTensor tensor = random_tensor(packed(spec), seed);
  const std::size_t count = spec.elements();
  const std::uint64_t start = mix64(seed);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t draw = start + i;
    if (spec.name == "x") store(tensor, i, nearly_normal(draw));
    if (spec.name == "settings") store(tensor, i, std::data({1.0, 0.0, 0.9, 0.0})[i % 4]);
    if (spec.name == "seeds") store(tensor, i, static_cast<std::int32_t>(mix64(draw)));
    if (spec.name == "penalties") store(tensor, i, std::data({1.2, 0.3, 0.4})[i % 3]);
    if (spec.name == "history") store(tensor, i, past_token(problem, mix64(draw)));
  }
  return tensor;
}

void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed) {
  mix_in_adversarial_rows(inputs[0], magnitudes_of(problem.dtype), seed);
  std::mt19937_64 random(mix64(seed));
  mix_in_levels(inputs[0], random);
  mix_in_far_tokens(inputs[0], random);
  mix_in_special_values(inputs[0], random);
  vary_settings(problem, inputs[0], inputs[1], random);
  if (inputs.size() < 5) {
    const std::int64_t rows = inputs[0].spec.rows;
    std::uint32_t tries = 1 << 20;
    for (std::int64_t row = 0; row < std::min<std::int64_t>(rows, 16); ++row) {
      draw_last(inputs[0], row, inputs[1], inputs[2], tries, random);
    }
    const auto row =
        static_cast<std::int64_t>(uniform_below(random, static_cast<std::uint64_t>(rows)));
    if (uniform_below(random, 2) == 0) draw_exactly(inputs[0], row, inputs[1], inputs[2], random);
    return;
  }
  HostTensor& penalties = inputs[3];
  for (std::size_t i = 0; i < penalties.spec.elements(); i += 3) {
    store(penalties, i, one_of({1, 1.3, 0.8, 0, -1, nan, infinity, 1e-40}, random));
    store(penalties, i + 1, one_of({0, 0.5, -2, nan, 100}, random));
    store(penalties, i + 2, one_of({0, 0.25, -1, infinity, 1000}, random));
  }
  mix_in_invalid_indices(inputs[4], problem.dim("cols"), seed);
}

}  // namespace greta::kernels::sampling
