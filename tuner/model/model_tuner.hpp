#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/pipeline/compute/runtime.hpp"
#include "runtime/pipeline/llama/device_weights.hpp"
#include "runtime/pipeline/models/llama_config.hpp"
#include "tuner/measure/statistics.hpp"
#include "tuner/measure/stopwatch.hpp"
#include "tuner/model/load_timer.hpp"
#include "tuner/model/time_plan.hpp"
#include "tuner/tuning/distribution.hpp"

namespace greta::tuner::model {

/// A model, its load, and how it is tuned.
struct ModelTunerOptions {
  /// One device, or equal cards, over which the problems are spread; the model runs on the first.
  /// The time budget is that of the whole model, from its first pass to the last comparison.
  /// Winners that make the model faster are stored in the database.
  TunerOptions tuner;
  LlamaConfig config;
  std::optional<LlamaModel> weights;  ///< nothing: random weights of the architecture
  DType dtype = DType::f16;           ///< of weights, activations and the KV cache
  ModelLoad load;
  bool rounded_weights = false;  ///< RuntimeOptions::rounded_weights of the model
  /// Whether winners of products whose weights may be rows or panels are stored also where the
  /// model gains nothing by them, unless it loses: the choice of a packing compares their times.
  bool keep_packings = false;
};

/// The outcome for one of a model's problems.
struct ModelChange {
  Problem problem;
  double share = 0;                      ///< share of the model's time before tuning
  std::optional<StoredWinner> winner{};  ///< result of tuning; empty: no search or no winner
  std::optional<Interval> end_to_end{};  ///< the model's time without it divided by that with it
  /// It was timed together with other winners, which the interval describes as well: the budget was
  /// too short to time each alone.
  bool together = false;
  bool kept = false;
  bool kept_for_packing = false;  ///< ModelTunerOptions::keep_packings
  bool out_of_time = false;       ///< the budget ended before its winner was timed in the model
  /// The model runs it with another alternative of a chain only, whose outcome decides about it.
  bool of_chain = false;
};

/// The outcome for one alternative of a chain of operations (kernels/chains/chains.hpp).
struct ChainChange {
  Problem chain;
  std::string alternative;
  std::string instead_of;  ///< the alternative that it was compared with
  ModelPhase phase = ModelPhase::decode;
  LoadPass pass{};                ///< in which the chain runs
  std::vector<Problem> problems;  ///< that the model runs with this alternative only
  /// The time of the phase with `instead_of` divided by that with the alternative.
  std::optional<Interval> end_to_end;
  bool kept = false;
  bool replaced = false;     ///< it was kept until another alternative of the chain was better
  bool out_of_time = false;  ///< the budget ended before it was timed
  std::string why_not;       ///< why the model can't run with it; empty: it can
};

/// Returns the alternatives that a chain could run besides the one that it runs: those that are
/// valid, and that it does not replace by others.
std::vector<std::string> other_alternatives(const ChosenChain& chosen, const DeviceInfo& device);

/// Notes in the other alternatives of the chain that `kept` is what runs now: a chain has one
/// choice.
void replace_others(std::vector<ChainChange>& all, const ChainChange& kept);

struct ModelResult {
  std::vector<ModelChange> changes;  ///< one per problem, by its share of the time
  std::vector<ChainChange> chains;   ///< one per alternative that the model did not run
  std::optional<Interval> whole;     ///< default time over final time, if kernels differ
  bool whole_out_of_time = false;    ///< the budget ended before that comparison
  double seconds = 0;                ///< what everything took
};

/// Receives events while a model is tuned, on the thread that called the tuner. The default
/// implementations do nothing.
class ModelObserver {
 public:
  virtual ~ModelObserver() = default;
  /// The model's problems are known.
  virtual void on_problems(const std::vector<ModelChange>& changes);
  /// It is known how the budget will be spent, and what everything is expected to take. `problems`
  /// are tuned.
  virtual void on_plan(const TimePlan& plan, std::size_t problems, std::size_t chains);
  /// The budget is distributed, and problems may be left out.
  virtual void on_distribution(const Distribution& distribution);
  /// A problem is tuned.
  virtual void on_result(const TaskResult& result);
  /// A problem's winner is timed in the model.
  virtual void on_change(const ModelChange& change);
  /// An alternative of a chain is timed in the model.
  virtual void on_chain(const ChainChange& change);
  /// A part of the work begins.
  virtual void on_begin(std::string_view what);
  /// A part of the work took this long. `since_s` is the time since the beginning.
  virtual void on_phase(std::string_view what, double seconds, double since_s);
};

/// Tunes a whole model: its problems in order of their share of the time. Each winner is then
/// tested in the model, or several together where the budget is too short for each, and only
/// winners that make the model significantly faster are stored in the user's database. So are the
/// alternatives of its chains of operations, each with the winners of the problems that it consists
/// of. The other winners are kept in a separate database of candidates, from which an interrupted
/// run continues.
///
/// The tuner ends with the budget, also where that is too short for the least that the plan needs.
/// Tuning that lasts longer than planned is stopped, comparisons that would end later are left out,
/// and what runs when the budget ends, or `stop` is set, ends before its next step
/// (RuntimeOptions::before_step): a tensor that is loaded, a problem that is compiled, or a pass of
/// the model. A single such step is not interrupted.
class ModelTuner {
 public:
  /// Checks the options and waits for the card. An invalid option is a Failure on its field, as in
  /// Tuner::open(). `observer` receives the events of each problem. The observers and `stop` must
  /// outlive the tuner.
  static Result<std::unique_ptr<ModelTuner>> open(ModelTunerOptions options,
                                                  TunerObserver& observer, ModelObserver& model,
                                                  const std::atomic<bool>& stop);

  /// Tunes the model. Fails with `interrupted` if stopped; what was kept is stored.
  Result<ModelResult> tune();
  /// Checks that the database still has what was kept, as another process reads it, and removes the
  /// database of candidates.
  Result<void> finish(const ModelResult& result) const;

 private:
  /// A device with the model loaded, using the current contents of the user's database.
  struct Bench {
    std::unique_ptr<Runtime> runtime;
    std::optional<LlamaDeviceWeights> weights;
  };
  /// The model as it runs best so far.
  struct Best {
    std::unique_ptr<Runtime> runtime;
    std::unique_ptr<LoadTimer> timer;  ///< uses the runtime

    Best() = default;
    Best(Best&&) = default;
    Best& operator=(Best&& other) noexcept {
      timer = std::move(other.timer);  // the present one ends before its runtime
      runtime = std::move(other.runtime);
      return *this;
    }
  };
  /// Reports a part of the work at the end of its scope.
  class Phase {
   public:
    Phase(const ModelTuner& tuner, std::string what);
    ~Phase();
    Phase(const Phase&) = delete;
    Phase& operator=(const Phase&) = delete;

   private:
    const ModelTuner& tuner_;
    std::string what_;
    Stopwatch watch_;
  };
  /// Times of a phase, before a change and after it, in alternating rounds.
  struct PhaseTimes {
    std::vector<double> before, after;
    std::optional<Interval> ratio;  ///< empty: there was no time
  };
  ModelTuner(ModelTunerOptions options, TunerObserver& observer, ModelObserver& model,
             const std::atomic<bool>& stop)
      : options_(std::move(options)), observer_(observer), model_observer_(model), stop_(stop) {}
  Bench open_model();
  LookupFiles files_of(const std::filesystem::path& own) const;
  std::unique_ptr<Runtime> open_beside(const Runtime& runtime, const LookupFiles& files) const;
  std::unique_ptr<LoadTimer> timer(Runtime& runtime, const Bench& bench) const;
  std::filesystem::path beside_database(const char* what) const;

  /// Returns whether something that takes this long ends in time.
  bool has_time(double seconds) const { return watch_.seconds() + seconds <= end_s_; }
  /// Fails with `interrupted` if the tuner is stopped or the budget has ended.
  Result<void> before_step() const;
  double round_seconds(const LoadTimer& timer, ModelPhase phase) const;
  std::int64_t steps_of_round(const LoadTimer& timer, ModelPhase phase) const;
  double shortest_rounds_s(const LoadTimer& timer) const;
  void measure_comparison(const Bench& bench);
  double add_problems(LoadTimer& timer, const LoadPass& pass);
  void find_problems();
  void time_operations();
  void order_chains(const LoadTimer& timer);
  void find_chains(LoadTimer& timer);
  void find_problems_of_chains(const Bench& bench);
  Result<void> tune_problems();
  bool is_pinned(const Problem& problem) const;
  Best open_best(const Bench& bench) const;
  void judge_changes();
  void keep_packings(const Bench& bench, Best& best);
  void judge_whole(const Bench& bench, Best& best);
  std::vector<ModelChange*> changes_to_judge(const Best& best);
  void judge_problems(const Bench& bench, Best& best, std::vector<ModelChange*> changes,
                      double until_s);
  void judge_together(const Bench& bench, Best& best, const std::vector<ModelChange*>& changes,
                      double limit_s);
  void judge_chains(const Bench& bench, Best& best, double until_s);
  void judge_chain(const Bench& bench, Best& best, ChainChange& change, double limit_s);
  std::vector<StoredWinner> winners_of(const ChainChange& change) const;
  StoredWinner choice_of(const ChainChange& change, const PhaseTimes& times) const;
  PhaseTimes compare(LoadTimer& base, LoadTimer& changed, ModelPhase phase, double limit_s) const;
  void compare_rounds(LoadTimer& base, LoadTimer& changed, ModelPhase phase, double limit_s,
                      PhaseTimes& times) const;
  void store(const Contents& contents) const;

  ModelTunerOptions options_;
  TunerObserver& observer_;
  ModelObserver& model_observer_;
  const std::atomic<bool>& stop_;
  DeviceInfo device_;
  std::vector<CardLock> locks_;
  ModelResult result_;
  std::optional<Bench> bench_;
  bool stays_loaded_ = false;  ///< whether the bench is kept while problems are tuned
  Stopwatch watch_;            ///< since tune()
  double end_s_ = 0;           ///< when everything has to end, since tune()
  TimeNeeds needs_;            ///< measured while the problems are found
};

}  // namespace greta::tuner::model
