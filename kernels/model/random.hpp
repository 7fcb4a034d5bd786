#pragma once

#include <cstdint>
#include <random>

#include "runtime/device/layers.hpp"

namespace greta::kernels {

/// A bijection of 64-bit integers with pseudo-random output that is the same on every machine.
/// Source: the finaliser of SplitMix64, Steele, Lea, Flood, "Fast Splittable Pseudorandom Number
/// Generators", OOPSLA 2014.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Returns a uniform integer in [0, bound), bound ≥ 1. Unlike std::uniform_int_distribution, it
/// gives the same numbers with every standard library.
inline std::uint64_t uniform_below(std::mt19937_64& random, std::uint64_t bound) {
  const std::uint64_t unfair = (0 - bound) % bound;  // 2^64 mod bound
  std::uint64_t draw = random();
  while (draw < unfair) draw = random();
  return draw % bound;
}

/// Returns a uniform number in (0, 1), the same on every machine.
inline double uniform(std::mt19937_64& random) {
  return (static_cast<double>(random() >> 12) + 0.5) * 0x1p-52;
}

}  // namespace greta::kernels
