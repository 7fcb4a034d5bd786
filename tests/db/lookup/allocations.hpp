#pragma once

#include <cstddef>

#include "tests/layers.hpp"

namespace greta::test {

/// Returns the number of allocations by operator new in this thread.
std::size_t allocations();

}  // namespace greta::test
