#pragma once

#include <memory>

#include "runtime/device/vulkan/context.hpp"
#include "runtime/device/vulkan/kernel.hpp"

namespace greta::vulkan {

using CommandPool = Handle<VkCommandPool, &VolkDeviceTable::vkDestroyCommandPool>;

/// A pool whose command buffers are reset one by one. Throws Refusal.
CommandPool make_command_pool(const std::shared_ptr<Context>& context);
/// A command buffer that lives as long as its pool. Throws Refusal.
VkCommandBuffer allocate_commands(const Context& context, const CommandPool& pool,
                                  VkCommandBufferLevel level);

/// Waits in a command buffer, from all work before it on.
void barrier(const Context& context, VkCommandBuffer commands, VkPipelineStageFlags2 to_stages,
             VkAccessFlags2 to_access);

/// What streams and graphs have in common: launches, copies and fills are recorded into a command
/// buffer, and each waits for the one before it.
class Recorder : public Stream {
 public:
  Result<void> launch(const Kernel& kernel, Grid grid, std::span<const std::byte> arguments) final;
  Result<void> copy(Buffer& to, std::size_t to_offset, const Buffer& from, std::size_t from_offset,
                    std::size_t bytes) final;
  Result<void> fill(Buffer& to, std::size_t offset, std::size_t bytes, std::uint32_t pattern) final;

 protected:
  explicit Recorder(std::shared_ptr<Context> context) : context_(std::move(context)) {}

  /// The command buffer, made ready if there is none. Throws Refusal.
  virtual VkCommandBuffer begin() = 0;
  /// Holds an object for as long as the command buffer may run.
  virtual void keep(std::shared_ptr<const void> object) = 0;

  /// Begins a command buffer. `ordered`: what runs before it is done when it starts.
  void start(VkCommandBuffer commands, const VkCommandBufferBeginInfo& info, bool ordered);
  /// Makes the command buffer ready, and orders the command that comes next after everything
  /// before. Barriers cost microseconds on a GPU, so they are placed where no pair of events has
  /// them between it: after a transfer at once, after a launch when the next work comes, and after
  /// a timestamp.
  VkCommandBuffer begin_command();
  /// Orders everything that comes after everything before, if that was not done.
  void order(VkCommandBuffer commands);
  void dispatch(const Pipeline& pipeline, Grid grid, std::span<const std::byte> arguments);
  /// Runs recorded work here.
  void execute(VkCommandBuffer secondary);

  const std::shared_ptr<Context> context_;

 private:
  const Pipeline* bound_ = nullptr;  ///< in the command buffer
  bool unordered_ = false;           ///< the command buffer ends with work that no barrier follows
};

}  // namespace greta::vulkan
