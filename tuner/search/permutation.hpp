#pragma once

#include <array>
#include <cstdint>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// A random order of 0 … size-1 that needs no memory: a Feistel network over the next even number
/// of bits, walked until it falls below `size` (at most four steps on average).
/// Source: Black, Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002.
class Permutation {
 public:
  Permutation(std::uint64_t size, std::uint64_t seed);
  /// The number at this place, place < size.
  std::uint64_t operator[](std::uint64_t place) const;

 private:
  std::uint64_t size_;
  int half_bits_ = 1;
  std::array<std::uint64_t, 6> round_keys_{};
};

}  // namespace greta::tuner
