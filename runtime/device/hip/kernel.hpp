#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/compile/kernel_cache.hpp"
#include "runtime/device/hip/context.hpp"

namespace greta::device::hip {

/// A variable in constant memory.
struct Constant {
  std::byte* address = nullptr;
  std::size_t bytes = 0;
};

/// A function of a loaded code object, and its launch parameters. Everything that runs it keeps it
/// alive.
struct Function {
  std::vector<std::byte> code_object;
  Handle<hipModule_t, &Functions::hipModuleUnload> owner;
  hipFunction_t handle = nullptr;
  std::array<std::uint32_t, 3> block{};
  std::uint32_t argument_bytes = 0;
  std::vector<std::uint32_t> argument_offsets;  ///< KernelSource::argument_offsets
  std::uint32_t dynamic_shared_bytes = 0;
  bool may_overlap = false;         ///< KernelSource::awaits_launches, where the device can
  std::vector<Constant> constants;  ///< of KernelSource::constants, in the same order
  std::shared_ptr<const PreparedCall> call;  ///< instead of a function, of a library
};

class HipKernel final : public Kernel {
 public:
  HipKernel(std::shared_ptr<const Context> context, std::string key, bool from_cache,
            std::shared_ptr<const Function> function, const KernelStatistics& statistics)
      : context_(std::move(context)),
        key_(std::move(key)),
        from_cache_(from_cache),
        function_(std::move(function)),
        statistics_(statistics) {}

  const std::string& content_key() const override { return key_; }
  bool from_cache() const override { return from_cache_; }
  KernelStatistics statistics() const override { return statistics_; }
  Result<std::string> listing() const override;

  const Context* context() const { return context_.get(); }
  const std::shared_ptr<const Function>& function() const { return function_; }

 private:
  std::shared_ptr<const Context> context_;
  std::string key_;
  bool from_cache_;
  std::shared_ptr<const Function> function_;
  KernelStatistics statistics_;
};

/// Compiles a kernel for the device, or loads it from the cache. Thread-safe. Throws Refusal.
std::unique_ptr<HipKernel> compile(const std::shared_ptr<Context>& context, Compiler& compiler,
                                   KernelCache& cache, const KernelSource& source);

/// Creates a kernel from an existing code object. Thread-safe. Throws Refusal.
std::unique_ptr<HipKernel> load(const std::shared_ptr<Context>& context, const KernelSource& source,
                                std::span<const std::byte> code_object);

}  // namespace greta::device::hip
