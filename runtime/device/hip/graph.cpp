#include "runtime/device/hip/graph.hpp"

#include <fmt/format.h>

#include <utility>

#include "runtime/device/hip/stream.hpp"

namespace greta::device::hip {

namespace {

/// The stream into which a graph's work is recorded.
class GraphRecorder final : public Recorder {
 public:
  explicit GraphRecorder(const std::shared_ptr<Context>& context) : Recorder(context) {}

  Result<void> record(Event&) override { return refuse("an event is recorded"); }
  Result<void> replay(const Graph&) override { return refuse("a graph is replayed"); }
  Result<void> wait(const Event&) override { return refuse("an event is waited for"); }
  Result<void> submit() override { return refuse("work is submitted"); }
  Result<void> synchronize(Deadline) override { return refuse("work is waited for"); }

  /// Returns the work as an executable graph, or nullptr if there is none.
  std::shared_ptr<const GraphHandle> finish() {
    if (commands_.list.empty()) return nullptr;
    const Functions& hip = context_->functions();
    const hipGraph_t graph = capture();
    hipGraphExec_t executable = nullptr;
    const hipError_t error = hip.hipGraphInstantiateWithFlags(&executable, graph, 0);
    static_cast<void>(hip.hipGraphDestroy(graph));
    context_->check(error, "hipGraphInstantiateWithFlags");
    return std::make_shared<const GraphHandle>(context_, executable);
  }

 private:
  static Failure refuse(const char* what) {
    return {Status::invalid_argument,
            fmt::format("{} in a graph, which holds launches, copies and fills only", what),
            {}};
  }

  hipGraph_t capture() {
    const Functions& hip = context_->functions();
    const StreamHandle stream = make_stream(context_);
    context_->check(hip.hipStreamBeginCapture(stream.get(), hipStreamCaptureModeRelaxed),
                    "hipStreamBeginCapture");
    hipGraph_t graph = nullptr;
    try {
      for (std::size_t i = 0; i < commands_.list.size(); ++i) {
        commands_.issue(*context_, i, stream.get());
      }
    } catch (const Refusal&) {
      if (hip.hipStreamEndCapture(stream.get(), &graph) == hipSuccess) {
        static_cast<void>(hip.hipGraphDestroy(graph));
      }
      throw;
    }
    context_->check(hip.hipStreamEndCapture(stream.get(), &graph), "hipStreamEndCapture");
    return graph;
  }
};

}  // namespace

std::unique_ptr<HipGraph> record_graph(const std::shared_ptr<Context>& context,
                                       const std::function<Result<void>(Stream&)>& record_work) {
  GraphRecorder recorder(context);
  if (auto done = record_work(recorder); !done) throw Refusal(done.failure());
  context->enter();
  return std::make_unique<HipGraph>(context, recorder.finish());
}

}  // namespace greta::device::hip
