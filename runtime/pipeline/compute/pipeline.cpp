#include "runtime/pipeline/compute/pipeline.hpp"

#include <fmt/format.h>

#include <atomic>
#include <unordered_map>
#include <utility>

#include "runtime/pipeline/compute/arena.hpp"
#include "runtime/pipeline/compute/workspace.hpp"

namespace greta {
namespace {

Failure refusal(std::string message) {
  return {Status::invalid_argument, std::move(message), {}};
}

/// "layer 3 attention", or the problem where it has no name.
std::string name_of(const RecordedOperation& operation) {
  if (!operation.label.empty()) return operation.label;
  return operation.prepared == nullptr ? "copy" : operation.prepared->key;
}

/// A copy's first operand is written; its second is read.
Role role_of(const RecordedOperation& operation, std::size_t operand) {
  if (operation.prepared != nullptr) return operation.prepared->operands[operand].role;
  return operand == 0 ? Role::output : Role::input;
}

std::string operand_name(const RecordedOperation& operation, std::size_t operand) {
  if (operation.prepared != nullptr) return operation.prepared->operands[operand].name;
  return operand == 0 ? "the target" : "the source";
}

/// Where each temporary is used: the first step writes it. Those that are not used have none.
Result<std::unordered_map<Storage*, Lifetime>> lifetimes_of(
    const std::vector<RecordedOperation>& operations, std::uint64_t recording) {
  std::unordered_map<Storage*, Lifetime> lives;
  for (std::size_t step = 0; step < operations.size(); ++step) {
    const RecordedOperation& operation = operations[step];
    for (const bool writes : {false, true}) {  // an operation reads before it writes
      for (std::size_t i = 0; i < operation.operands.size(); ++i) {
        Storage* const storage = operation.operands[i].storage().get();
        if (storage->pipeline != recording || (role_of(operation, i) == Role::output) != writes) {
          continue;
        }
        if (!writes && !lives.contains(storage)) {
          return refusal(fmt::format("{}: {} is a temporary that nothing wrote before",
                                     name_of(operation), operand_name(operation, i)));
        }
        Lifetime& life =
            lives.try_emplace(storage, Lifetime{storage->bytes, step, step}).first->second;
        life.last = step;
      }
    }
  }
  return lives;
}

std::uint64_t next_recording() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

Pipeline::Pipeline(Runtime& runtime) : runtime_(runtime), number_(next_recording()) {}

Tensor Pipeline::temporary(DType dtype, const Shape& shape) {
  auto storage = std::make_shared<Storage>();
  storage->bytes = static_cast<std::size_t>(shape.elements()) * size_of(dtype);
  storage->pipeline = number_;
  temporaries_.push_back(storage);
  return {std::move(storage), dtype, shape};
}

void Pipeline::keep(const Tensor& temporary) {
  if (temporary) kept_.push_back(temporary.storage());
}

Result<void> Pipeline::check_storage(std::span<const Tensor> operands) const {
  for (const Tensor& operand : operands) {
    if (operand.storage()->buffer || operand.storage()->pipeline == number_) continue;
    return refusal(operand.text() + " is a temporary of another pipeline");
  }
  return {};
}

Result<void> Pipeline::run(const Problem& problem, std::span<const Tensor> operands) {
  const auto prepared = runtime_.prepare(problem);
  if (!prepared) return prepared.failure();
  if (auto good = (*prepared)->check(operands); !good) return good;
  if (auto good = check_storage(operands); !good) return good;
  operations_.push_back({label_, *prepared, {operands.begin(), operands.end()}});
  return {};
}

Result<void> Pipeline::copy(const Tensor& to, const Tensor& from) {
  if (auto good = check_copy(to, from); !good) return good;
  const std::vector<Tensor> operands{to, from};
  if (auto good = check_storage(operands); !good) return good;
  operations_.push_back({label_, nullptr, operands});
  return {};
}

Result<void> Pipeline::place(PipelineGraph& graph) {
  auto lives = lifetimes_of(operations_, number_);
  if (!lives) return lives.failure();
  for (const auto& storage : kept_) {
    const auto found = lives->find(storage.get());
    if (found == lives->end()) return refusal("a temporary is kept that nothing wrote");
    found->second.last = operations_.size();
  }
  std::vector<Storage*> storages;  // in the order in which they were made
  std::vector<Lifetime> lifetimes;
  for (const auto& storage : temporaries_) {
    const auto found = lives->find(storage.get());
    if (found == lives->end()) continue;
    storages.push_back(storage.get());
    lifetimes.push_back(found->second);
    graph.memory_.temporaries += storage->bytes;
  }
  const ArenaPlan plan = plan_arena(lifetimes);
  graph.memory_.arena = plan.bytes;
  if (plan.bytes == 0) return {};
  auto arena = runtime_.device().allocate(plan.bytes);
  if (!arena) return arena.failure();
  graph.arena_ = *std::move(arena);
  for (std::size_t i = 0; i < storages.size(); ++i) {
    storages[i]->buffer = graph.arena_;
    storages[i]->offset = plan.offsets[i];
  }
  return {};
}

Result<void> Pipeline::add_workspace(PipelineGraph& graph) {
  WorkspaceSize size;
  for (const RecordedOperation& operation : operations_) {
    if (operation.prepared != nullptr) size.include(operation.prepared->plan);
  }
  graph.memory_.workspace = size.bytes();
  if (size.bytes() == 0) return {};
  auto workspace = runtime_.device().allocate(size.bytes());
  if (!workspace) return workspace.failure();
  graph.workspace_ = *std::move(workspace);
  graph.boundary_ = graph.workspace_->address() + size.zeroed;
  if (size.zeroed == 0) return {};
  const std::vector<std::byte> zeros(size.zeroed);
  return runtime_.device().upload(*graph.workspace_, 0, zeros);
}

Result<std::unique_ptr<PipelineGraph>> Pipeline::finish(const PipelineOptions& options) {
  std::unique_ptr<PipelineGraph> graph(new PipelineGraph);
  const auto give_up = [this](const Failure& failure) {
    for (const auto& storage : temporaries_) storage->buffer = nullptr;
    return failure;
  };
  if (auto placed = place(*graph); !placed) return give_up(placed.failure());
  if (auto added = add_workspace(*graph); !added) return give_up(added.failure());
  std::vector<const PreparedOperation*> prepared;
  for (const RecordedOperation& operation : operations_) {
    auto& addresses = graph->addresses_.emplace_back();
    for (const Tensor& tensor : operation.operands) addresses.push_back(tensor.address());
    if (operation.prepared != nullptr) prepared.push_back(operation.prepared);
  }
  graph->operations_ = operations_;
  if (options.graph) {
    auto made =
        runtime_.device().create_graph([&graph](Stream& stream) { return graph->record(stream); });
    if (!made) return give_up(made.failure());
    graph->graph_ = *std::move(made);
  }
  graph->replays_ = runtime_.telemetry().add_graph(std::move(prepared));
  operations_.clear();
  temporaries_.clear();
  kept_.clear();
  label_.clear();
  number_ = next_recording();
  return graph;
}

PipelineGraph::~PipelineGraph() = default;

Result<void> PipelineGraph::record(Stream& stream, std::size_t operation) const {
  const RecordedOperation& recorded = operations_[operation];
  if (recorded.prepared == nullptr) {
    return record_copy(stream, recorded.operands[0], recorded.operands[1]);
  }
  const CompiledPlan& plan = recorded.prepared->plan;
  return plan.record(stream, addresses_[operation], boundary_ - plan.zeroed_bytes());
}

Result<void> PipelineGraph::record(Stream& stream) const {
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    if (auto done = record(stream, i); !done) return done;
  }
  return {};
}

std::vector<Explanation> PipelineGraph::explain() const {
  std::vector<Explanation> list;
  for (const RecordedOperation& operation : operations_) {
    Explanation& line = list.emplace_back();
    line.label = operation.label;
    if (operation.prepared == nullptr) {
      line.problem = "copy";
      continue;
    }
    const PreparedOperation& prepared = *operation.prepared;
    line.problem = prepared.key;
    line.config = prepared.answer.config.text();
    line.origin = to_string(prepared.answer.origin);
    line.expected_regret = prepared.answer.expected_regret;
    if (prepared.answer.speedup) line.speedup = prepared.answer.speedup->ratio;
    line.remark = prepared.replaced;
  }
  return list;
}

Result<std::vector<OperationTime>> PipelineGraph::time(Queue& queue) const {
  Device& device = queue.runtime().device();
  Stream& stream = queue.stream();
  std::vector<std::unique_ptr<Event>> events;
  for (std::size_t i = 0; i <= operations_.size(); ++i) {
    auto event = device.create_event();
    if (!event) return event.failure();
    events.push_back(*std::move(event));
  }
  if (auto done = stream.record(*events[0]); !done) return done.failure();
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    if (auto done = record(stream, i); !done) return done.failure();
    if (auto done = stream.record(*events[i + 1]); !done) return done.failure();
  }
  if (auto done = queue.synchronize(); !done) return done.failure();
  std::vector<OperationTime> times;
  double start = 0;
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const auto us = device.elapsed_us(*events[i], *events[i + 1]);
    if (!us) return us.failure();
    times.push_back({start, *us});
    start += *us;
  }
  return times;
}

}  // namespace greta
