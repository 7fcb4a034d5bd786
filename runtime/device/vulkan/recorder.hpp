#pragma once

#include <memory>
#include <span>

#include "runtime/device/vulkan/context.hpp"
#include "runtime/device/vulkan/kernel.hpp"

namespace greta::device::vulkan {

using CommandPool = Handle<VkCommandPool, &VolkDeviceTable::vkDestroyCommandPool>;

/// A pool whose command buffers are reset one by one. Throws Refusal.
CommandPool make_command_pool(const std::shared_ptr<Context>& context);
/// A primary command buffer that lives as long as its pool. Throws Refusal.
VkCommandBuffer allocate_commands(const Context& context, const CommandPool& pool);

/// What streams and graphs have in common: launches, copies and fills are recorded into command
/// buffers, and each waits for the one before it. What is submitted to the queue ends with a
/// barrier, so that a command buffer begins when everything before it is done.
class Recorder : public Stream {
 public:
  Result<void> launch(const Kernel& kernel, Grid grid, std::span<const std::byte> arguments) final;
  Result<void> copy(Buffer& to, std::size_t to_offset, const Buffer& from, std::size_t from_offset,
                    std::size_t bytes) final;
  Result<void> fill(Buffer& to, std::size_t offset, std::size_t bytes, std::uint32_t pattern) final;

 protected:
  explicit Recorder(std::shared_ptr<Context> context) : context_(std::move(context)) {}

  /// The command buffers that everything is recorded into alike, made ready if there are none.
  /// Throws Refusal.
  virtual std::span<const VkCommandBuffer> begin() = 0;
  /// Holds an object for as long as the command buffers may run.
  virtual void keep(std::shared_ptr<const void> object) = 0;

  void start(VkCommandBuffer commands, VkCommandBufferUsageFlags usage);
  /// What comes after what no barrier follows, which is a launch: where it is a launch, too,
  /// nothing else need be ordered.
  enum class Next { launch, anything };
  /// Orders everything that comes after everything before, if that was not done. Barriers cost
  /// microseconds on a GPU, so they are placed where no pair of events has them between it: after a
  /// transfer at once, after a launch when the next work comes, and after a timestamp.
  void order(std::span<const VkCommandBuffer> all, Next next = Next::anything);
  /// Orders all other work and the host after what was recorded, and ends the command buffers.
  /// `more`: others follow in the same submission, so that the host need not be thought of here.
  void end(std::span<const VkCommandBuffer> all, bool more = false);
  void dispatch(const Pipeline& pipeline, Grid grid, std::span<const std::byte> arguments);

  const std::shared_ptr<Context> context_;

 private:
  /// Makes the command buffers ready, and orders the command that comes next after everything
  /// before.
  std::span<const VkCommandBuffer> begin_command(Next next);

  const Pipeline* bound_ = nullptr;  ///< in the command buffer
  bool unordered_ = false;           ///< the command buffer ends with work that no barrier follows
};

}  // namespace greta::device::vulkan
