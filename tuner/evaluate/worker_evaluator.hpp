#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tuner/evaluate/evaluator.hpp"
#include "tuner/evaluate/local_evaluator.hpp"
#include "tuner/evaluate/worker_environment.hpp"
#include "tuner/evaluate/worker_protocol.hpp"

namespace greta::tuner {

/// Evaluates in a worker process, which is restarted when it dies. A kernel that hangs is killed, a
/// driver crash becomes the `crash` of one candidate, and the session goes on. A worker killed by
/// SIGKILL was killed from outside, so its work is repeated once in a new worker. If the calls of a
/// device no longer return, evaluating throws Error, which ends the session. With
/// EvaluatorOptions::sanitize the worker runs with the sanitizers' runtime, and a report becomes a
/// `crash` with the summary as message and the whole report as log.
class WorkerEvaluator : public Evaluator {
 public:
  /// `command` starts a program that calls serve_as_worker(), e.g. {"/proc/self/exe", "worker"}. A
  /// launch that exceeds its deadline by `stall_s` seconds is considered hung. Throws Error if the
  /// worker can't open the device or there are no sanitizers.
  WorkerEvaluator(std::vector<std::string> command, const EvaluatorOptions& options,
                  double stall_s = 20);
  ~WorkerEvaluator() override;
  WorkerEvaluator(const WorkerEvaluator&) = delete;
  WorkerEvaluator& operator=(const WorkerEvaluator&) = delete;

  const DeviceInfo& device() const override { return info_; }
  const Catalog& catalog() const override { return options_.catalog; }
  void prepare(const Problem& problem, const std::vector<Config>& upcoming) override;
  std::size_t first_ready(const Problem& problem, const std::vector<Config>& announced) override;
  int lookahead() const override { return lookahead_; }
  Trial evaluate(const Problem& problem, const Config& config, const TrialLimits& limits) override;
  Trial verify(const Problem& problem, const Config& config, std::uint64_t seed,
               const TrialLimits& limits) override;
  Rounds time_rounds(const Problem& problem, const std::vector<Config>& configs, int rounds,
                     double seconds, std::uint64_t seed, const TrialLimits& limits) override;
  std::vector<Trial> take_lost() override { return std::exchange(lost_, {}); }
  void renew() override { stop_worker(false); }
  Result<std::vector<Energy>> measure_energy(const Problem& problem,
                                             const std::vector<Config>& configs, int blocks,
                                             double seconds, const TrialLimits& limits) override;
  Result<CounterReading> count(const Problem& problem, const Config& config,
                               const std::vector<std::string>& counters,
                               const TrialLimits& limits) override;
  std::vector<Ceiling> measure_ceilings(const std::vector<std::string>& kinds) override;

  /// Returns the process id of the current worker; 0 if there is none. For tests that kill it.
  pid_t worker_pid() const { return pid_; }

 private:
  void ensure_started();
  void start();
  /// Starts the program and connects to it.
  void spawn();
  /// Ends the worker and returns how it ended.
  std::string stop_worker(bool kill);
  /// Returns the worker's answer, or the failure (`crash`, `timeout`) that ended the call.
  Result<nlohmann::json> call(const nlohmann::json& request, double deadline_s);
  /// Like call(), but starts a worker if there is none, and repeats the call once if the worker was
  /// killed from outside. The message of `begun` describes the call; it is kept among the lost
  /// work.
  Result<nlohmann::json> call_again(const nlohmann::json& request,
                                    const std::function<double()>& deadline_s, const Trial& begun);
  /// Like call(), but keeps the candidate as lost work if a device failure ends it with an Error.
  Result<nlohmann::json> call_or_lose(const nlohmann::json& request, double deadline_s,
                                      const Trial& begun);
  bool stopped() const { return options_.stop != nullptr && *options_.stop; }
  /// Waits for an answer. After a stop it waits a moment for work that ends by itself, then kills
  /// the worker and throws Error (`interrupted`).
  LineChannel::Received receive(nlohmann::json& reply, double deadline_s);
  /// Returns the `timeout` of an unanswered call. Throws after too many of them in a row.
  Failure unanswered(const std::string& why);
  /// Keeps the work that a process left unfinished.
  void lose(Trial begun, const Failure& failure, const char* then);
  /// Returns the deadline of a call with these limits, in seconds.
  double deadline(const Problem& problem, std::uint64_t seed, const TrialLimits& limits);
  Trial trial_call(nlohmann::json request, const Problem& problem, const Config& config,
                   std::uint64_t seed, const TrialLimits& limits);

  std::vector<std::string> command_;
  EvaluatorOptions options_;
  double stall_s_;
  DeviceInfo info_;
  int lookahead_ = 1;
  pid_t pid_ = 0;
  int descriptor_ = -1;
  std::unique_ptr<LineChannel> channel_;
  std::vector<std::string> variables_;    ///< "NAME=value", for the worker's environment
  std::unique_ptr<WorkerErrors> errors_;  ///< this worker's; null if it writes to the terminal
  bool driver_cache_ = true;              ///< the worker's driver may use its own shader cache
  bool killed_ = false;                   ///< the last worker was killed from outside
  bool stalled_ = false;                  ///< the last worker ended in a call that did not return
  int unanswered_ = 0;                    ///< number of consecutive unanswered calls
  std::vector<Trial> lost_;               ///< returned by take_lost()
  std::string workload_;                  ///< problem and seed of the worker's inputs and reference
};

}  // namespace greta::tuner
