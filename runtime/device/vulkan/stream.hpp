#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/device/vulkan/context.hpp"
#include "runtime/device/vulkan/event.hpp"
#include "runtime/device/vulkan/kernel.hpp"

namespace greta::vulkan {

/// Records command buffers and submits them to the device's queue. Each command waits for the one
/// before it; each submission signals the stream's timeline.
class VulkanStream final : public Stream {
 public:
  explicit VulkanStream(std::shared_ptr<Context> context);
  ~VulkanStream() override;
  VulkanStream(const VulkanStream&) = delete;
  VulkanStream& operator=(const VulkanStream&) = delete;

  Result<void> launch(const Kernel& kernel, Grid grid,
                      std::span<const std::byte> arguments) override;
  Result<void> copy(Buffer& to, std::size_t to_offset, const Buffer& from, std::size_t from_offset,
                    std::size_t bytes) override;
  Result<void> fill(Buffer& to, std::size_t offset, std::size_t bytes,
                    std::uint32_t pattern) override;
  Result<void> record(Event& event) override;
  Result<void> wait(const Event& event) override;
  Result<void> submit() override;
  Result<void> synchronize(Deadline deadline) override;
  void discard() override;

  /// Launches a kernel over an empty grid and waits. Throws Refusal.
  void finish_compiling(const VulkanKernel& kernel);

 private:
  /// One command buffer and what it needs while in flight.
  struct Batch {
    /// Lets go of everything but the command buffer.
    void release();

    VkCommandBuffer commands = VK_NULL_HANDLE;
    std::uint64_t value = 0;  ///< of the timeline when it is done
    std::vector<std::shared_ptr<const void>> keep;
    std::vector<std::shared_ptr<Recording>> events;
    std::vector<std::pair<std::shared_ptr<Timeline>, std::uint64_t>> waits;
  };

  Batch& begin();
  /// Begins a batch if there is none, and orders the command that comes after everything before.
  VkCommandBuffer begin_command();
  /// Orders everything that comes after everything before.
  void order();
  void dispatch(const Pipeline& pipeline, Grid grid, std::span<const std::byte> arguments);
  void submit_batch();
  void finish(Deadline deadline);
  void recycle();

  std::shared_ptr<Context> context_;
  Handle<VkCommandPool, &VolkDeviceTable::vkDestroyCommandPool> pool_;
  std::shared_ptr<Timeline> timeline_;
  std::optional<Batch> open_;
  const Pipeline* bound_ = nullptr;  ///< in the open batch
  bool unordered_ = false;           ///< the open batch ends with work that no barrier follows
  std::deque<Batch> in_flight_;
  std::vector<Batch> idle_;
};

}  // namespace greta::vulkan
