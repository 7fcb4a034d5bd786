#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tuner/evaluate/evaluator_pool.hpp"
#include "tuner/tuning/observer.hpp"
#include "tuner/tuning/tuner_options.hpp"

namespace greta::tuner {

/// The evaluators of a lane: for each device model, the cards that share its candidates.
using LaneCards = std::vector<std::vector<Evaluator*>>;

/// Groups evaluators by device model (cards that run the same kernels with the same driver), and
/// distributes each model's cards over as many lanes as every model has cards, at most `most`.
/// Devices of the same card are in the same lane, because a card measures one thing at a time.
std::vector<LaneCards> make_lanes(const std::vector<Evaluator*>& evaluators, std::size_t most);

/// What is the same for all tasks of a run.
struct RunContext {
  const TunerOptions& options;
  std::uint64_t seed = 0;
  std::string date;  ///< when the run began
  TunedDb& db;
  TunerObserver& observer;
  const std::atomic<bool>& stop;
  std::int64_t run = 0;  ///< id in the database; 0: none, so that sessions can't be resumed
};

/// Tunes one task at a time: on each device model in turn each form of its problem, then compares
/// the winners. If a model
/// has several cards, those that measure alike share its candidates.
class Lane {
 public:
  Lane(LaneCards cards, const RunContext& context);

  /// Tunes a task, with `seconds` in place of its share of the budget, if given. Throws Error. If
  /// the error is of a card, lose_card() may be called, and the task be tuned again.
  TaskResult tune(const TuningTask& task, std::optional<double> seconds = {});
  /// Leaves out the card that made tune() throw. Returns whether the lane can go on.
  bool lose_card();
  /// Returns the cards that have not been lost; none if the lane can't go on.
  std::vector<DeviceInfo> cards() const;
  std::size_t models() const { return models_.size(); }
  /// Returns the device that tune() used last, for messages.
  const DeviceInfo& device() const;

 private:
  struct Model {
    std::vector<Evaluator*> cards;
    std::unique_ptr<EvaluatorPool> pool{};  ///< made for the first task
    std::size_t lost = 0;                   ///< number of its lost cards that were reported
  };
  void open_pool(Model& model, const Problem& problem, std::vector<std::string>& notes);
  void report_lost(Model& model);
  SessionOptions session_options(const TuningTask& task, std::optional<double> seconds) const;
  std::vector<Config> suggestions(const Problem& problem, const DeviceInfo& device) const;
  Config answered(const Problem& problem, const DeviceInfo& device) const;
  /// Tunes a form of the task's problem on the current model.
  SessionResult tune_form(const TuningTask& task, const Problem& form, SessionOptions& options,
                          std::vector<std::string> notes);
  void compare(TaskResult& result, const SessionOptions& options);

  RunContext context_;
  std::vector<Model> models_;
  bool lost_ = false;        ///< a model has no card left
  std::size_t current_ = 0;  ///< model that tune() used last
};

/// Returns the configurations of a task to try first, with their parameters in the space's order.
Result<std::vector<Config>> configs_to_try(const Operation& operation, const TuningTask& task,
                                           const DeviceInfo& device);

}  // namespace greta::tuner
