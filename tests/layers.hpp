#pragma once

#include "runtime/device/layers.hpp"

/// Makes the names of all layers visible to tests.
namespace greta::test {
using namespace device;
using namespace kernels;
using namespace db;
using namespace runtime;
using namespace tuner;
using namespace tuner::model;
}  // namespace greta::test
