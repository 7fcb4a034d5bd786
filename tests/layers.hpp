#pragma once

#include "runtime/device/layers.hpp"

/// Tests see the names of all layers.
namespace greta::test {
using namespace device;
using namespace kernels;
using namespace db;
using namespace runtime;
using namespace tuner;
}  // namespace greta::test
