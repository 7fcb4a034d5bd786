#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::kernels {

/// Calls body(first, last) for consecutive parts of 0 to count - 1, one per core. The calling
/// thread only waits: writes to its stack would invalidate cache lines that the workers read
/// through `body`.
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
