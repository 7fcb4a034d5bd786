#pragma once

#include <cstdint>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// Returns the number of ticks between two readings of a clock of `valid_bits` bits, which may wrap
/// around once.
constexpr std::uint64_t ticks_between(std::uint64_t start, std::uint64_t stop,
                                      std::uint32_t valid_bits) {
  const std::uint64_t mask = valid_bits >= 64 ? UINT64_MAX : (std::uint64_t{1} << valid_bits) - 1;
  return (stop - start) & mask;
}

}  // namespace greta::device
