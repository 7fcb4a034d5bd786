#pragma once

#include <cstddef>

namespace greta::test {

/// How often this thread has allocated memory by operator new.
std::size_t allocations();

}  // namespace greta::test
