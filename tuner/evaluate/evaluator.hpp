#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "db/trial.hpp"
#include "db/tuned_db.hpp"
#include "kernels/catalog.hpp"
#include "kernels/model/adversarial.hpp"
#include "kernels/model/problem.hpp"
#include "runtime/device/device_info.hpp"

namespace greta::tuner {

/// How long and how hard one candidate is tried.
struct TrialLimits {
  double run_s = 30;       ///< deadline of one launch
  double compile_s = 120;  ///< deadline of compiling; enforced where the compiler can be killed
  double measure_s = 1;    ///< of sampling
  double best_us = 0;      ///< race against this; 0: no race
  bool cold = true;
  bool reject_spills = false;  ///< a candidate whose kernels spill fails (`constraints`) unverified
  /// What verify() checks with; evaluate() checks and times with plain ones.
  InputStyle inputs = InputStyle::plain;
};

/// Times of several candidates in interleaved rounds.
struct Rounds {
  std::vector<std::vector<double>> us;  ///< [candidate][round]
  std::vector<int> batch;               ///< launches averaged in each time of a candidate
  int dropped = 0;                      ///< rounds left out because the device drifted
  std::uint64_t flush_bytes = 0;        ///< that flushed the caches between samples
  std::string clocks;                   ///< after the rounds, where readable
  std::optional<Failure> failure;       ///< the run was cut short; `us` holds what was complete
};

/// Runs candidates: compile, verify, measure. The session decides what to run and what it means.
/// Implementations: in this process, in a worker process, or replayed from recorded times.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  virtual const DeviceInfo& device() const = 0;
  /// The operations that it knows.
  virtual const Catalog& catalog() const = 0;
  /// Hints that these will be evaluated next, so that they may be compiled ahead. Returns at once.
  virtual void prepare(const Problem& problem, const std::vector<Config>& upcoming) = 0;
  /// How many candidates are worth preparing at a time; 1 where compiling ahead would disturb.
  virtual int lookahead() const = 0;
  /// A failure of the candidate is in the Trial; only trouble that ends the run throws.
  virtual Trial evaluate(const Problem& problem, const Config& config,
                         const TrialLimits& limits) = 0;
  /// Verifies only, on inputs drawn from `seed` as the limits say.
  virtual Trial verify(const Problem& problem, const Config& config, std::uint64_t seed,
                       const TrialLimits& limits) = 0;
  /// Times verified candidates in `rounds` interleaved rounds, each in random order, with a
  /// reference kernel between rounds. Stops early when `seconds` have passed, after at least one.
  virtual Rounds time_rounds(const Problem& problem, const std::vector<Config>& configs, int rounds,
                             double seconds, std::uint64_t seed, const TrialLimits& limits) = 0;
  /// Goes on in a new process, or with the device opened anew, where memory lies elsewhere.
  virtual void renew() = 0;
  /// What processes left undone when they died, and no other call's result tells: each is a trial
  /// that failed with `crash`, `timeout` or, where the device was lost, `launch`, whose message
  /// says what was under way and whether it was begun again. What a call that threw left undone is
  /// among them. A configuration and a problem are empty where there was none. Forgets them.
  virtual std::vector<Trial> take_lost() { return {}; }
  /// Copy bandwidth, FMA rate and those of matrix operations; seconds of work.
  virtual std::vector<Ceiling> measure_ceilings() = 0;
};

}  // namespace greta::tuner
