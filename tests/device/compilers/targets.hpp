#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device/hip/compiler.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// Architectures that Debian 12's hiprtc supports.
const std::vector<std::string>& hiprtc_architectures();
/// Architectures that only clang supports, as far as the newest clang on PATH does.
const std::vector<std::string>& clang_architectures();

/// The compiler of AMD kernels that backends use.
hip::Compiler& amd_compiler();
/// A compiler that only uses clang.
hip::Compiler& clang_compiler();
/// The command of the newest clang on PATH.
const std::string& clang_name();

/// Returns a HIP kernel without headers: `body` is the complete source of "kernel".
KernelSource hip_source(const std::string& body);

}  // namespace greta::test
