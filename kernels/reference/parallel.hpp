#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::kernels {

/// Calls body(first, last) for consecutive parts of 0 … count-1, one for each core. The caller's
/// thread only waits: what it wrote to its stack meanwhile would share cache lines with what the
/// others read there through `body`.
template <typename Body>
void parallel_parts(std::int64_t count, const Body& body) {
  const std::int64_t cores = std::max(1U, std::thread::hardware_concurrency());
  const std::int64_t parts = std::min(cores, count);
  if (parts == 1) return body(std::int64_t{0}, count);
  std::vector<std::jthread> workers;
  for (std::int64_t part = 0; part < parts; ++part) {
    workers.emplace_back(body, count * part / parts, count * (part + 1) / parts);
  }
}

}  // namespace greta::kernels
