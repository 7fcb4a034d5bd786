#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::runtime {

/// A memory block that is used during some steps of a sequence.
struct Lifetime {
  std::size_t bytes = 0;
  std::size_t first = 0, last = 0;  ///< steps, both inclusive
};

struct ArenaPlan {
  std::vector<std::size_t> offsets;  ///< per lifetime, multiples of `alignment`
  std::size_t bytes = 0;             ///< size of the arena
};

/// Places lifetimes in one arena so that those that share a step do not overlap. Greedy by size:
/// the largest first, each in the smallest gap that fits between blocks that are live at the same
/// time.
/// Source: Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference, 2020.
ArenaPlan plan_arena(std::span<const Lifetime> lifetimes, std::size_t alignment = 256);

}  // namespace greta::runtime
