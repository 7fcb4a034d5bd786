#pragma once

#include <cstddef>
#include <memory>

#include "runtime/device/layers.hpp"

namespace greta::device::hip::host {

class ClusterRunner;

/// While this object exists, a hardware exception in a kernel on the calling OS thread (an access
/// to an illegal address, a division by zero) ends the kernel's block instead of the process.
/// Signals that no kernel caused are passed to the earlier handlers. If AddressSanitizer is in the
/// process, all of them are: it reports the location of the access and ends the process.
class FaultGuard {
 public:
  explicit FaultGuard(ClusterRunner& runner);
  ~FaultGuard();
  FaultGuard(const FaultGuard&) = delete;
  FaultGuard& operator=(const FaultGuard&) = delete;

 private:
  std::unique_ptr<std::byte[]> stack_;  ///< handlers run here, as a fiber's stack may be full
};

/// A signal that ends the block that an OS thread runs when it is sent to that thread
/// (pthread_kill). It has no effect while a kernel's call is served.
extern const int stop_signal;

}  // namespace greta::device::hip::host
