#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device/hip/compiler.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// Architectures that Debian 12's hiprtc compiles for.
const std::vector<std::string>& hiprtc_architectures();
/// Architectures that only clang compiles for, as far as the newest clang on PATH knows them.
const std::vector<std::string>& clang_architectures();

/// The compiler of AMD kernels that a backend gets.
hip::Compiler& amd_compiler();
/// clang alone.
hip::Compiler& clang_compiler();
/// The newest clang on PATH, as it is started.
const std::string& clang_name();

/// A kernel in HIP without any header: `body` is the whole of it, called "kernel".
KernelSource hip_source(const std::string& body);

}  // namespace greta::test
