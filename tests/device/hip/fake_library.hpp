#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/device/hip/hip_backend.hpp"
#include "tests/device/hip/fake/fake_hip.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// Which library a fake one stands in for.
enum class Fake { hip6, hip5, incomplete, cuda };

std::string path_of(Fake fake);

/// The fake library, opened and as it was at first, with the attributes of a usual device.
FakeHip& open_fake(Fake fake);

/// A backend that finds this library and no other.
std::unique_ptr<Backend> backend_of(Fake fake);

/// A code object for devices of the fake library, with kernel "work", which the library takes.
const std::vector<std::byte>& code_object_of(Fake fake);

/// The source that belongs to it: blocks of 64, and 16 bytes of arguments.
KernelSource work_source();

}  // namespace greta::test
