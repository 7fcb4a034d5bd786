#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/pipeline/models/llama_config.hpp"
#include "tuner/measure/statistics.hpp"
#include "tuner/model/model_timer.hpp"
#include "tuner/tuning/distribution.hpp"

namespace greta::tuner::model {

/// A model, its load, and how it is tuned.
struct ModelTunerOptions {
  /// One device, or equal cards, over which the problems are spread; the model runs on the first.
  /// A time budget for the whole model. Winners that make the model faster are stored in the
  /// database.
  TunerOptions tuner;
  LlamaConfig config;
  std::optional<LlamaModel> weights;  ///< nothing: random weights of the architecture
  DType dtype = DType::f16;           ///< of weights, activations and the KV cache
  ModelLoad load;
};

/// The outcome for one of a model's problems.
struct ModelChange {
  Problem problem;
  double share = 0;                    ///< share of the model's time before tuning
  std::optional<StoredWinner> winner;  ///< result of tuning; empty: no search or no winner
  std::optional<Interval> end_to_end;  ///< the model's time without it divided by that with it
  bool kept = false;
};

struct ModelResult {
  std::vector<ModelChange> changes;  ///< one per problem, by its share of the time
  std::optional<Interval> whole;     ///< default time over final time, if kernels differ
};

/// Receives events while a model is tuned, on the thread that called the tuner. The default
/// implementations do nothing.
class ModelObserver {
 public:
  virtual ~ModelObserver() = default;
  /// The model's problems are known.
  virtual void on_problems(const std::vector<ModelChange>& changes);
  /// The budget is distributed, and problems may be left out.
  virtual void on_distribution(const Distribution& distribution);
  /// A problem is tuned.
  virtual void on_result(const TaskResult& result);
  /// A problem's winner is timed in the model.
  virtual void on_change(const ModelChange& change);
};

/// Tunes a whole model: its problems in order of their share of the time. Each winner is then
/// tested in the model, and only winners that make the model significantly faster are stored in the
/// user's database. The other winners are kept in a separate database of candidates, from which an
/// interrupted run continues.
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
  ModelTuner(ModelTunerOptions options, TunerObserver& observer, ModelObserver& model,
             const std::atomic<bool>& stop)
      : options_(std::move(options)), observer_(observer), model_observer_(model), stop_(stop) {}
  Bench open_model() const;
  LookupFiles files_of(const std::filesystem::path& own) const;
  std::unique_ptr<Runtime> open_beside(const Runtime& runtime, const LookupFiles& files) const;
  LlamaOptions llama_options() const;
  std::unique_ptr<ModelTimer> timer(Runtime& runtime, const Bench& bench) const;
  std::filesystem::path beside_database(const char* what) const;

  void find_problems();
  Result<void> tune_problems();
  bool is_pinned(const Problem& problem) const;
  void judge_changes();
  Interval compare(ModelTimer& base, ModelTimer& changed) const;
  void keep(const ModelChange& change) const;

  ModelTunerOptions options_;
  TunerObserver& observer_;
  ModelObserver& model_observer_;
  const std::atomic<bool>& stop_;
  DeviceInfo device_;
  std::vector<CardLock> locks_;
  ModelResult result_;
};

}  // namespace greta::tuner::model
