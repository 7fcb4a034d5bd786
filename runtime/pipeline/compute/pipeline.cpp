#include "runtime/pipeline/compute/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <unordered_set>
#include <utility>

#include "runtime/pipeline/compute/workspace.hpp"

namespace greta::runtime {
namespace {

std::uint64_t next_recording() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

Pipeline::Pipeline(Runtime& runtime)
    : Operations(runtime.rounded_weights()), runtime_(runtime), number_(next_recording()) {}

Tensor Pipeline::temporary(DType dtype, const Shape& shape) {
  auto storage = std::make_shared<Storage>();
  storage->bytes = bytes_of(dtype, static_cast<std::size_t>(shape.elements()));
  storage->pipeline = number_;
  temporaries_.push_back(storage);
  return {std::move(storage), dtype, shape};
}

void Pipeline::keep(const Tensor& temporary) {
  if (!temporary || temporary.storage()->pipeline != number_) {
    throw Error(invalid_argument(temporary.text() +
                                 " is kept, but it is not a temporary of this pipeline"));
  }
  kept_.push_back(temporary.storage());
}

/// Returns the label, e.g. "layer 3 attention", or the problem if there is none.
std::string Pipeline::Step::name() const {
  if (!label.empty()) return label;
  return problem ? problem->key() : "copy";
}

/// A copy writes its first operand and reads its second.
bool Pipeline::Step::writes(std::size_t operand) const {
  return problem ? specs[operand].role == Role::output : operand == 0;
}

std::string Pipeline::Step::operand_name(std::size_t operand) const {
  if (problem) return specs[operand].name;
  return operand == 0 ? "the target" : "the source";
}

Result<void> Pipeline::check_storage(std::span<const Tensor> operands) const {
  for (const Tensor& operand : operands) {
    const Storage& storage = *operand.storage();
    if (storage.buffer || storage.pipeline == number_ || storage.pipeline == 0) continue;
    return invalid_argument(operand.text() + " is a temporary of another pipeline");
  }
  return {};
}

const Catalog& Pipeline::catalog() const {
  return runtime_.catalog();
}

Result<void> Pipeline::run(const Problem& problem, std::span<const Tensor> operands) {
  const auto kernel = operation_of(runtime_.catalog(), problem);
  if (!kernel) return kernel.failure();
  std::vector<TensorSpec> specs = (*kernel)->tensors(problem);
  if (auto good = check_operands(problem, specs, operands); !good) return good;
  if (auto good = check_storage(operands); !good) return good;
  steps_.push_back({label_, problem, std::move(specs), {operands.begin(), operands.end()}});
  return {};
}

Result<Answer> Pipeline::look_up(const Problem& chain) {
  return runtime_.choose(chain);
}

Result<Answer> Pipeline::choose(const Problem& chain,
                                const std::map<std::string, std::string>& instead) {
  auto answer = runtime_.choose(chain);
  if (!answer) return answer;
  const auto other = instead.find(answer->config.variant);
  if (other != instead.end()) answer->config.variant = other->second;
  ChosenChain chosen{chain, *answer, instead};
  if (std::find(chains_.begin(), chains_.end(), chosen) == chains_.end()) {
    chains_.push_back(std::move(chosen));
  }
  return answer;
}

Result<void> Pipeline::copy(const Tensor& to, const Tensor& from) {
  if (auto good = check_copy(to, from); !good) return good;
  const std::vector<Tensor> operands{to, from};
  if (auto good = check_storage(operands); !good) return good;
  steps_.push_back({label_, std::nullopt, {}, operands});
  return {};
}

std::vector<Problem> Pipeline::problems() const {
  std::vector<Problem> all;
  std::unordered_set<Problem, ProblemHash> seen;
  for (const Step& step : steps_) {
    if (step.problem && seen.insert(*step.problem).second) all.push_back(*step.problem);
  }
  return all;
}

std::vector<RecordedProblem> Pipeline::recorded() const {
  std::vector<RecordedProblem> all;
  for (const Step& step : steps_) {
    if (step.problem) all.push_back({step.label, *step.problem});
  }
  return all;
}

/// Computes the first and last step that use each temporary. The first one must write it. Unused
/// temporaries have no lifetime.
Result<Pipeline::Lifetimes> Pipeline::lifetimes() const {
  Lifetimes lives;
  for (std::size_t step = 0; step < steps_.size(); ++step) {
    const Step& now = steps_[step];
    for (const bool writes : {false, true}) {  // an operation reads before it writes
      for (std::size_t i = 0; i < now.operands.size(); ++i) {
        Storage* const storage = now.operands[i].storage().get();
        if (storage->pipeline != number_ || now.writes(i) != writes) continue;
        if (!writes && !lives.contains(storage)) {
          return invalid_argument(fmt::format("{}: {} is a temporary that nothing wrote before",
                                              now.name(), now.operand_name(i)));
        }
        Lifetime& life =
            lives.try_emplace(storage, Lifetime{storage->bytes, step, step}).first->second;
        life.last = step;
      }
    }
  }
  for (const auto& storage : kept_) {
    const auto found = lives.find(storage.get());
    if (found == lives.end()) return invalid_argument("a temporary is kept that nothing wrote");
    found->second.last = steps_.size();
  }
  return lives;
}

Result<Pipeline::Places> Pipeline::places() const {
  const auto lives = lifetimes();
  if (!lives) return lives.failure();
  Places places;
  std::vector<Lifetime> lifetimes;
  for (const auto& storage : temporaries_) {  // in order of creation
    const auto found = lives->find(storage.get());
    if (found == lives->end()) continue;
    places.storages.push_back(storage.get());
    lifetimes.push_back(found->second);
    places.bytes += storage->bytes;
  }
  places.plan = plan_arena(lifetimes);
  return places;
}

Result<PipelineMemory> Pipeline::memory() {
  const auto places = this->places();
  if (!places) return places.failure();
  PipelineMemory memory;
  memory.arena = places->plan.bytes;
  memory.temporaries = places->bytes;
  WorkspaceSize size;
  for (const Problem& problem : problems()) {
    const auto plan = runtime_.plan(problem);
    if (!plan) return plan.failure();
    size.include(plan->workspace_bytes, plan->zeroed_bytes);
  }
  memory.workspace = size.bytes();
  return memory;
}

Result<void> Pipeline::place(PipelineGraph& graph) {
  const auto places = this->places();
  if (!places) return places.failure();
  graph.memory_.temporaries = places->bytes;
  graph.memory_.arena = places->plan.bytes;
  if (places->plan.bytes == 0) return {};
  auto arena = runtime_.device().allocate(places->plan.bytes);
  if (!arena) return arena.failure();
  graph.arena_ = *std::move(arena);
  for (std::size_t i = 0; i < places->storages.size(); ++i) {
    places->storages[i]->buffer = graph.arena_;
    places->storages[i]->offset = places->plan.offsets[i];
  }
  return {};
}

Result<void> Pipeline::add_workspace(PipelineGraph& graph) {
  WorkspaceSize size;
  for (const RecordedOperation& operation : graph.operations_) {
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

Result<void> Pipeline::prepare(PipelineGraph& graph, unsigned jobs) {
  const std::vector<Problem> wanted = problems();
  const std::vector<Precompiled> outcome = runtime_.precompile(wanted, jobs);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!outcome[i].failure) continue;
    Failure failure = *outcome[i].failure;
    const auto first = std::find_if(steps_.begin(), steps_.end(), [&](const Step& step) {
      return step.problem && *step.problem == wanted[i];
    });
    failure.message = first->name() + ": " + failure.message;
    return failure;
  }
  for (const Step& step : steps_) {
    const PreparedOperation* const ready =
        step.problem ? runtime_.prepare(*step.problem).value() : nullptr;
    graph.operations_.emplace_back(RecordedOperation{step.label, ready, step.operands});
  }
  return {};
}

Result<void> Pipeline::add_addresses(PipelineGraph& graph) const {
  for (const Step& step : steps_) {
    auto& addresses = graph.addresses_.emplace_back();
    for (std::size_t i = 0; i < step.operands.size(); ++i) {
      if (!step.operands[i].storage()->buffer) {
        return invalid_argument(
            fmt::format("{}: {} has no memory", step.name(), step.operand_name(i)));
      }
      addresses.push_back(step.operands[i].address());
    }
  }
  return {};
}

void Pipeline::find_constants(PipelineGraph& graph) const {
  const auto memory = [](const Tensor& operand) {
    const Buffer& buffer = *operand.storage()->buffer;
    return std::pair(buffer.address(), buffer.address() + buffer.size());
  };
  std::map<std::uint64_t, std::uint64_t> written;  // ends of ranges, by where they begin
  for (const Step& step : steps_) {
    for (std::size_t i = 0; i < step.operands.size(); ++i) {
      if (step.problem ? step.specs[i].role == Role::input : i != 0) continue;
      const auto [begin, end] = memory(step.operands[i]);
      std::uint64_t& known = written[begin];
      known = std::max(known, end);
    }
  }
  const auto is_written = [&](const Tensor& operand) {
    const auto [begin, end] = memory(operand);
    return std::any_of(written.begin(), written.lower_bound(end),
                       [first = begin](const auto& range) { return range.second > first; });
  };
  for (const Step& step : steps_) {
    auto& constant = graph.constant_.emplace_back();
    for (const Tensor& operand : step.operands) constant.push_back(!is_written(operand));
  }
}

Result<std::unique_ptr<PipelineGraph>> Pipeline::finish(const PipelineOptions& options) {
  std::unique_ptr<PipelineGraph> graph(new PipelineGraph);
  const auto give_up = [this](const Failure& failure) {
    for (const auto& storage : temporaries_) storage->buffer = nullptr;
    return failure;
  };
  if (auto ready = prepare(*graph, options.jobs); !ready) return give_up(ready.failure());
  if (auto placed = place(*graph); !placed) return give_up(placed.failure());
  if (auto added = add_workspace(*graph); !added) return give_up(added.failure());
  if (auto added = add_addresses(*graph); !added) return give_up(added.failure());
  graph->within_ = runtime_.order_within();
  if (options.overlap && runtime_.overlaps()) find_constants(*graph);
  if (options.graph) {
    auto made =
        runtime_.device().create_graph([&graph](Stream& stream) { return graph->record(stream); });
    if (!made) return give_up(made.failure());
    graph->graph_ = *std::move(made);
  }
  std::vector<const PreparedOperation*> prepared;
  for (const RecordedOperation& operation : graph->operations_) {
    if (operation.prepared != nullptr) prepared.push_back(operation.prepared);
  }
  graph->replays_ = runtime_.telemetry().add_graph(std::move(prepared));
  graph->chains_ = std::exchange(chains_, {});
  steps_.clear();
  temporaries_.clear();
  kept_.clear();
  label_.clear();
  number_ = next_recording();
  return graph;
}

PipelineGraph::~PipelineGraph() = default;

Result<void> PipelineGraph::record(Stream& stream, std::size_t operation, bool overlap) const {
  const RecordedOperation& recorded = operations_[operation];
  if (recorded.prepared == nullptr) {
    return record_copy(stream, recorded.operands[0], recorded.operands[1]);
  }
  const CompiledPlan& plan = recorded.prepared->plan;
  static const std::vector<bool> unknown;
  const bool overlaps = overlap && !constant_.empty();
  return plan.record(stream, addresses_[operation], boundary_ - plan.zeroed_bytes(),
                     overlaps ? constant_[operation] : unknown, within_);
}

Result<void> PipelineGraph::record(Stream& stream) const {
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    if (auto done = record(stream, i, i > 0); !done) return done;
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
    line.config = prepared.answer.config.shown();
    line.origin = prepared.answer.origin_text();
    line.expected_regret = prepared.answer.expected_regret;
    if (prepared.answer.speedup) line.speedup = prepared.answer.speedup->ratio;
    line.remark = prepared.replaced;
    line.launches = prepared.plan.launches();
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
    if (auto done = record(stream, i, false); !done) return done.failure();
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

}  // namespace greta::runtime
