#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/device/vulkan/recorder.hpp"

namespace greta::device::vulkan {

/// A graph's work, recorded in two primary command buffers that are submitted unchanged. The first
/// must not be in flight twice, which some drivers run with less overhead; the second may be.
/// Streams hold this object while a replay is in flight.
class GraphCommands {
 public:
  explicit GraphCommands(const std::shared_ptr<Context>& context);

  std::span<const VkCommandBuffer> all() const { return all_; }
  /// The command buffer to submit while no replay of the graph is in flight, and the one to submit
  /// otherwise.
  VkCommandBuffer alone() const { return all_[0]; }
  VkCommandBuffer overlapping() const { return all_[1]; }
  /// Keeps an object alive as long as the command buffers exist.
  void keep(std::shared_ptr<const void> object) { kept_.push_back(std::move(object)); }
  void release() { kept_.clear(); }

 private:
  std::vector<std::shared_ptr<const void>> kept_;
  CommandPool pool_;
  std::array<VkCommandBuffer, 2> all_{};
};

class VulkanGraph final : public Graph {
 public:
  VulkanGraph(const Context* context, std::shared_ptr<const GraphCommands> commands)
      : context_(context), commands_(std::move(commands)) {}

  const Context* context() const { return context_; }
  const std::shared_ptr<const GraphCommands>& commands() const { return commands_; }
  /// Returns the command buffer that a stream submits next. Any other owner of the commands is a
  /// replay in flight.
  VkCommandBuffer next() const {
    return commands_.use_count() == 1 ? commands_->alone() : commands_->overlapping();
  }

 private:
  const Context* context_;  ///< for comparison only; commands_ keeps it alive
  std::shared_ptr<const GraphCommands> commands_;
};

/// Creates a graph of the work that `record_work` records. Throws Refusal, also if `record_work`
/// fails.
std::unique_ptr<VulkanGraph> record_graph(const std::shared_ptr<Context>& context,
                                          const std::function<Result<void>(Stream&)>& record_work);

}  // namespace greta::device::vulkan
