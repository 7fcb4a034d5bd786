#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tuner/tuning/lane.hpp"

namespace greta::tuner {

/// Tunes tasks on several cards at the same time, one on each lane.
class Lanes {
 public:
  using Done = std::function<void(const TuningTask&, const TaskResult&)>;

  /// Makes at most `most` lanes of the evaluators, which must outlive this object together with
  /// everything in `context`.
  Lanes(const std::vector<Evaluator*>& evaluators, std::size_t most, const RunContext& context);
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  /// Tunes tasks: on one lane in the given order, on several the expensive ones first, each on the
  /// lane that is free. With a deadline, begins no task shortly before it or later, except for the
  /// first. Calls `done` on this thread for each task that ends, and begins no further
  /// task once a result was not stored. If a card fails, the observer is told, and its task is
  /// begun again by another card; after the second card that failed in it, it is given up. Fails
  /// with the error that ends the run: of the last card, or any that is not of a card.
  Result<void> run(const std::vector<TuningTask>& tasks, const Done& done);

 private:
  class Run;

  RunContext context_;
  std::unique_ptr<SerialObserver> observer_;
  std::vector<std::unique_ptr<Lane>> lanes_;  ///< those with cards that work
};

}  // namespace greta::tuner
