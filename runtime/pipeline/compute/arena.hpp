#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::runtime {

/// A piece of memory that is used during some steps of a sequence.
struct Lifetime {
  std::size_t bytes = 0;
  std::size_t first = 0, last = 0;  ///< steps, both inclusive
};

struct ArenaPlan {
  std::vector<std::size_t> offsets;  ///< of each lifetime, multiples of `alignment`
  std::size_t bytes = 0;             ///< of the arena
};

/// Places lifetimes in one arena so that those with a step in common don't overlap: the largest
/// first, each in the smallest gap that holds it among those that live at the same time.
/// Source: Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference, 2020
/// (greedy by size).
ArenaPlan plan_arena(std::span<const Lifetime> lifetimes, std::size_t alignment = 256);

}  // namespace greta::runtime
