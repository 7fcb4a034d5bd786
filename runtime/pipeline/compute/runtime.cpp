#include "runtime/pipeline/compute/runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>

#include "kernels/catalog.hpp"
#include "kernels/chains/chains.hpp"
#include "kernels/model/problem_rules.hpp"
#include "runtime/device/binary_target.hpp"
#include "runtime/device/interop.hpp"
#include "runtime/device/system/log.hpp"
#include "runtime/device/telemetry.hpp"
#include "runtime/pipeline/compute/queue.hpp"

namespace greta::runtime {
namespace {

/// Returns whether a failure may be due to the configuration, so that the default might succeed.
bool of_the_configuration(Status status) {
  switch (status) {
    case Status::constraints:
    case Status::compile:
    case Status::launch:
    case Status::timeout:
    case Status::crash:
      return true;
    default:
      return false;
  }
}

Result<void> check_transfer(const char* what, const Tensor& tensor, std::size_t bytes) {
  if (!tensor || !tensor.storage()->buffer) {
    return invalid_argument(fmt::format("{}: {}", what,
                                        tensor ? "a temporary that has no memory before its "
                                                 "pipeline is finished"
                                               : "no tensor"));
  }
  if (!tensor.contiguous()) {
    return invalid_argument(fmt::format("{}: {} is not packed; only packed tensors are transferred",
                                        what, tensor.text()));
  }
  if (tensor.bytes() != bytes) {
    return invalid_argument(
        fmt::format("{}: {} has {} bytes, not {}", what, tensor.text(), tensor.bytes(), bytes));
  }
  return {};
}

}  // namespace

Runtime::Runtime(std::shared_ptr<Device> device, std::shared_ptr<KernelStore> kernels,
                 std::unique_ptr<Stream> probe, LookupFiles databases, LookupOptions options)
    : device_(std::move(device)),
      probe_(std::move(probe)),
      databases_(std::move(databases)),
      lookup_options_(std::move(options)),
      lookup_(Lookup::open(device_->info(), databases_, lookup_options_)),
      kernels_(std::move(kernels)) {}

Runtime::~Runtime() = default;

Result<std::unique_ptr<Runtime>> Runtime::open(const RuntimeOptions& options) {
  OpenOptions open = options.open;
  open.without_compiler = true;  // databases may carry all kernels that run
  auto device = open_device(options.device, open);
  if (!device) return device.failure();
  auto runtime = of(*std::move(device), options.databases, options.lookup);
  if (!runtime) return runtime;
  (*runtime)->patience_ = options.patience;
  (*runtime)->before_step_ = options.before_step;
  (*runtime)->rounded_weights_ = options.rounded_weights;
  (*runtime)->overlap_ = options.overlap;
  for (const std::string& rule : options.use) {
    if (auto added = (*runtime)->use(rule); !added) return added.failure();
  }
  return runtime;
}

Result<std::unique_ptr<Runtime>> Runtime::of(std::unique_ptr<Device> device,
                                             const LookupFiles& databases,
                                             const LookupOptions& lookup) {
  std::shared_ptr<Device> shared = std::move(device);
  auto kernels = std::make_shared<KernelStore>(*shared);
  return make(std::move(shared), std::move(kernels), databases, lookup);
}

Result<std::unique_ptr<Runtime>> Runtime::beside(const Runtime& other, const LookupFiles& databases,
                                                 const LookupOptions& lookup) {
  auto runtime = make(other.device_, other.kernels_, databases, lookup);
  if (!runtime) return runtime;
  (*runtime)->patience_ = other.patience_;
  (*runtime)->before_step_ = other.before_step_;
  (*runtime)->rounded_weights_ = other.rounded_weights_;
  (*runtime)->overlap_ = other.overlap_;
  return runtime;
}

Result<std::unique_ptr<Runtime>> Runtime::make(std::shared_ptr<Device> device,
                                               std::shared_ptr<KernelStore> kernels,
                                               const LookupFiles& databases,
                                               const LookupOptions& lookup) {
  try {
    auto probe = device->create_stream();
    if (!probe) return probe.failure();
    return std::unique_ptr<Runtime>(
        new Runtime(std::move(device), std::move(kernels), *std::move(probe), databases, lookup));
  } catch (const Error& error) {
    return Failure{error.status(), error.what(), {}};
  }
}

Result<Tensor> Runtime::allocate(DType dtype, const Shape& shape, Memory memory) {
  if (auto may = check_step(); !may) return may.failure();
  auto storage = std::make_shared<Storage>();
  storage->bytes = bytes_of(dtype, static_cast<std::size_t>(shape.elements()));
  auto buffer = device_->allocate(storage->bytes, memory);
  if (!buffer) return buffer.failure();
  storage->buffer = *std::move(buffer);
  return Tensor(std::move(storage), dtype, shape);
}

Result<Tensor> Runtime::wrap(DType dtype, const Shape& shape, std::span<const std::int64_t> strides,
                             std::uint64_t address) {
  // Buffers begin at multiples of 256, so that offsets show the alignment of elements.
  constexpr std::uint64_t alignment = 256;
  std::int64_t last = shape.elements() - 1;
  if (!strides.empty()) {
    last = 0;
    for (std::size_t i = 0; i < shape.rank(); ++i) {
      // The constructor rejects negative strides, and those whose products overflow.
      last += (shape[i] - 1) * std::clamp<std::int64_t>(strides[i], 0, (1LL << 60) / shape[i]);
    }
  }
  auto storage = std::make_shared<Storage>();
  storage->foreign = true;
  storage->offset = address % alignment;
  storage->bytes = bytes_of(dtype, static_cast<std::size_t>(last + 1));
  const auto other = interop(*device_);
  if (!other) return other.failure();
  auto buffer = (*other)->wrap(address - storage->offset, storage->offset + storage->bytes);
  if (!buffer) return buffer.failure();
  storage->buffer = *std::move(buffer);
  if (strides.empty()) return Tensor(std::move(storage), dtype, shape);
  return Tensor(std::move(storage), dtype, shape, strides, 0);
}

Result<void> Runtime::add(Operation operation) {
  if (catalog().find(operation.name) != nullptr) {
    return refused(operation.name, "there is an operation of this name");
  }
  std::vector<Operation> all(catalog().begin(), catalog().end());
  all.push_back(std::move(operation));
  LookupOptions options = lookup_options_;
  options.catalog = Catalog(std::move(all));
  try {
    lookup_ = Lookup::open(device_->info(), databases_, options);
    has_binaries_.reset();
  } catch (const Error& error) {
    return Failure{error.status(), error.what(), {}};
  }
  lookup_options_ = std::move(options);
  unreadable_ = 0;
  return {};
}

Result<void> Runtime::use(std::string_view rule) {
  const auto placed = placed_rules(rule);
  if (!placed) return placed.failure();
  std::vector<Rule> fresh;
  for (const auto& [place, text] : *placed) {
    const auto at_place = [&place](std::string why) {
      return invalid_argument(place.empty() ? std::move(why) : place + ": " + why);
    };
    auto read = UseRule::parse(lookup_.questions(), lookup_.device(), text);
    if (!read) return at_place(read.failure().message);
    for (const auto& [problem, prepared] : prepared_) {
      if (!read->matches(catalog().at(problem.op), problem)) continue;
      return at_place(
          fmt::format("rule \"{}\": {} is prepared already; rules come before what they "
                      "decide about runs",
                      read->text(), prepared->key));
    }
    for (const Problem& chain : chains_) {
      if (!read->matches(lookup_.questions().at(chain.op), chain)) continue;
      return at_place(fmt::format("rule \"{}\": {} is decided already; rules come first",
                                  read->text(), chain.key()));
    }
    fresh.push_back({*std::move(read)});
  }
  std::move(fresh.begin(), fresh.end(), std::back_inserter(rules_));
  forced_.clear();
  return {};
}

std::vector<RuleUse> Runtime::rules() const {
  std::vector<RuleUse> list;
  for (const Rule& one : rules_) list.push_back({one.rule.text(), one.matched, one.decided});
  return list;
}

TensorMaker Runtime::maker() {
  return [this](DType dtype, const Shape& shape, Memory memory) {
    return allocate(dtype, shape, memory).value();
  };
}

Result<void> Runtime::upload(const Tensor& to, std::span<const std::byte> from) {
  if (auto good = check_transfer("upload", to, from.size()); !good) return good;
  if (auto may = check_step(); !may) return may;
  return device_->upload(*to.storage()->buffer, to.storage()->offset + to.offset(), from);
}

Result<void> Runtime::download(const Tensor& from, std::span<std::byte> to) {
  if (auto good = check_transfer("download", from, to.size()); !good) return good;
  return device_->download(*from.storage()->buffer, from.storage()->offset + from.offset(), to);
}

Result<void> Runtime::clear(const Tensor& tensor) {
  if (auto good = check_transfer("clear", tensor, tensor.bytes()); !good) return good;
  if (auto may = check_step(); !may) return may;
  auto stream = device_->create_stream();
  if (!stream) return stream.failure();
  auto filled = (*stream)->fill(*tensor.storage()->buffer,
                                tensor.storage()->offset + tensor.offset(), tensor.bytes(), 0);
  return filled ? (*stream)->synchronize(patience()) : filled;
}

Result<std::unique_ptr<Queue>> Runtime::queue() {
  auto stream = device_->create_stream();
  if (!stream) return stream.failure();
  return std::make_unique<Queue>(*this, *std::move(stream));
}

Result<std::unique_ptr<Queue>> Runtime::queue_on(void* stream) {
  const auto other = interop(*device_);
  if (!other) return other.failure();
  auto wrapped = (*other)->wrap_stream(stream);
  if (!wrapped) return wrapped.failure();
  return std::make_unique<Queue>(*this, *std::move(wrapped), true);
}

Result<const PreparedOperation*> Runtime::prepare(const Problem& problem) {
  if (const auto found = prepared_.find(problem); found != prepared_.end()) {
    return found->second.get();
  }
  if (auto may = check_step(); !may) return may.failure();
  telemetry::count("runtime.misses");
  auto made = make(problem);
  if (!made) return made.failure();
  return prepared_.emplace(problem, *std::move(made)).first->second.get();
}

Result<Answer> Runtime::answer(const Problem& problem) {
  const auto operation = operation_of(lookup_.questions(), problem);
  if (!operation) return operation.failure();
  try {
    const Rule* deciding = nullptr;
    for (Rule& one : rules_) {
      if (!one.rule.matches(**operation, problem)) continue;
      one.matched = true;
      if (deciding == nullptr) one.decided = true;
      if (deciding == nullptr) deciding = &one;
    }
    if (deciding == nullptr) return look_up(problem);
    const auto known = forced_.find(problem);
    if (known != forced_.end()) return known->second;
    auto answer = lookup_.forced(deciding->rule, problem);
    if (answer) forced_.emplace(problem, *answer);
    return answer;
  } catch (const Error& error) {
    return Failure{error.status(), error.what(), {}};
  }
}

Result<PackingChoice> Runtime::packing(std::span<const WeightedProduct> products,
                                       Unmeasured unmeasured) {
  const auto answer_of = [this](const Problem& problem) {
    auto found = answer(problem);
    return std::move(found).value();
  };
  return choose_packing(catalog(), lookup_.device(), products, answer_of, unmeasured);
}

Result<Answer> Runtime::choose(const Problem& chain) {
  if (!is_chain(chain.op)) return refused(chain.op, "no chain");
  auto chosen = answer(chain);
  if (chosen && std::find(chains_.begin(), chains_.end(), chain) == chains_.end()) {
    chains_.push_back(chain);
  }
  return chosen;
}

Answer Runtime::look_up(const Problem& problem) {
  Answer answer = lookup_.answer(problem);
  log_unreadable();
  return answer;
}

void Runtime::log_unreadable() {
  const auto unreadable = lookup_.unreadable();
  for (; unreadable_ < unreadable.size(); ++unreadable_) {
    log(LogLevel::warning, "{}", unreadable[unreadable_]);
  }
}

KernelStore::Binaries Runtime::binaries() {
  if (!has_binaries_) {
    targets_ = binary_targets(device_->info());
    has_binaries_ = lookup_.has_binaries(targets_);
  }
  if (!*has_binaries_) return {};
  return [this](const KernelSource& source) {
    auto found = lookup_.binary(source.content_key({}, {}), targets_);
    if (!found) note_without_binary(source);
    return found;
  };
}

/// Says once that kernels are compiled although databases carry others.
void Runtime::note_without_binary(const KernelSource& source) {
  telemetry::count("runtime.binaries_missing");
  if (told_without_binary_.exchange(true)) return;
  log(LogLevel::warning,
      "{}: the databases carry compiled kernels for {}, but no usable one of this source (another "
      "template, problem or configuration, or damaged); what they lack is compiled",
      source.name, targets_.front());
}

Result<std::unique_ptr<PreparedOperation>> Runtime::make(const Problem& problem) {
  const auto found = operation_of(catalog(), problem);
  if (!found) return found.failure();
  const Operation* const kernel = *found;
  try {
    auto found_answer = this->answer(problem);
    if (!found_answer) return found_answer.failure();
    Answer answer = *std::move(found_answer);
    auto plan = compile(problem, answer.config);
    std::string replaced;
    if (!plan && answer.origin == LookupOrigin::forced) {
      Failure failure = plan.failure();
      failure.message = fmt::format("rule \"{}\": {}: {}: {}", answer.rule, problem.key(),
                                    answer.config.shown(), failure.message);
      return failure;
    }
    if (!plan && of_the_configuration(plan.failure().status) &&
        answer.config != kernel->default_config(problem, lookup_.device())) {
      replaced = fmt::format("{}: {}", answer.config.shown(), plan.failure().message);
      log(LogLevel::warning, "{}: the {} configuration can't run, the default is used: {}",
          problem.key(), to_string(answer.origin), replaced);
      telemetry::count("runtime.replaced");
      answer = {};
      answer.config = kernel->default_config(problem, lookup_.device());
      plan = compile(problem, answer.config);
    }
    if (!plan) return plan.failure();
    auto made = std::make_unique<PreparedOperation>(
        PreparedOperation{problem, problem.key(), kernel->tensors(problem), std::move(answer),
                          std::move(replaced), *std::move(plan)});
    return made;
  } catch (const Error& error) {
    return Failure{error.status(), error.what(), {}};
  }
}

Result<CompiledPlan> Runtime::compile(const Problem& problem, const Config& config) {
  const Operation& kernel = catalog().at(problem.op);
  auto plan = kernel.plan(problem, lookup_.device(), config);
  if (!plan) return plan.failure();
  auto compiled =
      CompiledPlan::create(*plan, [this, find = binaries()](const KernelSource& source) {
        return kernels_->compile(source, find);
      });
  log_unreadable();
  if (!compiled) return compiled.failure();
  // Records the launches to check whether the device accepts them. Nothing runs.
  const std::vector<std::uint64_t> nowhere(kernel.tensors(problem).size());
  const auto taken = compiled->record(*probe_, nowhere, 0);
  probe_->discard();
  if (!taken) return taken.failure();
  return compiled;
}

Result<LaunchPlan> Runtime::plan(const Problem& problem) {
  const auto kernel = operation_of(catalog(), problem);
  if (!kernel) return kernel.failure();
  const auto answer = this->answer(problem);
  if (!answer) return answer.failure();
  try {
    return (*kernel)->plan(problem, lookup_.device(), answer->config);
  } catch (const Error& error) {
    return Failure{error.status(), error.what(), {}};
  }
}

std::vector<Precompiled> Runtime::precompile(std::span<const Problem> problems, unsigned jobs) {
  std::vector<KernelSource> sources;
  for (const Problem& problem : problems) {
    if (prepared_.contains(problem)) continue;
    const auto plan = this->plan(problem);
    if (!plan) continue;  // prepare() reports the failure
    sources.insert(sources.end(), plan->sources.begin(), plan->sources.end());
  }
  try {
    kernels_->warm(sources, jobs == 0 ? std::thread::hardware_concurrency() : jobs, binaries());
  } catch (const Error& error) {
    // A database can't be read any more. prepare() reports it for each problem.
    log(LogLevel::warning, "nothing is compiled ahead: {}", error.what());
  }
  log_unreadable();
  std::vector<Precompiled> outcome;
  for (const Problem& problem : problems) {
    Precompiled& one = outcome.emplace_back();
    one.problem = problem.key();
    const auto prepared = prepare(problem);
    if (!prepared) {
      one.failure = prepared.failure();
      continue;
    }
    const auto& kernels = (*prepared)->plan.kernels();
    one.kernels = kernels.size();
    one.from_cache = static_cast<std::size_t>(std::count_if(
        kernels.begin(), kernels.end(), [](const auto& kernel) { return kernel->from_cache(); }));
  }
  return outcome;
}

std::vector<const PreparedOperation*> Runtime::prepared() const {
  std::vector<const PreparedOperation*> all;
  for (const auto& entry : prepared_) all.push_back(entry.second.get());
  return all;
}

}  // namespace greta::runtime
