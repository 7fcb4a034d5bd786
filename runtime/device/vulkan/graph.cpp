#include "runtime/device/vulkan/graph.hpp"

#include <fmt/format.h>

#include <utility>

namespace greta::device::vulkan {

namespace {

/// The stream into which a graph's work is recorded.
class GraphRecorder final : public Recorder {
 public:
  explicit GraphRecorder(const std::shared_ptr<Context>& context)
      : Recorder(context), commands_(std::make_shared<GraphCommands>(context)) {
    restart();
  }

  Result<void> record(Event&) override { return refuse("an event is recorded"); }
  Result<void> replay(const Graph&) override { return refuse("a graph is replayed"); }
  Result<void> wait(const Event&) override { return refuse("an event is waited for"); }
  Result<void> submit() override { return refuse("work is submitted"); }
  Result<void> synchronize(Deadline) override { return refuse("work is waited for"); }
  void discard() override {
    static_cast<void>(guarded(*context_, [&]() -> Result<void> {
      for (const VkCommandBuffer commands : commands_->all()) {
        check(context_->vk().vkResetCommandBuffer(commands, 0), "vkResetCommandBuffer");
      }
      commands_->release();
      restart();
      return {};
    }));
  }

  std::shared_ptr<const GraphCommands> finish() {
    end(commands_->all());
    return std::move(commands_);
  }

 protected:
  std::span<const VkCommandBuffer> begin() override { return commands_->all(); }
  void keep(std::shared_ptr<const void> object) override { commands_->keep(std::move(object)); }

 private:
  static Failure refuse(const char* what) {
    return {Status::invalid_argument,
            fmt::format("{} in a graph, which holds launches, copies and fills only", what),
            {}};
  }

  void restart() {
    start(commands_->alone(), 0);
    start(commands_->overlapping(), VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT);
  }

  std::shared_ptr<GraphCommands> commands_;
};

}  // namespace

GraphCommands::GraphCommands(const std::shared_ptr<Context>& context)
    : pool_(make_command_pool(context)) {
  for (VkCommandBuffer& commands : all_) commands = allocate_commands(*context, pool_);
}

std::unique_ptr<VulkanGraph> record_graph(const std::shared_ptr<Context>& context,
                                          const std::function<Result<void>(Stream&)>& record_work) {
  GraphRecorder recorder(context);
  if (auto done = record_work(recorder); !done) throw Refusal(done.failure());
  return std::make_unique<VulkanGraph>(context.get(), recorder.finish());
}

}  // namespace greta::device::vulkan
