#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tuner/cli/model_options.hpp"
#include "tuner/cli/tune/task_list.hpp"
#include "tuner/cli/tuning_options.hpp"
#include "tuner/evaluate/card_lock.hpp"
#include "tuner/measure/statistics.hpp"

namespace greta::tuner::cli {

struct ModelTuningOptions {
  TuningOptions tuning;
  std::string path;  ///< a model with weights; empty: an architecture
  ArchitectureChoice model;
  std::string dtype;
};

/// What became of one of a model's problems.
struct ModelChange {
  Problem problem;
  double share = 0;                    ///< of the model's time before
  std::optional<StoredWinner> winner;  ///< that tuning found; nothing: no search, or no winner
  std::optional<Interval> end_to_end;  ///< the model's time without it over that with it
  bool kept = false;
};

/// Tunes a whole model: its problems by their share of the time, then each winner is put to the
/// test in the model itself, and only what makes the model faster for sure reaches the user's
/// database. Until then winners are in a database of candidates beside it, from which an
/// interrupted run goes on.
class ModelTuning {
 public:
  /// Throws CommandError and Error.
  explicit ModelTuning(const ModelTuningOptions& options);
  int run();

 private:
  /// A device with the model on it, as the user's database has it so far.
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
  std::optional<Interval> whole_;  ///< the model's default time over its time at the end, where
                                   ///< that runs anything else
};

}  // namespace greta::tuner::cli
