#pragma once

#include <memory>
#include <string>

#include "runtime/device/attention_call.hpp"
#include "runtime/device/hip/prepared_call.hpp"
#include "runtime/device/result.hpp"

namespace greta::device::hip {

/// An open library of attention. Thread-safe.
class AttentionLibrary {
 public:
  AttentionLibrary() = default;
  AttentionLibrary(const AttentionLibrary&) = delete;
  AttentionLibrary& operator=(const AttentionLibrary&) = delete;
  virtual ~AttentionLibrary() = default;

  /// Returns the library's name and version: "cuDNN 9.19.0".
  virtual const std::string& name() const = 0;
  /// Prepares a call on the current device, whose functions are `hip`. Throws a Refusal
  /// (`constraints`) if the library does not support the call in its workspace, or ranks fewer
  /// algorithms.
  virtual std::unique_ptr<const PreparedCall> prepare(const AttentionCall& call,
                                                      const Functions& hip) const = 0;
};

/// Opens cuDNN 9 or newer. Fails with `unavailable` and the reason.
Result<std::shared_ptr<const AttentionLibrary>> open_cudnn();

}  // namespace greta::device::hip
