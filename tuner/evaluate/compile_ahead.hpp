#pragma once

#include <future>
#include <map>
#include <memory>
#include <string>

#include "runtime/device/device.hpp"

namespace greta::tuner {

/// Compiles kernels in the background before they are asked for.
class CompileAhead {
 public:
  explicit CompileAhead(Device& device) : device_(device) {}

  /// Starts compiling unless it is already under way.
  void start(const KernelSource& source);
  /// The kernel: waits for one that was started, else compiles it now. Each start is taken once.
  Result<std::unique_ptr<Kernel>> take(const KernelSource& source);

 private:
  using Compiled = std::shared_ptr<Result<std::unique_ptr<Kernel>>>;
  Device& device_;
  std::map<std::string, std::future<Compiled>> running_;  // by content key
};

}  // namespace greta::tuner
