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

/// Evaluates in a worker process, which is started again when it dies: a kernel that hangs is
/// killed, a driver that crashes is one candidate's `crash`, and the session goes on. No candidate
/// kills its process: what somebody else killed (SIGKILL) is begun once more in a new one. A
/// device of which no call returns any more ends the session: evaluating throws Error. With
/// EvaluatorOptions::sanitize the worker is started with the sanitizers' runtime, and what they
/// report is the `crash`: their summary its message, all that they say its log.
class WorkerEvaluator : public Evaluator {
 public:
  /// `command` starts a program that calls serve_as_worker(), e.g. {"/proc/self/exe", "worker"}.
  /// `stall_s` after its deadline, a launch is taken for one that never returns. Throws Error when
  /// the worker can't open the device, or there are no sanitizers.
  WorkerEvaluator(std::vector<std::string> command, const EvaluatorOptions& options,
                  double stall_s = 20);
  ~WorkerEvaluator() override;
  WorkerEvaluator(const WorkerEvaluator&) = delete;
  WorkerEvaluator& operator=(const WorkerEvaluator&) = delete;

  const DeviceInfo& device() const override { return info_; }
  const Catalog& catalog() const override { return options_.catalog; }
  void prepare(const Problem& problem, const std::vector<Config>& upcoming) override;
  int lookahead() const override { return lookahead_; }
  Trial evaluate(const Problem& problem, const Config& config, const TrialLimits& limits) override;
  Trial verify(const Problem& problem, const Config& config, std::uint64_t seed,
               const TrialLimits& limits) override;
  Rounds time_rounds(const Problem& problem, const std::vector<Config>& configs, int rounds,
                     double seconds, std::uint64_t seed, const TrialLimits& limits) override;
  std::vector<Trial> take_lost() override { return std::exchange(lost_, {}); }
  void renew() override { stop_worker(false); }
  std::vector<Ceiling> measure_ceilings() override;

  /// The process that serves now; 0 when none runs. For tests that kill it.
  pid_t worker_pid() const { return pid_; }

 private:
  void ensure_started();
  void start();
  /// Starts the program and connects to it.
  void spawn();
  /// Ends the worker and says how it ended.
  std::string stop_worker(bool kill);
  /// The worker's answer, or the failure (`crash`, `timeout`) that the call ended in.
  Result<nlohmann::json> call(const nlohmann::json& request, double deadline_s);
  /// The same in a process that is started where there is none, and once more where it was killed.
  /// `begun` says in its message what is called, and is kept among what is lost.
  Result<nlohmann::json> call_again(const nlohmann::json& request,
                                    const std::function<double()>& deadline_s, const Trial& begun);
  /// call(), which keeps a candidate that a failure of the device ended with an Error.
  Result<nlohmann::json> call_or_lose(const nlohmann::json& request, double deadline_s,
                                      const Trial& begun);
  /// The `timeout` of a call that got no answer. Throws where too many in a row got none.
  Failure unanswered(const std::string& why);
  /// Keeps what a process left undone.
  void lose(Trial begun, const Failure& failure, const char* then);
  /// Seconds that a call may take with these limits.
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
  std::vector<std::string> variables_;    ///< "NAME=value", in the worker's environment
  std::unique_ptr<WorkerErrors> errors_;  ///< of this worker; none where they go to the terminal
  bool driver_cache_ = true;  ///< the worker's driver may keep a shader cache of its own
  bool killed_ = false;       ///< by somebody else, the last worker that ended
  bool stalled_ = false;      ///< the last worker that ended did so in a call that never returned
  int unanswered_ = 0;        ///< calls in a row
  std::vector<Trial> lost_;   ///< until they are taken
  std::string workload_;      ///< problem and seed whose inputs and reference this worker has
};

}  // namespace greta::tuner
