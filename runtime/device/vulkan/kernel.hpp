#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/device/compile/kernel_cache.hpp"
#include "runtime/device/vulkan/context.hpp"
#include "runtime/device/vulkan/glsl_compiler.hpp"

namespace greta::device::vulkan {

/// A compute pipeline and its layout. Submissions that run it keep it alive.
struct Pipeline {
  Handle<VkPipelineLayout, &VolkDeviceTable::vkDestroyPipelineLayout> layout;
  Handle<VkPipeline, &VolkDeviceTable::vkDestroyPipeline> pipeline;
  std::uint32_t argument_bytes = 0;  ///< as declared by the kernel
  std::uint32_t push_bytes = 0;      ///< argument_bytes rounded up to Vulkan's unit of 4
  bool has_listing = false;          ///< whether the driver kept a listing
};

/// The input of a pipeline: a kernel's source without its text, which has been compiled to SPIR-V.
struct Translation {
  KernelSource source;
  Spirv spirv;
};

class VulkanKernel final : public Kernel {
 public:
  VulkanKernel(std::shared_ptr<Context> context, std::string key, bool from_cache,
               Translation translation, std::shared_ptr<const Pipeline> pipeline,
               const KernelStatistics& statistics)
      : context_(std::move(context)),
        key_(std::move(key)),
        from_cache_(from_cache),
        translation_(std::move(translation)),
        pipeline_(std::move(pipeline)),
        statistics_(statistics) {}

  const std::string& content_key() const override { return key_; }
  bool from_cache() const override { return from_cache_; }
  KernelStatistics statistics() const override { return statistics_; }
  Result<std::string> listing() const override;

  const Context* context() const { return context_.get(); }
  const std::shared_ptr<const Pipeline>& pipeline() const { return pipeline_; }
  const Spirv& spirv() const { return translation_.spirv; }

 private:
  std::shared_ptr<Context> context_;
  std::string key_;
  bool from_cache_;
  Translation translation_;
  std::shared_ptr<const Pipeline> pipeline_;
  KernelStatistics statistics_;
};

/// Adds an option that tells a kernel's text which cooperative matrices the device has.
void add_matrix_macro(const PhysicalDevice& device, KernelSource& source);

/// Compiles a kernel for the device, or loads it from the cache. Thread-safe. Throws Refusal.
std::unique_ptr<VulkanKernel> compile(const std::shared_ptr<Context>& context, KernelCache& cache,
                                      KernelSource source);

/// Creates a kernel from SPIR-V that was compiled elsewhere. Throws Refusal.
std::unique_ptr<VulkanKernel> load(const std::shared_ptr<Context>& context,
                                   const KernelSource& source,
                                   std::span<const std::byte> code_object);

}  // namespace greta::device::vulkan
