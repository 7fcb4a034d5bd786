#include "tuner/cli/tune/model_tuning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "db/merge.hpp"
#include "runtime/pipeline/llama/needs.hpp"
#include "tuner/cli/options/device_options.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/options/tuning_options.hpp"
#include "tuner/cli/program/databases.hpp"
#include "tuner/cli/program/interrupt.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"
#include "tuner/report/table.hpp"

namespace greta::tuner::cli {
namespace {

// Two ways to run a model are compared after these numbers of rounds, until one is significantly
// faster. Repeated looks increase the rate of false positives, so each uses a higher confidence.
constexpr std::array looks{6, 12, 24};
constexpr double confidence = 1 - 0.05 / looks.size();
constexpr std::uint64_t seed = 1;  ///< seed of random weights and prompts

std::string ratio_text(const Interval& ratio) {
  return fmt::format("{:.3f}x ({:.3f} to {:.3f})", ratio.estimate, ratio.low, ratio.high);
}

/// A temporary database, which is removed with this object together with SQLite's files beside it.
class ScratchDatabase {
 public:
  explicit ScratchDatabase(std::filesystem::path file) : file_(std::move(file)) { remove(); }
  ~ScratchDatabase() { remove(); }
  ScratchDatabase(const ScratchDatabase&) = delete;
  ScratchDatabase& operator=(const ScratchDatabase&) = delete;

  const std::filesystem::path& file() const { return file_; }
  void write(const Contents& contents) const {
    TunedDb::open(file_, TunedDb::Mode::read_write).write(contents);
  }

 private:
  void remove() const {
    for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
      std::error_code ignored;
      std::filesystem::remove(file_.string() + suffix, ignored);
    }
  }
  std::filesystem::path file_;
};

Contents contents_of(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return {};
  return open_database(file, TunedDb::Mode::read_only).contents();
}

/// Returns a database's contents with one more result.
Contents with(Contents contents, const StoredWinner& winner) {
  contents.results.push_back(winner);
  const auto same = [&](const StoredDevice& known) {
    return known.info.fingerprint() == winner.device.fingerprint();
  };
  if (std::none_of(contents.devices.begin(), contents.devices.end(), same)) {
    const std::string& now = winner.provenance.started_utc;
    contents.devices.push_back({winner.device, now, now});
  }
  return contents;
}

}  // namespace

ModelTuning::ModelTuning(const ModelTuningOptions& options) : options_(options) {
  if (options.path.empty() == options.model.config.empty()) {
    throw CommandError(exit_usage, "a model is needed: its folder or file, or --config");
  }
  if (read_budget(options.tuning.budget).kind() != Budget::Kind::seconds) {
    throw CommandError(exit_usage,
                       fmt::format("--budget {}: must be a time, as 10m", options.tuning.budget));
  }
  check_shipped(options.tuning.shipped);
  if (!options.path.empty()) files_ = load_llama(options.path);
  config_ = files_ ? files_->config : read_architecture(options.model);
  apply_load(options_.model, config_);
  if (files_) files_->weights.layers.resize(static_cast<std::size_t>(config_.layers));
  if (files_) files_->config = config_;
  choice_.device = options.tuning.device;
  choice_.dtype = options.dtype;
  choice_.allow_unsafe = options.tuning.allow_unsafe;
  const auto devices = select_devices(options.tuning.device);
  if (devices.size() != 1) {
    throw CommandError(exit_usage,
                       fmt::format("--device {}: a model is tuned on one", options.tuning.device));
  }
  device_ = devices.front().info;
  choice_.device = options_.tuning.device = device_.id();
  catch_interrupts();
  if (!options.tuning.no_lock) locks_ = lock_cards(devices, "greta-tune");
  options_.tuning.no_lock = true;  // this process holds the lock
  // Created, or an error, before anything runs.
  static_cast<void>(open_database(options.tuning.db, TunedDb::Mode::read_write));
  choice_.db = options.tuning.db.string();
}

std::filesystem::path ModelTuning::beside_database(const char* what) const {
  return options_.tuning.db.string() + "." + what;
}

LlamaOptions ModelTuning::llama_options() const {
  LlamaOptions llama;
  llama.batch = options_.model.load.batch;
  llama.capacity = llama_capacity(config_, options_.model.load.tokens());
  return llama;
}

ModelTuning::Bench ModelTuning::open_model() const {
  Bench bench;
  bench.runtime = open_runtime(choice_);
  const DType own = files_ ? files_->weights.embedding.dtype : DType::f16;
  const DType dtype = run_dtype(choice_, own, device_);
  constexpr std::int64_t runners = 2;  // the model as it is, and changed
  llama_needs(*bench.runtime, config_, dtype, llama_options(), options_.model.load.prompt_tokens,
              runners)
      .check(device_);
  bench.weights = files_ ? upload_weights(*bench.runtime, *files_, dtype)
                         : random_weights(*bench.runtime, config_, dtype, seed);
  return bench;
}

std::unique_ptr<ModelTimer> ModelTuning::timer(Runtime& runtime, const Bench& bench) const {
  return std::make_unique<ModelTimer>(runtime, *bench.weights, llama_options(), options_.model.load,
                                      seed);
}

/// Finds the model's problems and their shares of its time.
void ModelTuning::find_problems() {
  const Bench bench = open_model();
  const auto model = timer(*bench.runtime, bench);
  model->warm_up(1);
  LlamaRunner& runner = model->runner();
  runner.reset();
  double total = 0;
  const auto add = [&](std::int64_t tokens, double times) {
    const PipelineGraph& pass = runner.pass(tokens);
    const auto spent = pass.time(runner.queue()).value();
    for (std::size_t i = 0; i < spent.size(); ++i) {
      const PreparedOperation* operation = pass.operations()[i].prepared;
      if (operation == nullptr) continue;
      auto known = std::find_if(changes_.begin(), changes_.end(), [&](const ModelChange& change) {
        return change.problem == operation->problem;
      });
      if (known == changes_.end()) {
        changes_.push_back({operation->problem, 0, {}, {}, false});
        known = changes_.end() - 1;
      }
      known->share += times * spent[i].us;
      total += times * spent[i].us;
    }
  };
  const auto passes = runner.passes(options_.model.load.prompt_tokens);
  model->feed_prompt();
  for (const std::int64_t tokens : passes) add(tokens, 1);
  model->feed_next();
  add(1, static_cast<double>(options_.model.load.generated_tokens));
  for (ModelChange& change : changes_) change.share /= std::max(total, 1e-9);
  std::stable_sort(changes_.begin(), changes_.end(),
                   [](const auto& a, const auto& b) { return a.share > b.share; });
  tell(fmt::format("{} of a prompt of {} tokens and {} behind it",
                   format_count(static_cast<std::int64_t>(changes_.size()), "problem"),
                   options_.model.load.prompt_tokens, options_.model.load.generated_tokens));
}

/// Tunes into the database of candidates, which also uses the contents of the user's database.
void ModelTuning::tune_problems() {
  TuningOptions tuning = options_.tuning;
  tuning.db = beside_database("candidates");
  {
    TunedDb candidates = open_database(tuning.db, TunedDb::Mode::read_write);
    static_cast<void>(candidates.merge(contents_of(options_.tuning.db)));
  }
  std::vector<WeightedProblem> problems;
  for (const ModelChange& change : changes_) problems.push_back({change.problem, change.share});
  tuning.json = true;  // suppresses the tasks' reports
  nlohmann::json ignored;
  static_cast<void>(tune_list(tasks_by_time(problems, tuning.budget), tuning, ignored));
  if (stop_requested()) {
    throw CommandError(exit_failed,
                       fmt::format("interrupted; what was tuned is in {}, and the same "
                                   "command goes on from there",
                                   tuning.db.string()));
  }
  const TunedDb candidates = open_database(tuning.db, TunedDb::Mode::read_only);
  for (ModelChange& change : changes_) {
    change.winner =
        candidates.find_winner(device_.fingerprint(), change.problem.key(), !options_.tuning.warm);
  }
}

/// Returns the model's time with `base` divided by that with `changed`, in alternating rounds,
/// until one is significantly faster.
Interval ModelTuning::compare(ModelTimer& base, ModelTimer& changed) const {
  const std::int64_t steps = std::min<std::int64_t>(options_.model.load.generated_tokens, 16);
  for (ModelTimer* timer : {&base, &changed}) timer->warm_up(2);
  std::vector<double> before, after;
  Interval ratio;
  for (int round = 0; round < looks.back() && !stop_requested(); ++round) {
    // The order alternates as well.
    ModelTimer* const order[] = {round % 2 == 0 ? &base : &changed,
                                 round % 2 == 0 ? &changed : &base};
    for (ModelTimer* timer : order) timer->round(steps);
    before.push_back(base.last_load_us());
    after.push_back(changed.last_load_us());
    if (std::find(looks.begin(), looks.end(), round + 1) == looks.end()) continue;
    ratio = ratio_interval(before, after, confidence);
    if (ratio.low > 1 || ratio.high < 1) break;
  }
  return ratio;
}

void ModelTuning::judge_changes() {
  const Bench bench = open_model();
  std::unique_ptr<Runtime> best = open_beside(*bench.runtime, lookup_files(choice_), choice_);
  std::unique_ptr<ModelTimer> base = timer(*best, bench);
  for (ModelChange& change : changes_) {
    if (!change.winner || stop_requested()) continue;
    const Answer& now = best->lookup().find(change.problem);
    if (now.config == change.winner->winner.config) continue;
    tell(fmt::format("trying {} in the model", change.problem.key()));
    const ScratchDatabase scratch(beside_database("step"));
    scratch.write(with(contents_of(options_.tuning.db), *change.winner));
    auto runtime = open_beside(*bench.runtime, {scratch.file(), {}}, choice_);
    auto changed = timer(*runtime, bench);
    change.end_to_end = compare(*base, *changed);
    change.kept = change.end_to_end->low > 1;
    if (!change.kept) continue;
    keep(change);
    base = std::move(changed);
    best = std::move(runtime);
  }
  const auto plain = open_beside(*bench.runtime, {}, choice_);
  const bool changed =
      std::any_of(changes_.begin(), changes_.end(), [&](const ModelChange& change) {
        return plain->lookup().find(change.problem).config !=
               best->lookup().find(change.problem).config;
      });
  if (changed) whole_ = compare(*timer(*plain, bench), *base);
}

void ModelTuning::keep(const ModelChange& change) const {
  TunedDb own = open_database(options_.tuning.db, TunedDb::Mode::read_write);
  Contents add = with({}, *change.winner);
  own.write(add);
  own.confirm();
}

/// Reads the kept results back like another process.
void ModelTuning::check_stored() const {
  const TunedDb own = open_database(options_.tuning.db, TunedDb::Mode::read_only);
  for (const ModelChange& change : changes_) {
    if (!change.kept) continue;
    const auto found =
        own.find_winner(device_.fingerprint(), change.problem.key(), !options_.tuning.warm);
    if (found && found->winner.config == change.winner->winner.config) continue;
    throw CommandError(exit_failed, fmt::format("{}: overwritten while it was used: the result of "
                                                "{} is not there",
                                                own.file().string(), change.problem.key()));
  }
}

std::string ModelTuning::report() const {
  constexpr auto right = Table::Align::right;
  Table table({{"problem"}, {"share", right}, {"micro", right}, {"end to end", right}, {"kept"}});
  for (const ModelChange& change : changes_) {
    const auto micro = change.winner ? fmt::format("{:.2f}x", change.winner->winner.speedup) : "-";
    table.add({change.problem.key(), format_share(change.share), micro,
               change.end_to_end ? ratio_text(*change.end_to_end) : "-",
               change.kept         ? "yes"
               : change.end_to_end ? "no"
                                   : "as it was"});
  }
  return table.text() +
         (whole_ ? fmt::format("the model: {} the speed of default configurations\n",
                               ratio_text(*whole_))
                 : "the model: runs default configurations, nothing makes it faster for sure\n") +
         fmt::format("kept in {}\n", options_.tuning.db.string());
}

int ModelTuning::run() {
  find_problems();
  tune_problems();
  judge_changes();
  if (stop_requested()) throw CommandError(exit_failed, "interrupted; what was kept is stored");
  print_text(report());
  if (std::fflush(stdout) != 0) {
    throw CommandError(exit_failed, "the report can't be written; what was kept is stored");
  }
  check_stored();
  const ScratchDatabase done(beside_database("candidates"));
  return exit_done;
}

}  // namespace greta::tuner::cli
