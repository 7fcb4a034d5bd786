#pragma once

#include "runtime/device/layers.hpp"

namespace greta::kernels {

/// Returns what it costs, in barriers, that the last of several workgroups adds what all have left
/// in memory: three times the latency of memory, and reading `bytes` alone.
constexpr double barriers_of_arrival(double bytes) {
  constexpr double of_latency = 70, bytes_of_barrier = 2000;
  return of_latency + bytes / bytes_of_barrier;
}

}  // namespace greta::kernels
