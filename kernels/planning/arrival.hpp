#pragma once

#include <concepts>
#include <cstdint>

#include "kernels/planning/workspace.hpp"

namespace greta::kernels {

/// Returns the bytes of `count` counters of workgroups that have arrived, at the start of a
/// workspace. What follows them is aligned.
constexpr std::uint64_t counter_bytes(std::integral auto count) {
  return workspace_part(static_cast<std::uint64_t>(count) * 4);
}

/// Returns what it costs, in barriers, that the last of several workgroups adds what all have left
/// in memory: three times the latency of memory, and reading `bytes` alone.
constexpr double barriers_of_arrival(double bytes) {
  constexpr double of_latency = 70, bytes_of_barrier = 2000;
  return of_latency + bytes / bytes_of_barrier;
}

}  // namespace greta::kernels
