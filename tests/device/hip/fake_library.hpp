#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/device/hip/hip_backend.hpp"
#include "tests/device/hip/fake/fake_hip.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// The library that a fake one replaces.
enum class Fake { hip6, hip5, incomplete, cuda };

std::string path_of(Fake fake);

/// Opens the fake library in its initial state, with the attributes of a typical device.
FakeHip& open_fake(Fake fake);

/// Returns a backend that only finds this library.
std::unique_ptr<Backend> backend_of(Fake fake);

/// Returns a code object for the library's devices with the kernel "work".
const std::vector<std::byte>& code_object_of(Fake fake);

/// Returns its source: blocks of 64, and 16 bytes of arguments.
KernelSource work_source();

}  // namespace greta::test
