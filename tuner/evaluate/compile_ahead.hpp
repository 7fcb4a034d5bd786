#pragma once

#include <future>
#include <map>
#include <memory>
#include <string>

#include "runtime/device/device.hpp"

namespace greta::tuner {

/// Compiles kernels in the background before they are requested.
class CompileAhead {
 public:
  explicit CompileAhead(Device& device) : device_(device) {}

  /// Starts compiling unless this kernel is already being compiled.
  void start(const KernelSource& source);
  /// Returns the kernel: waits for a compilation that was started, else compiles it now. Each
  /// started compilation can be taken once.
  Result<std::unique_ptr<Kernel>> take(const KernelSource& source);

 private:
  using Compiled = std::shared_ptr<Result<std::unique_ptr<Kernel>>>;
  Device& device_;
  std::map<std::string, std::future<Compiled>> running_;  // key: content key
};

}  // namespace greta::tuner
