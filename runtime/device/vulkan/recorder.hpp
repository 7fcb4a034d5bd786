#pragma once

#include <memory>
#include <span>

#include "runtime/device/vulkan/context.hpp"
#include "runtime/device/vulkan/kernel.hpp"

namespace greta::device::vulkan {

using CommandPool = Handle<VkCommandPool, &VolkDeviceTable::vkDestroyCommandPool>;

/// Creates a pool whose command buffers can be reset individually. Throws Refusal.
CommandPool make_command_pool(const std::shared_ptr<Context>& context);
/// Allocates a primary command buffer that lives as long as its pool. Throws Refusal.
VkCommandBuffer allocate_commands(const Context& context, const CommandPool& pool);

/// The common part of streams and graphs. Launches, copies and fills are recorded into command
/// buffers, and each command waits for the one before it. Everything that is submitted to the queue
/// ends with a barrier, so a command buffer begins when all earlier work has finished.
class Recorder : public Stream {
 public:
  Result<void> launch(const Kernel& kernel, Grid grid, std::span<const std::byte> arguments,
                      LaunchOrder order) final;
  Result<void> copy(Buffer& to, std::size_t to_offset, const Buffer& from, std::size_t from_offset,
                    std::size_t bytes) final;
  Result<void> fill(Buffer& to, std::size_t offset, std::size_t bytes, std::uint32_t pattern) final;

 protected:
  explicit Recorder(std::shared_ptr<Context> context) : context_(std::move(context)) {}

  /// Returns the command buffers that each command is recorded into, and begins them if there are
  /// none. Throws Refusal.
  virtual std::span<const VkCommandBuffer> begin() = 0;
  /// Keeps an object alive as long as the command buffers may run.
  virtual void keep(std::shared_ptr<const void> object) = 0;

  void start(VkCommandBuffer commands, VkCommandBufferUsageFlags usage);
  /// The kind of command that follows a launch with no barrier after it. If it is also a launch,
  /// the barrier need only order launches.
  enum class Next { launch, anything };
  /// Orders all later work after all earlier work, if that has not been done. Barriers cost
  /// microseconds on a GPU, so they are placed where no pair of events encloses one: immediately
  /// after a transfer, before the next command after a launch, and after a timestamp.
  void order(std::span<const VkCommandBuffer> all, Next next = Next::anything);
  /// Orders all later work and the host after the recorded work, and ends the command buffers. With
  /// `more`, other command buffers follow in the same submission, so the host is not included. A
  /// query that the command buffers began ends as their last command.
  void end(std::span<const VkCommandBuffer> all, bool more = false,
           VkQueryPool query = VK_NULL_HANDLE);
  void dispatch(const Pipeline& pipeline, Grid grid, std::span<const std::byte> arguments);

  const std::shared_ptr<Context> context_;

 private:
  /// Begins the command buffers if necessary, and orders the next command after everything before
  /// it.
  std::span<const VkCommandBuffer> begin_command(Next next);

  const Pipeline* bound_ = nullptr;  ///< pipeline bound in the command buffer
  bool unordered_ = false;  ///< whether the command buffer ends with work that no barrier follows
};

}  // namespace greta::device::vulkan
