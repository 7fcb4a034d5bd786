#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "db/trial.hpp"
#include "db/tuned_db.hpp"
#include "kernels/catalog.hpp"
#include "kernels/model/adversarial.hpp"
#include "kernels/model/problem.hpp"
#include "runtime/device/counter_reader.hpp"
#include "runtime/device/device_info.hpp"

namespace greta::tuner {

/// Limits and requirements for the evaluation of one candidate.
struct TrialLimits {
  double run_s = 30;       ///< deadline of one launch, in seconds
  double compile_s = 120;  ///< deadline of compiling; enforced only if the compiler can be killed
  double measure_s = 1;    ///< time limit of sampling
  double best_us = 0;      ///< sampling stops when clearly slower than this; 0: never
  bool cold = true;
  /// How often verify() runs a correct candidate to compare the bits of its results; 0: not again.
  int repeats = 0;
  /// How many small problems that run the same compiled kernels verify() checks besides.
  int small = 0;
  bool reject_spills = false;  ///< candidates that spill fail (`constraints`), unverified
  /// Inputs for verify(). evaluate() always uses plain inputs.
  InputStyle inputs = InputStyle::plain;
};

/// Times of several candidates in interleaved rounds.
struct Rounds {
  std::vector<std::vector<double>> us;  ///< [candidate][round]
  std::vector<int> batch;               ///< launches averaged in each time, per candidate
  int dropped = 0;                      ///< rounds left out because the device's speed drifted
  std::uint64_t flush_bytes = 0;        ///< size of the cache flush before each sample
  std::string clocks;                   ///< after the rounds; empty if not readable
  CardState card_state;                 ///< after the rounds
  std::optional<Failure> failure;       ///< the rounds were cut short; `us` holds the complete ones
};

/// Evaluates candidates: compiles, verifies and measures them. The session chooses the candidates
/// and interprets the results. Implementations evaluate in this process, in a worker process, or
/// from recorded times.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  virtual const DeviceInfo& device() const = 0;
  /// Returns the operations that can be evaluated.
  virtual const Catalog& catalog() const = 0;
  /// Announces the next candidates, so that they may be compiled ahead. Returns immediately.
  virtual void prepare(const Problem& problem, const std::vector<Config>& upcoming) = 0;
  /// Waits until one of these announced candidates of a problem can be evaluated without waiting
  /// for a compiler, and returns its index: the lowest if there are several.
  virtual std::size_t first_ready(const Problem& /*problem*/,
                                  const std::vector<Config>& /*announced*/) {
    return 0;
  }
  /// Returns the number of candidates to announce at a time; 1 if compiling ahead would disturb
  /// measurements.
  virtual int lookahead() const = 0;
  /// Compiles, verifies and times a candidate. A failure of the candidate is stored in the Trial;
  /// only errors that end the run throw.
  virtual Trial evaluate(const Problem& problem, const Config& config,
                         const TrialLimits& limits) = 0;
  /// Only verifies, on inputs drawn from `seed` in the style of the limits.
  virtual Trial verify(const Problem& problem, const Config& config, std::uint64_t seed,
                       const TrialLimits& limits) = 0;
  /// Times verified candidates in `rounds` interleaved rounds, each in random order, with a
  /// reference kernel in every round. Stops early after `seconds`, but not before the first round.
  virtual Rounds time_rounds(const Problem& problem, const std::vector<Config>& configs, int rounds,
                             double seconds, std::uint64_t seed, const TrialLimits& limits) = 0;
  /// Measures the energy of a launch of verified candidates, in that many interleaved blocks of
  /// launches back to back, each of at least `seconds`. Fails with `unavailable` if the device has
  /// no energy counter.
  virtual Result<std::vector<Energy>> measure_energy(const Problem& problem,
                                                     const std::vector<Config>& configs, int blocks,
                                                     double seconds, const TrialLimits& limits);
  /// Counts what one run of a verified candidate does on the hardware, on plain inputs. If the
  /// limits say cold, the caches are flushed before each pass, without the dirty lines that a timed
  /// launch finds, so that all bytes are the candidate's own. Counters of other sources and those
  /// that the GPU lacks are left out. Fails with `unavailable` and one line on why nothing can be
  /// counted. The process that counts must time nothing afterwards (CounterReader).
  virtual Result<CounterReading> count(const Problem& problem, const Config& config,
                                       const std::vector<std::string>& counters,
                                       const TrialLimits& limits);
  /// Restarts the worker process, or reopens the device, so that memory is placed differently.
  virtual void renew() = 0;
  /// Returns the work that was lost when worker processes died and that no other call reports. Each
  /// entry is a trial that failed with `crash`, `timeout` or, if the device was lost, `launch`; its
  /// message says what was running and whether it was restarted. It includes the work of a call
  /// that threw. Configuration and problem are empty if there was none. Clears the list.
  virtual std::vector<Trial> take_lost() { return {}; }
  /// Measures some of ceiling_kinds(). Each may take a few seconds. A matrix rate that can't be
  /// measured is missing in the result.
  virtual std::vector<Ceiling> measure_ceilings(const std::vector<std::string>& kinds) = 0;
};

}  // namespace greta::tuner
