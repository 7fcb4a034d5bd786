#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace greta {

/// Calls body(first, last) for consecutive parts of 0 … count-1, one for each core.
template <typename Body>
void parallel_parts(std::int64_t count, const Body& body) {
  const std::int64_t cores = std::max(1U, std::thread::hardware_concurrency());
  const std::int64_t parts = std::min(cores, count);
  std::vector<std::jthread> workers;
  for (std::int64_t part = 1; part < parts; ++part) {
    workers.emplace_back(body, count * part / parts, count * (part + 1) / parts);
  }
  if (parts > 0) body(std::int64_t{0}, count / parts);
}

}  // namespace greta
