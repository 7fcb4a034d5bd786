#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "runtime/device/hip/functions.hpp"

namespace greta::device::hip {

/// A call of a vendor's library, ready to be launched any number of times on the device that was
/// current when it was made. Thread-safe.
class PreparedCall {
 public:
  PreparedCall() = default;
  PreparedCall(const PreparedCall&) = delete;
  PreparedCall& operator=(const PreparedCall&) = delete;
  virtual ~PreparedCall() = default;

  /// Launches the call. `arguments` is the call's argument block (MatrixProductArguments,
  /// AttentionArguments). Throws Refusal (`launch`).
  virtual void launch(std::span<const std::byte> arguments, hipStream_t stream) const = 0;
  /// Returns the library's description of its algorithm; empty if it has none.
  virtual std::string algorithm() const = 0;
};

}  // namespace greta::device::hip
