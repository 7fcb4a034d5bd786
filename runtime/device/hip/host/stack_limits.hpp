#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/device/layers.hpp"

/// How many stacks of emulated threads an executor has at most, whatever the number of its workers.
/// Each stack takes two of the 65,530 mappings that Linux allows a process by default
/// (vm.max_map_count).
namespace greta::device::hip::host {

/// Stacks of the clusters of a launch that run at once, unless one cluster has more threads, and as
/// many that workers keep for the next launch.
constexpr std::uint64_t most_stacks = 12'000;

/// Returns the number of workers that may run clusters of `threads` threads at once.
constexpr unsigned workers_for(std::uint64_t threads, unsigned workers) {
  return static_cast<unsigned>(std::clamp<std::uint64_t>(most_stacks / threads, 1, workers));
}

/// Returns the number of stacks that each of `workers` workers keeps after a launch.
constexpr std::uint64_t kept_stacks(unsigned workers) {
  return most_stacks / workers;
}

}  // namespace greta::device::hip::host
