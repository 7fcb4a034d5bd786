#include "runtime/device/vulkan/kernel.hpp"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/device/compile/listing.hpp"
#include "runtime/device/launch_checks.hpp"
#include "runtime/device/telemetry.hpp"
#include "runtime/device/text/hash.hpp"
#include "runtime/device/vulkan/executable.hpp"
#include "runtime/device/vulkan/spirv_info.hpp"
#include "runtime/device/vulkan/stream.hpp"

namespace greta::device::vulkan {

namespace {

using ModuleHandle = Handle<VkShaderModule, &VolkDeviceTable::vkDestroyShaderModule>;
using CacheHandle = Handle<VkPipelineCache, &VolkDeviceTable::vkDestroyPipelineCache>;

/// The part of a kernel that the disk cache stores.
struct Binary {
  Spirv spirv;
  std::vector<std::byte> driver_data;  ///< content of the driver's pipeline cache
};

std::vector<std::byte> pack(const Spirv& spirv, const std::vector<std::byte>& driver_data) {
  const std::uint64_t spirv_bytes = spirv.size() * sizeof(std::uint32_t);
  std::vector<std::byte> packed(sizeof spirv_bytes + spirv_bytes + driver_data.size());
  std::byte* to = packed.data();
  std::memcpy(to, &spirv_bytes, sizeof spirv_bytes);
  to += sizeof spirv_bytes;
  std::memcpy(to, spirv.data(), spirv_bytes);
  std::copy(driver_data.begin(), driver_data.end(), to + spirv_bytes);
  return packed;
}

std::optional<Binary> unpack(const std::vector<std::byte>& packed) {
  std::uint64_t spirv_bytes = 0;
  if (packed.size() < sizeof spirv_bytes) return std::nullopt;
  std::memcpy(&spirv_bytes, packed.data(), sizeof spirv_bytes);
  if (spirv_bytes > packed.size() - sizeof spirv_bytes || spirv_bytes % 4 != 0) return std::nullopt;
  Binary binary;
  binary.spirv.resize(spirv_bytes / sizeof(std::uint32_t));
  std::memcpy(binary.spirv.data(), packed.data() + sizeof spirv_bytes, spirv_bytes);
  binary.driver_data.assign(
      packed.begin() + static_cast<std::ptrdiff_t>(sizeof spirv_bytes + spirv_bytes), packed.end());
  return binary;
}

[[noreturn]] void refuse(const KernelSource& source, const std::string& why) {
  throw Refusal(Status::compile, fmt::format("{}: {}", source.name, why));
}

/// Compares the kernel's requirements with the device's limits and the source's declarations.
void check_resources(const PhysicalDevice& device, const KernelSource& source,
                     const SpirvInfo& needs) {
  const DeviceInfo& info = device.info;
  if (needs.local_size != source.block) {
    refuse(source, fmt::format("the text declares a workgroup of {}, its source says {}",
                               fmt::join(needs.local_size, "x"), fmt::join(source.block, "x")));
  }
  const std::uint64_t invocations =
      std::uint64_t{source.block[0]} * source.block[1] * source.block[2];
  if (source.required_subgroup_size != 0 &&
      invocations > std::uint64_t{source.required_subgroup_size} * device.max_workgroup_subgroups) {
    refuse(source,
           fmt::format("{} invocations in subgroups of {}, the device takes {} subgroups",
                       invocations, source.required_subgroup_size, device.max_workgroup_subgroups));
  }
  if (needs.shared_memory_bytes > info.shared_memory_bytes) {
    refuse(source, fmt::format("{} bytes of shared memory, the device has {}",
                               needs.shared_memory_bytes, info.shared_memory_bytes));
  }
  if (needs.push_constant_bytes > source.argument_bytes) {
    refuse(source, fmt::format("the text declares {} bytes of arguments, its source says {}",
                               needs.push_constant_bytes, source.argument_bytes));
  }
}

/// Creates a pipeline. `driver_data` is the initial content of the driver's pipeline cache and
/// receives its final content. With `listing` the driver compiles again and keeps a listing of the
/// machine code.
std::shared_ptr<const Pipeline> build(const std::shared_ptr<Context>& context,
                                      const Translation& translation,
                                      std::vector<std::byte>& driver_data, bool listing) {
  const KernelSource& source = translation.source;
  const auto& vk = context->vk();
  auto built = std::make_shared<Pipeline>();
  built->argument_bytes = source.argument_bytes;
  built->push_bytes = (source.argument_bytes + 3) / 4 * 4;
  const VkPushConstantRange arguments{VK_SHADER_STAGE_COMPUTE_BIT, 0, built->push_bytes};
  const VkPipelineLayoutCreateInfo layout{
      .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
      .pushConstantRangeCount = built->push_bytes == 0 ? 0U : 1U,
      .pPushConstantRanges = &arguments};
  built->layout = make<decltype(built->layout), &VolkDeviceTable::vkCreatePipelineLayout>(
      context, layout, "vkCreatePipelineLayout");

  const VkShaderModuleCreateInfo module_info{
      .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
      .codeSize = translation.spirv.size() * sizeof(std::uint32_t),
      .pCode = translation.spirv.data()};
  const auto module = make<ModuleHandle, &VolkDeviceTable::vkCreateShaderModule>(
      context, module_info, "vkCreateShaderModule");
  const VkPipelineCacheCreateInfo cache_info{.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                             .initialDataSize = driver_data.size(),
                                             .pInitialData = driver_data.data()};
  const auto cache = make<CacheHandle, &VolkDeviceTable::vkCreatePipelineCache>(
      context, cache_info, "vkCreatePipelineCache");

  const std::uint32_t subgroup = source.required_subgroup_size;
  const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo required{
      .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
      .requiredSubgroupSize = subgroup};
  VkComputePipelineCreateInfo create{
      .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
      .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                .pNext = subgroup == 0 ? nullptr : &required,
                .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                .module = module.get(),
                .pName = "main"},
      .layout = built->layout.get()};
  // Vulkan allows full subgroups to be required only if the first dimension is a multiple of the
  // subgroup size.
  if (subgroup != 0 && source.block[0] % subgroup == 0 && context->physical().full_subgroups) {
    create.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
  }
  if (context->physical().statistics) {
    create.flags = VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR;
    if (listing) create.flags |= VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR;
    built->has_listing = listing;
  }
  VkPipeline pipeline = VK_NULL_HANDLE;
  check(vk.vkCreateComputePipelines(context->handle(), cache.get(), 1, &create, nullptr, &pipeline),
        "vkCreateComputePipelines");
  built->pipeline = {context, pipeline};

  std::size_t size = 0;
  check(vk.vkGetPipelineCacheData(context->handle(), cache.get(), &size, nullptr),
        "vkGetPipelineCacheData");
  driver_data.resize(size);
  check(vk.vkGetPipelineCacheData(context->handle(), cache.get(), &size, driver_data.data()),
        "vkGetPipelineCacheData");
  driver_data.resize(size);
  return built;
}

KernelStatistics statistics_of(const Context& context, const Pipeline& pipeline,
                               const SpirvInfo& needs) {
  KernelStatistics statistics;
  const VkPipeline handle = pipeline.pipeline.get();
  if (context.physical().statistics) statistics = read_statistics(context, handle);
  if (statistics.shared_memory_bytes == 0) {
    statistics.shared_memory_bytes = static_cast<std::uint32_t>(needs.shared_memory_bytes);
  }
  if (!pipeline.has_listing) return statistics;
  if (const auto listing = read_listing(context, handle)) {
    statistics.matrix_instructions = count_matrix_instructions(*listing);
  }
  return statistics;
}

/// Creates the kernel of a translation. `driver_data` is passed to build().
std::unique_ptr<VulkanKernel> make_kernel(const std::shared_ptr<Context>& context, std::string key,
                                          bool from_cache, Translation translation,
                                          std::vector<std::byte>& driver_data) {
  const PhysicalDevice& device = context->physical();
  const SpirvInfo needs = inspect(translation.spirv);
  check_resources(device, translation.source, needs);
  translation.source.text.clear();
  // Drivers compile again for a listing, which is not worth the time on devices that run kernels.
  const auto pipeline = build(context, translation, driver_data, device.compile_only);
  auto kernel =
      std::make_unique<VulkanKernel>(context, std::move(key), from_cache, std::move(translation),
                                     pipeline, statistics_of(*context, *pipeline, needs));
  // Lavapipe generates code at a kernel's first launch, even if the grid is empty.
  if (device.info.is_cpu()) VulkanStream(context).finish_compiling(*kernel);
  return kernel;
}

/// Reads a code object as a SPIR-V module. It is validated because drivers may crash on an invalid
/// one.
Spirv read_module(const KernelSource& source, std::span<const std::byte> code_object) {
  Spirv spirv(code_object.size() / sizeof(std::uint32_t));
  std::memcpy(spirv.data(), code_object.data(), spirv.size() * sizeof(std::uint32_t));
  if (code_object.size() % sizeof(std::uint32_t) != 0) refuse(source, "no SPIR-V module");
  if (auto valid = check_module(spirv); !valid) refuse(source, valid.failure().message);
  return spirv;
}

}  // namespace

Result<std::string> VulkanKernel::listing() const {
  return guarded(*context_, [&]() -> Result<std::string> {
    if (!context_->physical().statistics) return Kernel::listing();
    if (pipeline_->has_listing) return read_listing(*context_, pipeline_->pipeline.get());
    std::vector<std::byte> driver_data;
    const auto again = build(context_, translation_, driver_data, true);
    return read_listing(*context_, again->pipeline.get());
  });
}

void add_matrix_macro(const PhysicalDevice& device, KernelSource& source) {
  if (!device.matrix_macro.empty()) source.options.push_back("-D" + device.matrix_macro);
}

std::unique_ptr<VulkanKernel> compile(const std::shared_ptr<Context>& context, KernelCache& cache,
                                      KernelSource source) {
  const telemetry::Span span("device.compile");
  const PhysicalDevice& device = context->physical();
  add_matrix_macro(device, source);
  check_source(device.info, source);
  const std::string key =
      source.content_key(fmt::format("{}, {}", device.info.compiler, glsl_passes),
                         fmt::format("{}, {}", device.info.architecture, device.info.driver));

  std::optional<Binary> binary;
  if (const auto stored = cache.load(key)) binary = unpack(*stored);
  const bool from_cache = binary.has_value();
  telemetry::count(from_cache ? "device.cache_hits" : "device.cache_misses");
  if (!from_cache) {
    auto spirv = compile_glsl(source);
    if (!spirv) throw Refusal(spirv.failure());
    binary = Binary{std::move(spirv).value(), {}};
  }
  auto kernel =
      make_kernel(context, key, from_cache,
                  Translation{std::move(source), std::move(binary->spirv)}, binary->driver_data);
  if (!from_cache) cache.store(key, pack(kernel->spirv(), binary->driver_data));
  return kernel;
}

std::unique_ptr<VulkanKernel> load(const std::shared_ptr<Context>& context,
                                   const KernelSource& source,
                                   std::span<const std::byte> code_object) {
  KernelSource described = source;
  described.language = context->info().language;
  check_source(context->info(), described);
  Hash hash;
  hash.add({reinterpret_cast<const char*>(code_object.data()), code_object.size()});
  std::vector<std::byte> driver_data;
  return make_kernel(context, hash.hex(), false,
                     Translation{described, read_module(described, code_object)}, driver_data);
}

}  // namespace greta::device::vulkan
