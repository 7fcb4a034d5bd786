#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/device/vulkan/event.hpp"
#include "runtime/device/vulkan/recorder.hpp"

namespace greta::device::vulkan {

/// Records command buffers and submits them to the device's queue. Each submission signals the
/// stream's timeline.
class VulkanStream final : public Recorder {
 public:
  explicit VulkanStream(std::shared_ptr<Context> context);
  ~VulkanStream() override;
  VulkanStream(const VulkanStream&) = delete;
  VulkanStream& operator=(const VulkanStream&) = delete;

  Result<void> record(Event& event) override;
  Result<void> replay(const Graph& graph) override;
  Result<void> wait(const Event& event) override;
  Result<void> submit() override;
  Result<void> synchronize(Deadline deadline) override;
  void discard() override;

  /// One pass of a performance query.
  struct CountedPass {
    VkQueryPool pool = VK_NULL_HANDLE;  ///< its first query is used
    std::uint32_t index = 0;            ///< of the pass
  };
  /// Runs work that `record` records in one submission, counts it, and waits. Fails like the
  /// stream's other calls, and with `invalid_argument` for work of several submissions or graphs.
  Result<void> count(const CountedPass& pass, const std::function<Result<void>(Stream&)>& record,
                     Deadline deadline);

  /// Launches a kernel with an empty grid and waits. Throws Refusal.
  void finish_compiling(const VulkanKernel& kernel);

 protected:
  std::span<const VkCommandBuffer> begin() override;
  void keep(std::shared_ptr<const void> object) override;

 private:
  class Counting;

  /// One submission and everything it needs while in flight.
  struct Batch {
    std::vector<VkCommandBufferSubmitInfo> commands;  ///< own buffers and graphs', in order
    std::vector<VkCommandBuffer> own;                 ///< the stream's own buffers
    std::uint64_t value = 0;                          ///< timeline value when it has finished
    std::vector<std::shared_ptr<const void>> keep;
    std::vector<std::shared_ptr<Recording>> events;
    std::vector<std::pair<std::shared_ptr<Timeline>, std::uint64_t>> waits;
  };

  /// Returns the batch that is being recorded, and begins one if there is none. Throws Refusal.
  Batch& open();
  void append(VkCommandBuffer commands);
  /// Ends the command buffer that is being recorded. For `more`, see end().
  void close(bool more);
  void submit_batch();
  void finish(Deadline deadline);
  void recycle();
  /// Releases everything that a batch needed. Its command buffers can be recorded again.
  void reuse(Batch batch);

  CommandPool pool_;
  std::shared_ptr<Timeline> timeline_;
  std::optional<Batch> open_;
  VkCommandBuffer recorded_ = VK_NULL_HANDLE;  ///< open batch's buffer for the next command
  const CountedPass* counted_ = nullptr;       ///< what the open batch is counted with
  std::deque<Batch> in_flight_;
  std::vector<Batch> spare_;  ///< empty batches, kept to reuse their memory
  std::vector<VkCommandBuffer> idle_;
};

}  // namespace greta::device::vulkan
