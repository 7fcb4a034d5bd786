#pragma once

#include <cstddef>
#include <memory>

#include "runtime/device/layers.hpp"

namespace greta::device::hip::host {

class BlockRunner;

/// While it lives, what the processor refuses to do for a kernel on the calling OS thread (an
/// access to an illegal address, a division by zero) ends the kernel's block instead of the
/// process. Signals that no kernel caused go where they went before. With AddressSanitizer in the
/// process they all do: it reports where the access is, and ends the process.
class FaultGuard {
 public:
  explicit FaultGuard(BlockRunner& runner);
  ~FaultGuard();
  FaultGuard(const FaultGuard&) = delete;
  FaultGuard& operator=(const FaultGuard&) = delete;

 private:
  std::unique_ptr<std::byte[]> stack_;  ///< handlers run here: a fiber's may be full
};

/// Sent to an OS thread (pthread_kill), ends the block that runs there unless the kernel is in the
/// middle of a call; then it has no effect.
extern const int stop_signal;

}  // namespace greta::device::hip::host
