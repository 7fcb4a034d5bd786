#include "runtime/pipeline/compute/queue.hpp"

#include <fmt/format.h>

#include <atomic>
#include <utility>

#include "runtime/pipeline/compute/pipeline.hpp"

namespace greta::runtime {
namespace {

std::uint64_t next_batch() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

Queue::Queue(Runtime& runtime, std::unique_ptr<Stream> stream, bool foreign)
    : Operations(runtime.rounded_weights()),
      runtime_(runtime),
      stream_(std::move(stream)),
      foreign_(foreign),
      batch_(next_batch()) {}

// The stream waits for its work, so memory in flight is released after it.
Queue::~Queue() {
  stream_.reset();
}

void Queue::keep(const std::shared_ptr<Storage>& storage) {
  if (storage->kept_by == batch_ || (foreign_ && storage->foreign)) return;
  storage->kept_by = batch_;
  kept_.push_back(storage);
}

Result<void> Queue::launched() {
  return ++since_submit_ < submit_after ? Result<void>{} : submit();
}

const Catalog& Queue::catalog() const {
  return runtime_.catalog();
}

Result<void> Queue::run(const Problem& problem, std::span<const Tensor> operands) {
  const auto found = runtime_.prepare(problem);
  if (!found) return found.failure();
  const PreparedOperation& operation = **found;
  if (auto good = operation.check(operands); !good) return good;
  std::vector<std::uint64_t> addresses(operands.size());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].storage()->buffer) {
      return Failure{Status::invalid_argument,
                     fmt::format("{}: {} is a temporary of a pipeline that is not finished",
                                 operation.key, operation.operands[i].name),
                     {}};
    }
    addresses[i] = operands[i].address();
    keep(operands[i].storage());
  }
  return launch(operation, addresses);
}

Result<void> Queue::run(const PreparedOperation& operation,
                        std::span<const std::uint64_t> addresses) {
  if (auto good = operation.check(addresses); !good) return good;
  return launch(operation, addresses);
}

Result<void> Queue::launch(const PreparedOperation& operation,
                           std::span<const std::uint64_t> addresses) {
  std::shared_ptr<Buffer> replaced;
  auto room = workspace_.reserve(runtime_.device(), *stream_, operation.plan, replaced);
  if (replaced) kept_.push_back(std::move(replaced));
  if (!room) return room;
  auto done = timed(&operation, [&] {
    return operation.plan.record(*stream_, addresses, workspace_.address(operation.plan), {},
                                 runtime_.order_within());
  });
  return done ? launched() : done;
}

Result<void> Queue::copy(const Tensor& to, const Tensor& from) {
  if (auto good = check_copy(to, from); !good) return good;
  for (const Tensor* const tensor : {&to, &from}) {
    if (!tensor->storage()->buffer) {
      return Failure{
          Status::invalid_argument,
          fmt::format("copy: {} is a temporary of a pipeline that is not finished", tensor->text()),
          {}};
    }
    keep(tensor->storage());
  }
  auto done = timed(nullptr, [&] { return record_copy(*stream_, to, from); });
  return done ? launched() : done;
}

Result<void> Queue::replay(const PipelineGraph& graph) {
  if (auto may = runtime_.check_step(); !may) return may;
  const Telemetry& telemetry = runtime_.telemetry();
  if (telemetry.times()) {
    for (std::size_t i = 0; i < graph.operations().size(); ++i) {
      auto done =
          timed(graph.operations()[i].prepared, [&] { return graph.record(*stream_, i, false); });
      if (!done) return done;
    }
    return submit();
  }
  auto done = graph.graph_ ? stream_->replay(*graph.graph_) : graph.record(*stream_);
  if (!done) return done;
  if (telemetry.counts()) ++*graph.replays_;
  return submit();
}

Result<void> Queue::submit() {
  since_submit_ = 0;
  return stream_->submit();
}

Result<void> Queue::synchronize(Deadline deadline) {
  if (auto done = stream_->synchronize(deadline); !done) return done;
  since_submit_ = 0;
  kept_.clear();
  batch_ = next_batch();
  return timer_.collect(runtime_.device());
}

}  // namespace greta::runtime
