#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/backend.hpp"
#include "tuner/compile/compiled_choice.hpp"

namespace greta::tuner {

/// Examines the main loops of a plan's kernels, as they are launched for its problem. Sets
/// CompiledKernel::loop where the listing of an AMD GPU with matrix cores is known.
void examine_main_loops(const DeviceInfo& target, CompiledChoice& compiled);

/// A kernel of a code object.
struct NamedKernel {
  std::string name;
  std::uint32_t threads = 0;  ///< the largest workgroup that it was compiled for
  CompiledKernel compiled;    ///< without its code object
};

/// What is in a code object, and its target.
struct CodeObjectKernels {
  DeviceInfo target;
  std::vector<NamedKernel> kernels;
};

/// Examines the kernels of an AMD code object, whoever compiled it, with the largest workgroups
/// that they were compiled for. Their arguments are unknown, and with them LDS conflicts. Fails
/// with `invalid_argument` for other files, and with `unavailable` if no llvm-objdump lists the
/// code.
Result<CodeObjectKernels> examine_code_object(std::span<const std::byte> code_object,
                                              const OpenOptions& options);

}  // namespace greta::tuner
