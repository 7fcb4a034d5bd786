#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::db {

/// A compiled kernel that a database carries.
struct CarriedBinary {
  std::string content;  ///< KernelSource::content_key({}, {})
  std::string target;   ///< one of binary_targets(): "gfx942", "sm_90", "spirv"
  std::string name;     ///< of the kernel, for messages
  std::string compiler;
  std::vector<std::byte> binary;  ///< for Device::load()
  std::string compiled_utc;

  /// Returns a hash of content, target and binary.
  std::string hash() const;
};

/// The number and the size of the binaries of a target.
struct BinaryTotals {
  std::string target;
  std::int64_t count = 0;
  std::int64_t bytes = 0;
};

}  // namespace greta::db
