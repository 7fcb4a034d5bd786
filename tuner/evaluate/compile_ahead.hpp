#pragma once

#include <condition_variable>
#include <cstddef>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "runtime/device/device.hpp"
#include "tuner/evaluate/compile_slots.hpp"

namespace greta::tuner {

/// Compiles kernels in the background before they are requested. Each compilation takes a slot.
class CompileAhead {
 public:
  CompileAhead(Device& device, const CompileSlots& slots) : device_(device), slots_(slots) {}

  /// Starts compiling unless this kernel is already being compiled. Returns its key.
  std::string start(const KernelSource& source);
  /// Waits until all kernels of one of these lists of keys are compiled. Returns its index: the
  /// lowest if there are several.
  std::size_t first_compiled(const std::vector<std::vector<std::string>>& candidates);
  /// Returns the kernel: waits for a compilation that was started, else compiles it now. Each
  /// started compilation can be taken once. Throws what the compilation threw.
  Result<std::unique_ptr<Kernel>> take(const KernelSource& source);

 private:
  Result<std::unique_ptr<Kernel>> compile(const KernelSource& source);
  class Ending;
  using Compiled = std::shared_ptr<Result<std::unique_ptr<Kernel>>>;
  bool compiled(const std::vector<std::string>& keys) const;

  Device& device_;
  const CompileSlots& slots_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::set<std::string> compiling_;  ///< keys of compilations that have not ended
  std::map<std::string, std::future<Compiled>> running_;  // key: content key
};

}  // namespace greta::tuner
