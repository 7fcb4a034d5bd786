#include "kernels/reference/sample_integers.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "kernels/reference/philox.hpp"

namespace greta::kernels::sampled {
namespace {

constexpr std::uint32_t farthest = 29U << 24;
constexpr std::uint32_t largest_weight = 0x1fffffff;

std::uint32_t high_part(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>(std::uint64_t{a} * b >> 32);
}

/// 2^(-i / 512) of an octave's beginning.
std::uint32_t power_of(std::uint32_t i) {
  constexpr std::uint32_t roots[] = {0xffa75652, 0xff4ecb59, 0xfe9e115c, 0xfd3e0c0d, 0xfa83b2db,
                                     0xf5257d15, 0xeac0c6e8, 0xd744fccb, 0xb504f334};
  std::uint32_t power = std::numeric_limits<std::uint32_t>::max();
  for (std::uint32_t bit = 9; bit-- > 0;) {
    if ((i >> bit & 1) != 0) power = high_part(power, roots[bit]);
  }
  return power >> 3;
}

std::uint32_t weight_of(std::uint32_t distance) {
  constexpr std::uint32_t chord = 0x0058a9ad;  // 2^32 (1 - 2^(-1 / 512))
  const std::uint32_t power = power_of(distance >> 15 & 511);
  return (power - high_part(power, high_part(distance << 17, chord))) >> (distance >> 24);
}

/// a / b, rounded towards 0.
float quotient(float a, float b) {
  const auto high = std::bit_cast<std::uint32_t>(a), low = std::bit_cast<std::uint32_t>(b);
  const std::uint64_t bits =
      (std::uint64_t{(high & 0x7fffff) | 0x800000} << 25) / ((low & 0x7fffff) | 0x800000);
  const bool whole = bits >> 25 != 0;
  const int exponent = static_cast<int>(high >> 23) - static_cast<int>(low >> 23) + 127 - !whole;
  if (exponent <= 0) return 0;
  const auto mantissa = static_cast<std::uint32_t>(bits >> (whole ? 2 : 1)) & 0x7fffff;
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent) << 23 | mantissa);
}

/// The first `count` of tokens that are sorted by distance, whose sum reaches a share of theirs.
std::size_t reached(const std::vector<Weighed>& tokens, std::size_t count, float top_p) {
  std::uint64_t mass = 0, sum = 0;
  for (std::size_t i = 0; i < count; ++i) mass += tokens[i].weight;
  const std::uint64_t target = share_of(mass, top_p);
  std::size_t kept = 0;
  while (kept < count && sum < target) sum += tokens[kept++].weight;
  return kept;
}

}  // namespace

std::vector<Weighed> weighed(const HostTensor& x, std::int64_t row, float temperature,
                             std::uint32_t least) {
  std::vector<float> logits(static_cast<std::size_t>(x.spec.cols));
  float most = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(x.at(static_cast<std::size_t>(row) * logits.size() + i));
    if (logits[i] > most) most = logits[i];
  }
  const float scale = quotient(octave_temperature * 0x1p24F, temperature);
  std::vector<Weighed> tokens;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float far = logits[i] == most ? 0 : (most - logits[i]) * scale;
    if (!(far < static_cast<float>(farthest))) continue;
    const auto distance = static_cast<std::uint32_t>(far);
    const std::uint32_t weight = weight_of(distance);
    if (weight >= least) tokens.push_back({static_cast<std::int64_t>(i), distance, weight});
  }
  std::stable_sort(tokens.begin(), tokens.end(),
                   [](const Weighed& a, const Weighed& b) { return a.distance < b.distance; });
  return tokens;
}

std::uint64_t share_of(std::uint64_t mass, float top_p) {
  const std::uint64_t part = top_p > 0 ? static_cast<std::uint64_t>(top_p * 0x1p32F) : 0;
  const std::uint64_t target = (mass >> 32) * part + ((mass & 0xffffffff) * part >> 32);
  return std::max<std::uint64_t>(target, 1);
}

std::uint64_t random_bits(const Draw& draw) {
  const auto bits = philox4x32({draw.offset, 0, 0, 0}, {draw.key[0], draw.key[1]});
  return std::uint64_t{bits[1]} << 32 | bits[0];
}

std::vector<Weighed> kept(const HostTensor& x, std::int64_t row, const Draw& draw) {
  const float min_p = draw.min_p < 1 ? draw.min_p : 1;
  std::uint32_t least = draw.min_p > 0 ? static_cast<std::uint32_t>(min_p * 0x1p29F) : 1;
  least = std::clamp<std::uint32_t>(least, 1, largest_weight);
  std::vector<Weighed> tokens = weighed(x, row, draw.temperature, least);
  std::size_t count = tokens.size();
  if (draw.top_k >= 1 && draw.top_k < 0x1p31F) {
    count = std::min(count, static_cast<std::size_t>(draw.top_k));
  }
  if (draw.top_p < 1) count = reached(tokens, count, draw.top_p);
  tokens.resize(count);
  return tokens;
}

std::uint64_t place_in(std::uint64_t mass, std::uint64_t random) {
  // The upper 64 bits of a product, whose first factor has at most 62.
  const std::uint64_t middle = (random & 0xffffffff) * (mass & 0xffffffff) >> 32;
  const std::uint64_t first = (random >> 32) * (mass & 0xffffffff) + middle;
  const std::uint64_t second = (random & 0xffffffff) * (mass >> 32) + (first & 0xffffffff);
  return (random >> 32) * (mass >> 32) + (first >> 32) + (second >> 32);
}

std::int64_t drawn(const HostTensor& x, std::int64_t row, const Draw& draw) {
  const bool greedy = !(draw.temperature > 0x1p-64F);
  const auto logit = [&](std::int64_t column) {
    return x.at(static_cast<std::size_t>(row * x.spec.cols + column));
  };
  std::int64_t best = -1;
  for (std::int64_t column = 0; column < x.spec.cols; ++column) {
    const double over = best < 0 ? -std::numeric_limits<double>::infinity() : logit(best);
    if (logit(column) > over) best = column;
  }
  if (greedy || best < 0) return best;
  std::vector<Weighed> tokens = kept(x, row, draw);
  std::sort(tokens.begin(), tokens.end(),
            [](const Weighed& a, const Weighed& b) { return a.column < b.column; });
  std::uint64_t mass = 0;
  for (const Weighed& token : tokens) mass += token.weight;
  std::uint64_t left = place_in(mass, random_bits(draw));
  for (const Weighed& token : tokens) {
    if (left < token.weight) return token.column;
    left -= token.weight;
  }
  return tokens.back().column;
}

}  // namespace greta::kernels::sampled
