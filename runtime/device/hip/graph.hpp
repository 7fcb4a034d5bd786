#pragma once

#include <functional>
#include <memory>

#include "runtime/device/hip/recorder.hpp"

namespace greta::device::hip {

class HipGraph final : public Graph {
 public:
  /// `handle` is nullptr for an empty graph.
  HipGraph(std::shared_ptr<const Context> context, std::shared_ptr<const GraphHandle> handle)
      : context_(std::move(context)), handle_(std::move(handle)) {}

  const Context* context() const { return context_.get(); }
  const std::shared_ptr<const GraphHandle>& handle() const { return handle_; }

 private:
  std::shared_ptr<const Context> context_;
  std::shared_ptr<const GraphHandle> handle_;
};

/// Creates a graph of the work that `record_work` records. Throws Refusal, also if `record_work`
/// fails.
std::unique_ptr<HipGraph> record_graph(const std::shared_ptr<Context>& context,
                                       const std::function<Result<void>(Stream&)>& record_work);

}  // namespace greta::device::hip
