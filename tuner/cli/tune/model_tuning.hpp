#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tuner/cli/model/model_options.hpp"
#include "tuner/cli/options/tuning_options.hpp"
#include "tuner/cli/tune/task_list.hpp"
#include "tuner/evaluate/card_lock.hpp"
#include "tuner/measure/statistics.hpp"

namespace greta::tuner::cli {

struct ModelTuningOptions {
  TuningOptions tuning;
  std::string path;  ///< a model with weights; empty: an architecture
  ArchitectureChoice model;
  std::string dtype;
};

/// The outcome for one of a model's problems.
struct ModelChange {
  Problem problem;
  double share = 0;                    ///< share of the model's time before tuning
  std::optional<StoredWinner> winner;  ///< result of tuning; empty: no search or no winner
  std::optional<Interval> end_to_end;  ///< the model's time without it divided by that with it
  bool kept = false;
};

/// Tunes a whole model: its problems in order of their share of the time. Each winner is then
/// tested in the model, and only winners that make the model significantly faster are stored in the
/// user's database. The other winners are kept in a separate database of candidates, from which an
/// interrupted run continues.
class ModelTuning {
 public:
  /// Throws CommandError and Error.
  explicit ModelTuning(const ModelTuningOptions& options);
  int run();

 private:
  /// A device with the model loaded, using the current contents of the user's database.
  struct Bench {
    std::unique_ptr<Runtime> runtime;
    std::optional<LlamaDeviceWeights> weights;
  };
  Bench open_model() const;
  LlamaOptions llama_options() const;
  std::unique_ptr<ModelTimer> timer(Runtime& runtime, const Bench& bench) const;
  std::filesystem::path beside_database(const char* what) const;

  void find_problems();
  void tune_problems();
  void judge_changes();
  Interval compare(ModelTimer& base, ModelTimer& changed) const;
  void keep(const ModelChange& change) const;
  void check_stored() const;
  std::string report() const;

  ModelTuningOptions options_;
  std::optional<LlamaModel> files_;
  LlamaConfig config_;
  RuntimeChoice choice_;
  DeviceInfo device_;
  std::vector<CardLock> locks_;
  std::vector<ModelChange> changes_;
  std::optional<Interval> whole_;  ///< default time over final time, if kernels differ
};

}  // namespace greta::tuner::cli
