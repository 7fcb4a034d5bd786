#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/layers.hpp"

namespace greta::test {

/// The description of a kernel in an AMD code object.
struct FakeKernel {
  struct Parameter {
    std::size_t offset = 0, bytes = 0;
    bool is_pointer = false;  ///< to global memory
  };
  std::vector<Parameter> parameters;  ///< those that a caller passes
  std::size_t argument_bytes = 0;     ///< total size, including hidden parameters
  int max_threads = 0;
  int shared_bytes = 0, scratch_bytes = 0, registers = 0;
};

struct FakeCodeObject {
  std::string architecture;  ///< "gfx90a"; empty if it is not emulated
  std::map<std::string, FakeKernel> kernels;
};

/// Reads an ELF file with code for AMD GPUs. Throws std::exception.
FakeCodeObject read_code_object(const std::vector<std::byte>& elf);

}  // namespace greta::test
