#pragma once

#include <cstddef>

#include "tests/layers.hpp"

namespace greta::test {

/// How often this thread has allocated memory by operator new.
std::size_t allocations();

}  // namespace greta::test
