// Any GPU through Vulkan 1.3. Arguments are push constants; buffers are passed as addresses.
#include <vulkan/vulkan.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>

#include "gpu.hpp"

// Definitions of the Vulkan registry that headers before 1.3.255 and 1.4.311 lack.
#ifndef VK_KHR_cooperative_matrix
#define VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME "VK_KHR_cooperative_matrix"
constexpr auto VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR =
    static_cast<VkStructureType>(1000506000);
struct VkPhysicalDeviceCooperativeMatrixFeaturesKHR {
  VkStructureType sType;
  void* pNext;
  VkBool32 cooperativeMatrix, cooperativeMatrixRobustBufferAccess;
};
#endif
#ifndef VK_KHR_shader_bfloat16
#define VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME "VK_KHR_shader_bfloat16"
constexpr auto VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR =
    static_cast<VkStructureType>(1000141000);
struct VkPhysicalDeviceShaderBfloat16FeaturesKHR {
  VkStructureType sType;
  void* pNext;
  VkBool32 shaderBFloat16Type, shaderBFloat16DotProduct, shaderBFloat16CooperativeMatrix;
};
#endif

namespace {

void check(VkResult result, const char* call) {
  if (result == VK_SUCCESS) return;
  const std::string name(call, std::min(std::strlen(call), std::strcspn(call, "(")));
  throw std::runtime_error(name + ": error " + std::to_string(result));
}
#define CHECK(call) check(call, #call)

/// The features that kernels may use, as far as the device has them.
struct Features {
#if defined(KERNEL_USES_KHR_MATRICES)
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR, nullptr, VK_TRUE,
      VK_FALSE};
#if defined(KERNEL_USES_BF16_MATRICES)
  VkPhysicalDeviceShaderBfloat16FeaturesKHR bf16{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR, nullptr, VK_TRUE, VK_FALSE,
      VK_TRUE};
#endif
#elif defined(KERNEL_USES_NV_MATRICES)
  VkPhysicalDeviceCooperativeMatrixFeaturesNV matrices{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_NV, nullptr, VK_TRUE, VK_FALSE};
#endif
  VkPhysicalDeviceVulkan13Features v13{.sType =
                                           VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
  VkPhysicalDeviceVulkan12Features v12{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .pNext = &v13};
  VkPhysicalDeviceVulkan11Features v11{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, .pNext = &v12};
  VkPhysicalDeviceFeatures2 core{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                 .pNext = &v11};

  explicit Features(VkPhysicalDevice device) {
    vkGetPhysicalDeviceFeatures2(device, &core);
    core.features.robustBufferAccess = VK_FALSE;
    if (v12.bufferDeviceAddress == VK_FALSE || v12.scalarBlockLayout == VK_FALSE) {
      throw std::runtime_error("the device lacks bufferDeviceAddress or scalarBlockLayout");
    }
#if defined(KERNEL_USES_BF16_MATRICES)
    matrices.pNext = &bf16;
#endif
#if defined(KERNEL_USES_KHR_MATRICES) || defined(KERNEL_USES_NV_MATRICES)
    v13.pNext = &matrices;
#endif
  }
  Features(const Features&) = delete;
  Features& operator=(const Features&) = delete;

  static std::vector<const char*> extensions() {
#if defined(KERNEL_USES_BF16_MATRICES)
    return {VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME, VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME};
#elif defined(KERNEL_USES_KHR_MATRICES)
    return {VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME};
#elif defined(KERNEL_USES_NV_MATRICES)
    return {VK_NV_COOPERATIVE_MATRIX_EXTENSION_NAME};
#else
    return {};
#endif
  }
};

struct Memory {
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceMemory memory = VK_NULL_HANDLE;
};

struct Kernel {
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkPipeline pipeline = VK_NULL_HANDLE;
};

class VulkanGpu final : public Gpu {
 public:
  explicit VulkanGpu(int index) {
    create_instance();
    choose_device(index);
    create_device();
  }
  ~VulkanGpu() override {
    for (const Kernel& kernel : kernels_) {
      vkDestroyPipeline(device_, kernel.pipeline, nullptr);
      vkDestroyPipelineLayout(device_, kernel.layout, nullptr);
    }
    for (const auto& [address, memory] : memory_) free(memory);
    vkDestroyQueryPool(device_, queries_, nullptr);
    vkDestroyCommandPool(device_, pool_, nullptr);
    vkDestroyDevice(device_, nullptr);
    vkDestroyInstance(instance_, nullptr);
  }

  std::string name() const override { return properties_.deviceName; }

  std::uint64_t allocate(std::size_t bytes) override {
    const Memory memory = create_buffer(bytes, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    const VkBufferDeviceAddressInfo info{VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, nullptr,
                                         memory.buffer};
    const std::uint64_t address = vkGetBufferDeviceAddress(device_, &info);
    memory_.emplace(address, memory);
    return address;
  }

  void upload(std::uint64_t to, const std::vector<std::byte>& from) override {
    const Memory staging = create_buffer(from.size(), host_memory);
    void* mapped = nullptr;
    CHECK(vkMapMemory(device_, staging.memory, 0, VK_WHOLE_SIZE, 0, &mapped));
    std::memcpy(mapped, from.data(), from.size());
    copy(staging.buffer, memory_.at(to).buffer, from.size());
    free(staging);
  }

  void download(std::vector<std::byte>& to, std::uint64_t from) override {
    const Memory staging = create_buffer(to.size(), host_memory);
    copy(memory_.at(from).buffer, staging.buffer, to.size());
    void* mapped = nullptr;
    CHECK(vkMapMemory(device_, staging.memory, 0, VK_WHOLE_SIZE, 0, &mapped));
    std::memcpy(to.data(), mapped, to.size());
    free(staging);
  }

  std::size_t load(const std::vector<std::byte>& binary, const std::string& entry,
                   std::array<std::uint32_t, 3> block, std::uint32_t, std::uint32_t subgroup_size,
                   std::size_t argument_bytes) override {
    Kernel kernel;
    const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                    static_cast<std::uint32_t>((argument_bytes + 3) / 4 * 4)};
    const VkPipelineLayoutCreateInfo layout{
        VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, nullptr, 0, 0, nullptr, 1, &range};
    CHECK(vkCreatePipelineLayout(device_, &layout, nullptr, &kernel.layout));

    std::vector<std::uint32_t> words(binary.size() / 4);
    std::memcpy(words.data(), binary.data(), words.size() * 4);
    const VkShaderModuleCreateInfo module_info{VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, nullptr,
                                               0, words.size() * 4, words.data()};
    VkShaderModule module = VK_NULL_HANDLE;
    CHECK(vkCreateShaderModule(device_, &module_info, nullptr, &module));
    const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo required{
        VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO, nullptr,
        subgroup_size};
    VkComputePipelineCreateInfo create{.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
    create.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    create.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    create.stage.module = module;
    create.stage.pName = entry.c_str();
    create.layout = kernel.layout;
    if (subgroup_size != 0) {
      create.stage.pNext = &required;
      // Vulkan allows this only where the first dimension is a multiple of the subgroup size.
      if (full_subgroups_ && block[0] % subgroup_size == 0) {
        create.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
      }
    }
    CHECK(vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &create, nullptr, &kernel.pipeline));
    vkDestroyShaderModule(device_, module, nullptr);
    kernels_.push_back(kernel);
    return kernels_.size() - 1;
  }

  double run(const std::vector<ReadyLaunch>& launches, std::size_t flush_bytes) override {
    if (flush_bytes != 0 && flushed_ == 0) flushed_ = allocate(flush_bytes);
    submit([&](VkCommandBuffer commands) {
      vkCmdResetQueryPool(commands, queries_, 0, 2);
      if (flush_bytes != 0) {
        vkCmdFillBuffer(commands, memory_.at(flushed_).buffer, 0, flush_bytes, 1);
        barrier(commands);
      }
      vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, 0);
      for (const ReadyLaunch& launch : launches) {
        const Kernel& kernel = kernels_[launch.kernel];
        vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel.pipeline);
        vkCmdPushConstants(commands, kernel.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                           static_cast<std::uint32_t>(launch.arguments.size()),
                           launch.arguments.data());
        vkCmdDispatch(commands, launch.grid[0], launch.grid[1], launch.grid[2]);
        barrier(commands);
      }
      vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, 1);
    });
    std::array<std::uint64_t, 2> ticks{};
    CHECK(vkGetQueryPoolResults(device_, queries_, 0, 2, sizeof ticks, ticks.data(),
                                sizeof ticks[0], VK_QUERY_RESULT_64_BIT));
    return static_cast<double>(ticks[1] - ticks[0]) * properties_.limits.timestampPeriod * 1e-3;
  }

 private:
  static constexpr VkMemoryPropertyFlags host_memory =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

  void create_instance() {
    VkApplicationInfo application{.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO};
    application.apiVersion = VK_API_VERSION_1_3;
    VkInstanceCreateInfo create{.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    create.pApplicationInfo = &application;
    CHECK(vkCreateInstance(&create, nullptr, &instance_));
  }

  void choose_device(int index) {
    std::uint32_t count = 0;
    CHECK(vkEnumeratePhysicalDevices(instance_, &count, nullptr));
    std::vector<VkPhysicalDevice> devices(count);
    CHECK(vkEnumeratePhysicalDevices(instance_, &count, devices.data()));
    if (index < 0 || static_cast<std::uint32_t>(index) >= count) {
      throw std::runtime_error("there are " + std::to_string(count) + " Vulkan devices");
    }
    physical_ = devices[static_cast<std::size_t>(index)];
    vkGetPhysicalDeviceProperties(physical_, &properties_);
    vkGetPhysicalDeviceMemoryProperties(physical_, &memory_kinds_);
  }

  void create_device() {
    std::uint32_t count = 0;
    vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, nullptr);
    std::vector<VkQueueFamilyProperties> families(count);
    vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, families.data());
    const auto family = std::find_if(families.begin(), families.end(), [](const auto& one) {
      return (one.queueFlags & VK_QUEUE_COMPUTE_BIT) != 0 && one.timestampValidBits != 0;
    });
    if (family == families.end()) throw std::runtime_error("no compute queue with timestamps");
    const auto number = static_cast<std::uint32_t>(family - families.begin());

    const Features features(physical_);
    full_subgroups_ = features.v13.computeFullSubgroups != VK_FALSE;
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue{
        VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, nullptr, 0, number, 1, &priority};
    const auto extensions = Features::extensions();
    VkDeviceCreateInfo create{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                              .pNext = &features.core};
    create.queueCreateInfoCount = 1;
    create.pQueueCreateInfos = &queue;
    create.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
    create.ppEnabledExtensionNames = extensions.data();
    CHECK(vkCreateDevice(physical_, &create, nullptr, &device_));
    vkGetDeviceQueue(device_, number, 0, &queue_);
    const VkCommandPoolCreateInfo pool{VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, nullptr, 0,
                                       number};
    CHECK(vkCreateCommandPool(device_, &pool, nullptr, &pool_));
    VkQueryPoolCreateInfo queries{.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
    queries.queryType = VK_QUERY_TYPE_TIMESTAMP;
    queries.queryCount = 2;
    CHECK(vkCreateQueryPool(device_, &queries, nullptr, &queries_));
  }

  std::uint32_t memory_kind(std::uint32_t allowed, VkMemoryPropertyFlags wanted) const {
    for (std::uint32_t i = 0; i < memory_kinds_.memoryTypeCount; ++i) {
      const bool has = (memory_kinds_.memoryTypes[i].propertyFlags & wanted) == wanted;
      if (has && (allowed >> i & 1U) != 0) return i;
    }
    throw std::runtime_error("no suitable kind of memory");
  }

  Memory create_buffer(std::size_t bytes, VkMemoryPropertyFlags wanted) {
    Memory made;
    VkBufferCreateInfo create{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO};
    create.size = (bytes + 3) / 4 * 4;
    create.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
                   VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    CHECK(vkCreateBuffer(device_, &create, nullptr, &made.buffer));
    VkMemoryRequirements needs{};
    vkGetBufferMemoryRequirements(device_, made.buffer, &needs);
    const VkMemoryAllocateFlagsInfo flags{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO, nullptr,
                                          VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT, 0};
    const VkMemoryAllocateInfo allocate{VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, &flags, needs.size,
                                        memory_kind(needs.memoryTypeBits, wanted)};
    CHECK(vkAllocateMemory(device_, &allocate, nullptr, &made.memory));
    CHECK(vkBindBufferMemory(device_, made.buffer, made.memory, 0));
    return made;
  }

  void free(const Memory& memory) {
    vkDestroyBuffer(device_, memory.buffer, nullptr);
    vkFreeMemory(device_, memory.memory, nullptr);
  }

  static void barrier(VkCommandBuffer commands) {
    const VkMemoryBarrier all{VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, VK_ACCESS_MEMORY_WRITE_BIT,
                              VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                         VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 1, &all, 0, nullptr, 0, nullptr);
  }

  /// Records commands, runs them and waits.
  template <typename Record>
  void submit(const Record& record) {
    VkCommandBufferAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO};
    allocate.commandPool = pool_;
    allocate.commandBufferCount = 1;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    CHECK(vkAllocateCommandBuffers(device_, &allocate, &commands));
    const VkCommandBufferBeginInfo begin{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    CHECK(vkBeginCommandBuffer(commands, &begin));
    record(commands);
    CHECK(vkEndCommandBuffer(commands));
    VkSubmitInfo info{.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO};
    info.commandBufferCount = 1;
    info.pCommandBuffers = &commands;
    CHECK(vkQueueSubmit(queue_, 1, &info, VK_NULL_HANDLE));
    CHECK(vkQueueWaitIdle(queue_));
    vkFreeCommandBuffers(device_, pool_, 1, &commands);
  }

  void copy(VkBuffer from, VkBuffer to, std::size_t bytes) {
    submit([&](VkCommandBuffer commands) {
      const VkBufferCopy region{0, 0, bytes};
      vkCmdCopyBuffer(commands, from, to, 1, &region);
      barrier(commands);
    });
  }

  VkInstance instance_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkPhysicalDeviceProperties properties_{};
  VkPhysicalDeviceMemoryProperties memory_kinds_{};
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkQueryPool queries_ = VK_NULL_HANDLE;
  bool full_subgroups_ = false;
  std::map<std::uint64_t, Memory> memory_;  ///< by address
  std::vector<Kernel> kernels_;
  std::uint64_t flushed_ = 0;
};

}  // namespace

std::unique_ptr<Gpu> open_gpu(int index) {
  return std::make_unique<VulkanGpu>(index);
}
