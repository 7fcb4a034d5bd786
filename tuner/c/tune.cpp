// The functions of greta_tune.h.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "kernels/described/kernel_file.hpp"
#include "runtime/pipeline/c/abi.hpp"
#include "runtime/pipeline/c/problem_text.hpp"
#include "tuner/c/handle.hpp"
#include "tuner/report/json_lines.hpp"
#include "tuner/report/task_json.hpp"

using namespace greta::runtime::c;  // NOLINT
using namespace greta::tuner;       // NOLINT

namespace {

/// Throws the failure of a result as an Error of one line, or returns its value.
template <typename T>
T value_of(Result<T> result) {
  if (!result) throw Error(result.failure());
  return *std::move(result);
}

greta_tune_operand operand_of(const ShapedOperand& operand) {
  static_assert(DType{GRETA_F32} == DType::f32 && DType{GRETA_I32} == DType::i32);
  greta_tune_operand made{};
  made.name = operand.spec.name.c_str();
  made.role = static_cast<greta_tune_role>(operand.spec.role);
  made.dtype = static_cast<greta_dtype>(operand.spec.dtype);
  made.shape = operand.shape.data();
  made.rank = operand.shape.size();
  return made;
}

/// Makes a reference of the caller's function.
GivenReference reference_of(const greta_tune_options& options) {
  static_assert(Role{GRETA_TUNE_INPUT} == Role::input && Role{GRETA_TUNE_OUTPUT} == Role::output &&
                Role{GRETA_TUNE_INPUT_OUTPUT} == Role::input_output);
  GivenReference given;
  if (options.absolute != 0 || options.relative != 0 || options.ulp != 0) {
    given.tolerance = Tolerance{options.absolute, options.relative, options.ulp};
  }
  given.outputs =
      [compute = options.reference, context = options.reference_context](
          const Problem& problem, const std::vector<ShapedOperand>& described,
          const std::vector<HostTensor>& inputs) -> Result<std::vector<std::vector<double>>> {
    std::vector<greta_tune_operand> operands;
    std::vector<std::vector<double>> outputs;
    outputs.reserve(described.size());
    auto input = inputs.begin();
    for (const ShapedOperand& one : described) {
      operands.push_back(operand_of(one));
      if (one.spec.role != Role::output) operands.back().input = (input++)->data.data();
      if (one.spec.role == Role::input) continue;
      operands.back().expected = outputs.emplace_back(one.spec.elements()).data();
    }
    if (compute(context, problem.key().c_str(), operands.data(), operands.size()) == 0) {
      return outputs;
    }
    return Failure{Status::correctness, "the reference of " + problem.op + " failed", {}};
  };
  return given;
}

/// Adds the described kernel of the options to the operations. Returns what computes its reference
/// for workers; null if none has to.
std::unique_ptr<ReferenceServer> add_kernel(const greta_tune_options& given,
                                            TunerOptions& options) {
  if (given.kernel == nullptr) {
    if (given.reference != nullptr) refuse("options->reference is that of a kernel, which is null");
    return nullptr;
  }
  std::optional<GivenReference> reference;
  if (given.reference != nullptr) reference = reference_of(given);
  const std::filesystem::path path = given.kernel;
  std::vector<Operation> all(options.catalog.begin(), options.catalog.end());
  all.push_back(value_of(load_described(path, reference_devices(), reference)));
  if (options.catalog.find(all.back().name) != nullptr) {
    refuse(fmt::format("{}: there is an operation {}", given.kernel, all.back().name));
  }
  options.catalog = Catalog(std::move(all));
  if (options.worker.empty()) return nullptr;
  auto& words = options.worker;
  words.insert(words.end(), {"--kernel", std::filesystem::absolute(path).string()});
  if (!reference) return nullptr;
  auto server = value_of(ReferenceServer::open(*std::move(reference)));
  words.insert(words.end(), {"--reference", server->socket().string()});
  return server;
}

TunerOptions options_of(const greta_tune_options& given) {
  TunerOptions options;
  options.devices = words_of(&need(given.device, "options->device"), ",");
  options.database = &need(given.database, "options->database");
  options.cache_directory = &need(given.cache_directory, "options->cache_directory");
  options.budget = value_of(Budget::parse(&need(given.budget, "options->budget")));
  options.strategy = &need(given.strategy, "options->strategy");
  if (const auto known = check_strategy(options.strategy); !known) throw Error(known.failure());
  if (given.worker_count > 0) need(given.worker, "options->worker");
  for (std::size_t i = 0; i < given.worker_count; ++i) {
    options.worker.emplace_back(&need(given.worker[i], "a word of options->worker"));
  }
  options.flush_bytes = given.flush_bytes;
  if (given.has_seed != 0) options.seed = given.seed;
  options.name = "greta_tune";
  options.cold = given.warm == 0;
  options.compare_naive = given.naive != 0;
  options.reject_spills = given.reject_spills != 0;
  options.resume = given.no_resume == 0;
  options.retry_failed = given.retry_failed != 0;
  options.for_energy = given.for_energy != 0;
  options.pin = given.pin != 0;
  options.lock = given.no_lock == 0;
  options.allow_unsafe = given.allow_unsafe != 0;
  if (given.no_shipped != 0) options.shipped.clear();
  options.allow_vendor = given.allow_vendor != 0;
  return options;
}

/// Passes events to the caller's function, if there is one.
class Events {
 public:
  explicit Events(const greta_tuner& tuner) {
    if (tuner.observer == nullptr) return;
    observers_.push_back(&lines_.emplace(
        [&tuner](const std::string& event) { tuner.observer(tuner.context, event.c_str()); }));
  }
  std::vector<TunerObserver*> observers() { return observers_; }
  void end(bool won, bool stopped, const std::string& error) {
    if (lines_) lines_->end(won, stopped, error);
  }

 private:
  std::optional<JsonLines> lines_;
  std::vector<TunerObserver*> observers_;
};

TaskResult run(const greta_tuner& tuner, SerialObserver& observer) {
  const TuningTask task{.problem = tuner.problem};
  const auto opened = value_of(Tuner::open(tuner.options, {task}, observer, tuner.stop));
  return value_of(opened->tune(task));
}

}  // namespace

std::int32_t greta_tune_abi_version() {
  return GRETA_ABI_VERSION;
}

const char* greta_tune_last_error() {
  return last_error();
}

greta_tune_options greta_tune_defaults() {
  greta_tune_options options{};
  options.size = sizeof options;
  options.device = "auto";
  options.budget = "60s";
  options.strategy = "auto";
  return options;
}

greta_status greta_tune_open(const greta_tune_options* options, const char* problem,
                             greta_tuner** tuner) {
  return guarded([&]() -> Result<void> {
    need(options, "options");
    need(problem, "problem");
    need(tuner, "tuner");
    const auto given = read_options(options, greta_tune_defaults(), "options");
    auto made = std::make_unique<greta_tuner>();
    made->options = options_of(given);
    made->references = add_kernel(given, made->options);
    made->problem = read_problem(made->options.catalog, problem);
    made->key = made->problem.key();
    made->observer = given.observer;
    made->context = given.context;
    *tuner = made.release();
    return {};
  });
}

greta_status greta_tune_problem(const greta_tuner* tuner, const char** key) {
  return guarded([&]() -> Result<void> {
    need(key, "key");
    *key = need(tuner, "tuner").key.c_str();
    return {};
  });
}

greta_status greta_tune_run(greta_tuner* tuner, const char** result) {
  return guarded([&]() -> Result<void> {
    need(tuner, "tuner");
    need(result, "result");
    Events events(*tuner);
    try {
      SerialObserver observer(events.observers());
      const TaskResult done = run(*tuner, observer);
      const bool stopped = tuner->stop.exchange(false);
      if (!done.given_up.empty()) throw Error(Failure{Status::device_lost, done.given_up, {}});
      if (done.sessions.empty()) {
        throw Error(Failure{Status::interrupted, "stopped before the search began", {}});
      }
      tuner->result = task_json(done, tuner->options.database.string())
                          .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      *result = tuner->result.c_str();
      events.end(done.won(), stopped, "");
      return {};
    } catch (const std::exception& error) {
      events.end(false, tuner->stop.exchange(false), error.what());
      throw;
    }
  });
}

greta_status greta_tune_stop(greta_tuner* tuner) {
  return guarded([&]() -> Result<void> {
    need(tuner, "tuner").stop = true;
    return {};
  });
}

void greta_tune_close(greta_tuner* tuner) {
  delete tuner;
}
