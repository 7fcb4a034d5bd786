#pragma once

#include <array>
#include <cstdint>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// A random permutation of 0 … size-1 that needs no memory: a Feistel network over the smallest
/// sufficient even number of bits, iterated until the result is below `size` (at most four
/// iterations on average). Source: Black, Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA
/// 2002.
class Permutation {
 public:
  Permutation(std::uint64_t size, std::uint64_t seed);
  /// Returns the number at `place`, which must be below the size.
  std::uint64_t operator[](std::uint64_t place) const;

 private:
  std::uint64_t size_;
  int half_bits_ = 1;
  std::array<std::uint64_t, 6> round_keys_{};
};

}  // namespace greta::tuner
