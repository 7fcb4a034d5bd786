#pragma once

#include <cstdint>
#include <functional>

#include "runtime/device/layers.hpp"

namespace greta::kernels {

/// Returns the number of threads that share work: one per core.
std::int64_t parallel_threads();

/// Calls body(first, last) for consecutive parts of 0 to count - 1, one per core, on threads that
/// are started once per process. Rethrows the first exception of a body. The calling thread only
/// waits: writes to its stack would invalidate cache lines that the threads read through `body`.
/// Within a body it calls body(0, count) directly. Thread-safe.
void parallel_parts(std::int64_t count,
                    const std::function<void(std::int64_t first, std::int64_t last)>& body);

}  // namespace greta::kernels
