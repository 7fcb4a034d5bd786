#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/device/vulkan/recorder.hpp"

namespace greta::vulkan {

/// A secondary command buffer that any number of streams may run, several times over while earlier
/// runs are in flight. Streams hold it while they do.
class GraphCommands {
 public:
  explicit GraphCommands(const std::shared_ptr<Context>& context);

  VkCommandBuffer handle() const { return commands_; }
  /// Holds an object for as long as the commands exist.
  void keep(std::shared_ptr<const void> object) { kept_.push_back(std::move(object)); }
  void release() { kept_.clear(); }

 private:
  std::vector<std::shared_ptr<const void>> kept_;
  CommandPool pool_;
  VkCommandBuffer commands_;
};

class VulkanGraph final : public Graph {
 public:
  VulkanGraph(const Context* context, std::shared_ptr<const GraphCommands> commands)
      : context_(context), commands_(std::move(commands)) {}

  const Context* context() const { return context_; }
  const std::shared_ptr<const GraphCommands>& commands() const { return commands_; }

 private:
  const Context* context_;  ///< for comparison only; commands_ keeps it alive
  std::shared_ptr<const GraphCommands> commands_;
};

/// Makes a graph of what `record_work` records. Throws Refusal, also with its failure.
std::unique_ptr<VulkanGraph> record_graph(const std::shared_ptr<Context>& context,
                                          const std::function<Result<void>(Stream&)>& record_work);

}  // namespace greta::vulkan
