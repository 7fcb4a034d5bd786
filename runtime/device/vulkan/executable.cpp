#include "runtime/device/vulkan/executable.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace greta::device::vulkan {

namespace {

using Statistic = VkPipelineExecutableStatisticKHR;
using Representation = VkPipelineExecutableInternalRepresentationKHR;

VkPipelineExecutableInfoKHR only_executable(VkPipeline pipeline) {
  return {.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, .pipeline = pipeline};
}

double number(const Statistic& statistic) {
  switch (statistic.format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
      return static_cast<double>(statistic.value.i64);
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
      return static_cast<double>(statistic.value.u64);
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR:
      return statistic.value.f64;
    default:
      return 0;
  }
}

/// Returns the first statistic whose name starts with one of `names`, which differ between drivers,
/// or 0 if there is none.
double find(const std::vector<Statistic>& statistics,
            std::initializer_list<std::string_view> names) {
  for (const auto& statistic : statistics) {
    const std::string_view name = statistic.name;
    const bool wanted = std::any_of(names.begin(), names.end(), [name](std::string_view start) {
      return name.starts_with(start);
    });
    if (wanted) return number(statistic);
  }
  return 0;
}

}  // namespace

KernelStatistics read_statistics(const Context& context, VkPipeline pipeline) {
  const auto which = only_executable(pipeline);
  const auto read = context.vk().vkGetPipelineExecutableStatisticsKHR;
  constexpr auto call = "vkGetPipelineExecutableStatisticsKHR";
  std::uint32_t count = 0;
  check(read(context.handle(), &which, &count, nullptr), call);
  std::vector<Statistic> all(count, {.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR});
  check(read(context.handle(), &which, &count, all.data()), call);

  const auto whole = [&](std::initializer_list<std::string_view> names) {
    return static_cast<std::uint32_t>(std::max(0.0, find(all, names)));
  };
  // The names are those of RADV, then of NVIDIA, then of Mesa's driver for Intel.
  KernelStatistics result;
  result.registers = whole({"VGPRs", "Register Count", "Max live registers"});
  result.scalar_registers = whole({"SGPRs"});
  result.spilled_registers = whole({"Spilled VGPRs", "Spill Count"});
  result.spilled_scalar_registers = whole({"Spilled SGPRs"});
  result.shared_memory_bytes = whole({"LDS size", "Shared Memory", "Workgroup Memory Size"});
  result.scratch_bytes = whole({"Scratch size", "Local Memory Size", "Scratch Memory Size"});
  result.code_bytes = whole({"Code size", "Binary Size"});
  result.subgroups_per_simd = whole({"Subgroups per SIMD"});
  result.latency = find(all, {"Latency", "Cycle Count"});
  result.inverse_throughput = find(all, {"Inverse Throughput"});
  return result;
}

Result<std::string> read_listing(const Context& context, VkPipeline pipeline) {
  const auto which = only_executable(pipeline);
  const auto read = context.vk().vkGetPipelineExecutableInternalRepresentationsKHR;
  constexpr auto call = "vkGetPipelineExecutableInternalRepresentationsKHR";
  std::uint32_t count = 0;
  check(read(context.handle(), &which, &count, nullptr), call);
  std::vector<Representation> all(
      count, {.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR});
  check(read(context.handle(), &which, &count, all.data()), call);
  // Drivers list the representations in the order of compilation; the machine code comes last.
  const auto last = std::find_if(all.rbegin(), all.rend(), [](const Representation& form) {
    return form.isText != VK_FALSE && form.dataSize > 1;
  });
  if (last == all.rend()) {
    return Failure{
        Status::unavailable, "the driver gives no listing of the kernel's machine code", {}};
  }
  std::vector<std::string> texts;
  for (auto& form : all) {
    texts.emplace_back(form.dataSize, '\0');
    form.pData = texts.back().data();
  }
  check(read(context.handle(), &which, &count, all.data()), call);
  std::string text = std::move(texts[static_cast<std::size_t>(all.rend() - last) - 1]);
  return text.substr(0, text.find('\0'));
}

}  // namespace greta::device::vulkan
