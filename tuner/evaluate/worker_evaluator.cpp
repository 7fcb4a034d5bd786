#include "tuner/evaluate/worker_evaluator.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "db/json.hpp"
#include "runtime/device/system/log.hpp"
#include "runtime/device/system/process.hpp"
#include "runtime/device/system/sanitizing.hpp"
#include "tuner/evaluate/repeats.hpp"
#include "tuner/measure/stopwatch.hpp"

namespace greta::tuner {
namespace {

using nlohmann::json;

constexpr double open_s = 60;
constexpr double look_s = 0.05;  // interval between two looks whether the run was stopped
constexpr double grace_s = 0.2;  // time to answer or to end after a stop
constexpr double end_s = 5;      // time to end otherwise
// Time beyond a candidate's own limits: to read back and compare results, and the first time to
// draw inputs and compute the reference of a possibly large problem.
constexpr double check_s = 30;
constexpr double first_s = 300;
// Maximum number of starts, for the case that another process kills the workers as they start.
constexpr int most_starts = 5;
// A driver that hangs tends to hang again. This number of consecutive unanswered calls ends the
// session.
constexpr int most_unanswered = 3;

/// Returns the argument array for execve().
std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

WorkerEvaluator::WorkerEvaluator(std::vector<std::string> command, const EvaluatorOptions& options,
                                 double stall_s)
    : command_(std::move(command)), options_(options), stall_s_(stall_s) {
  if (options.sanitize != Sanitize::none) variables_ = sanitizer_environment({}).value();
  start();
}

WorkerEvaluator::~WorkerEvaluator() {
  stop_worker(stopped());
}

void WorkerEvaluator::spawn() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw Error(fmt::format("no connection for a worker process: {}", std::strerror(errno)));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], worker_descriptor);
  errors_ = options_.sanitize != Sanitize::none ? std::make_unique<WorkerErrors>() : nullptr;
  if (errors_) {
    posix_spawn_file_actions_adddup2(&actions, errors_->descriptor(), STDERR_FILENO);
  }
  auto environment = environment_with(variables_);
  int failed = 0;
  on_lasting_thread([&] {
    failed = posix_spawn(&pid_, command_[0].c_str(), &actions, nullptr,
                         pointers_to(command_).data(), pointers_to(environment).data());
  });
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failed != 0) {
    close(ends[0]);
    pid_ = 0;
    throw Error(fmt::format("can't start {}: {}", command_[0], std::strerror(failed)));
  }
  descriptor_ = ends[0];
  channel_ = std::make_unique<LineChannel>(descriptor_);
}

void WorkerEvaluator::start() {
  const json ours = greeting(catalog());
  for (int starts = 1;; ++starts) {
    const bool cached = driver_cache_;
    spawn();
    Result<json> opened = json();
    try {
      opened = call({{"call", "open"},
                     {"greeting", ours},
                     {"options", to_json(options_)},
                     {"stall_s", stall_s_}},
                    open_s);
      if (opened) check_greeting(ours, opened->value("greeting", json())).value();
    } catch (const Error&) {
      stop_worker(true);
      throw;
    }
    if (opened) {
      info_ = device_from_json(opened->at("device"));
      lookahead_ = opened->at("lookahead").get<int>();
      options_.device = info_.address();  // the next worker must open the same card
      return;
    }
    const bool without_cache = cached && !driver_cache_;
    if (!without_cache && (!killed_ || starts == most_starts)) {
      throw Error(
          Failure{opened.failure().status, "opening the device: " + opened.failure().message, {}});
    }
    Trial begun;
    begun.message = "opening the device";
    lose(std::move(begun), opened.failure(), "; restarted");
  }
}

double WorkerEvaluator::deadline(const Problem& problem, std::uint64_t seed,
                                 const TrialLimits& limits) {
  auto workload = fmt::format("{} {} {}", problem.key(), seed, static_cast<int>(limits.inputs));
  const double preparing_s = workload == workload_ ? check_s : first_s;
  workload_ = std::move(workload);
  const double repeats_s = limits.repeats > 0 ? RepeatLimits().seconds + 3 * limits.run_s : 0;
  const double keeping_s =
      options_.keep_failed.empty() ? 0 : limits.compile_s + FailureKeeper::longest_s(limits.run_s);
  return limits.compile_s + 3 * (1 + limits.small) * limits.run_s + repeats_s + limits.measure_s +
         preparing_s + keeping_s;
}

void WorkerEvaluator::ensure_started() {
  if (stopped()) throw Error(Failure{Status::interrupted, "interrupted", {}});
  if (pid_ == 0) start();
}

std::string WorkerEvaluator::stop_worker(bool kill_it) {
  if (pid_ == 0) return {};
  if (kill_it) kill(pid_, SIGKILL);
  close(descriptor_);
  channel_.reset();
  int status = 0;
  // A worker whose connection is closed ends immediately, unless its driver hangs.
  const Stopwatch watch;
  bool ended = false;
  while (!ended && watch.seconds() < (stopped() ? grace_s : end_s)) {
    ended = waitpid(pid_, &status, WNOHANG) != 0;
    if (!ended) usleep(10'000);
  }
  const bool by_itself = ended && !kill_it && WIFSIGNALED(status);
  killed_ = by_itself && WTERMSIG(status) == SIGKILL;
  stalled_ = by_itself && WTERMSIG(status) == SIGALRM;
  if (!ended) {
    kill(pid_, SIGKILL);
    waitpid(pid_, &status, 0);
  }
  pid_ = 0;
  workload_.clear();
  if (WIFSIGNALED(status)) return "killed by " + signal_text(WTERMSIG(status));
  return fmt::format("exit code {}", WEXITSTATUS(status));
}

Result<json> WorkerEvaluator::call(const json& request, double deadline_s) {
  json reply;
  auto received = LineChannel::Received::closed;
  if (channel_->send(request)) received = receive(reply, deadline_s);
  if (received == LineChannel::Received::timeout) {
    stop_worker(true);
    return unanswered(
        fmt::format("no answer within {:.0f} s: the worker process was killed", deadline_s));
  }
  if (received == LineChannel::Received::closed) {
    const auto how = stop_worker(false);
    if (stalled_) {
      return unanswered("a call of the device did not return: the worker process was ended");
    }
    // Mesa maps its shader cache into memory and gets SIGBUS if the disk of that folder is full.
    if (driver_cache_ && how.find("Bus error") != std::string::npos) {
      driver_cache_ = false;
      variables_.emplace_back("MESA_SHADER_CACHE_DISABLE=true");
    }
    const std::string said = errors_ ? errors_->text() : std::string();
    const std::string report = sanitizer_summary(said);
    return Failure{Status::crash,
                   report.empty() ? fmt::format("the process that ran it died: {}", how) : report,
                   said};
  }
  if (request.at("call") != "open") unanswered_ = 0;
  for (const json& line : reply.value("warnings", json::array())) {
    log(LogLevel::warning, "{}", line.get<std::string>());
  }
  if (reply.value("lost", false)) stop_worker(true);
  if (reply.contains("error")) {
    throw Error(Failure{static_cast<Status>(reply.at("status").get<int>()),
                        reply.at("error").get<std::string>(),
                        {}});
  }
  return reply.at("result");
}

LineChannel::Received WorkerEvaluator::receive(json& reply, double deadline_s) {
  const Stopwatch watch;
  for (double stopped_at = 0;;) {
    const double left_s = deadline_s - watch.seconds();
    const auto received = channel_->receive(reply, std::clamp(left_s, 0.0, look_s));
    if (received != LineChannel::Received::timeout || left_s <= look_s) return received;
    if (!stopped()) continue;
    if (stopped_at == 0) stopped_at = watch.seconds();
    if (watch.seconds() - stopped_at < grace_s) continue;
    stop_worker(true);
    throw Error(Failure{Status::interrupted, "interrupted", {}});
  }
}

Failure WorkerEvaluator::unanswered(const std::string& why) {
  if (++unanswered_ < most_unanswered) return {Status::timeout, why, {}};
  throw Error(Failure{
      Status::timeout,
      fmt::format("{} does not answer, {} times in a row: {}", info_.id(), most_unanswered, why),
      {}});
}

Result<json> WorkerEvaluator::call_again(const json& request,
                                         const std::function<double()>& deadline_s,
                                         const Trial& begun) {
  ensure_started();
  auto reply = call_or_lose(request, deadline_s(), begun);
  if (reply || !killed_) return reply;
  lose(begun, reply.failure(), "; restarted");
  ensure_started();
  return call_or_lose(request, deadline_s(), begun);
}

// call() throws without a result for the candidate, so the candidate is recorded here if there is
// one. Other errors, such as insufficient memory, come from the host or the problem and not from
// the candidate.
Result<json> WorkerEvaluator::call_or_lose(const json& request, double deadline_s,
                                           const Trial& begun) {
  try {
    return call(request, deadline_s);
  } catch (const Error& error) {
    const bool lost = error.status() == Status::device_lost || error.status() == Status::crash;
    const bool named = !begun.config.variant.empty();
    if (named && (lost || error.status() == Status::timeout)) {
      lose(begun, {lost ? Status::crash : Status::timeout, error.what(), {}}, "");
    }
    throw;
  }
}

void WorkerEvaluator::lose(Trial begun, const Failure& failure, const char* then) {
  begun.failure = failure.status;
  begun.card = info_.card.uuid;
  begun.message = fmt::format("{}: {}{}", begun.message, failure.message, then);
  begun.log = failure.log;
  log(LogLevel::warning, "{}", begun.message);
  lost_.push_back(std::move(begun));
}

void WorkerEvaluator::prepare(const Problem& problem, const std::vector<Config>& upcoming) {
  if (upcoming.empty() || lookahead_ == 1) return;
  ensure_started();
  // If the worker has ended, the next call notices it.
  channel_->send({{"call", "prepare"}, {"problem", problem.key()}, {"configs", to_json(upcoming)}});
}

std::size_t WorkerEvaluator::first_ready(const Problem& problem,
                                         const std::vector<Config>& announced) {
  if (announced.size() < 2 || lookahead_ == 1 || channel_ == nullptr) return 0;
  const json request{
      {"call", "first_ready"}, {"problem", problem.key()}, {"configs", to_json(announced)}};
  const auto reply = call(request, TrialLimits{}.compile_s + stall_s_);
  if (reply) return reply->get<std::size_t>();
  Trial begun;
  begun.message = "compiling ahead";
  lose(std::move(begun), reply.failure(), "; restarted");
  return 0;
}

Trial WorkerEvaluator::trial_call(json request, const Problem& problem, const Config& config,
                                  std::uint64_t seed, const TrialLimits& limits) {
  request["problem"] = problem.key();
  request["config"] = to_json(config);
  request["limits"] = to_json(limits);
  Trial trial;
  trial.config = config;
  trial.problem_key = problem.key();
  trial.card = info_.card.uuid;
  trial.message = request.at("call").get<std::string>() == "verify" ? "verifying" : "evaluating";
  const auto reply = call_again(
      request, [&] { return deadline(problem, seed, limits); }, trial);
  if (reply) {
    Trial done = trial_from_json(*reply);
    done.config = config;  // with the words of its values
    return done;
  }
  trial.failure = reply.failure().status;
  trial.message = reply.failure().message;
  trial.log = reply.failure().log;
  return trial;
}

Trial WorkerEvaluator::evaluate(const Problem& problem, const Config& config,
                                const TrialLimits& limits) {
  return trial_call({{"call", "evaluate"}}, problem, config, options_.seed, limits);
}

Trial WorkerEvaluator::verify(const Problem& problem, const Config& config, std::uint64_t seed,
                              const TrialLimits& limits) {
  return trial_call({{"call", "verify"}, {"seed", seed}}, problem, config, seed, limits);
}

Rounds WorkerEvaluator::time_rounds(const Problem& problem, const std::vector<Config>& configs,
                                    int rounds, double seconds, std::uint64_t seed,
                                    const TrialLimits& limits) {
  const json request{
      {"call", "rounds"},         {"problem", problem.key()}, {"configs", to_json(configs)},
      {"rounds", rounds},         {"seconds", seconds},       {"seed", seed},
      {"limits", to_json(limits)}};
  const double each_s = static_cast<double>(configs.size()) * limits.run_s;
  Trial begun;
  begun.config = configs.front();
  begun.problem_key = problem.key();
  begun.message = fmt::format("timing {} in rounds", configs.size() > 1 ? "it and others" : "it");
  const auto reply = call_again(
      request, [&] { return seconds + deadline(problem, options_.seed, limits) + each_s; }, begun);
  if (reply) return rounds_from_json(*reply);
  lose(std::move(begun), reply.failure(), "");
  Rounds lost;
  lost.us.resize(configs.size());
  lost.batch.assign(configs.size(), 1);
  lost.failure = reply.failure();
  return lost;
}

Result<std::vector<Energy>> WorkerEvaluator::measure_energy(const Problem& problem,
                                                            const std::vector<Config>& configs,
                                                            int blocks, double seconds,
                                                            const TrialLimits& limits) {
  Trial begun;
  begun.config = configs.front();
  begun.problem_key = problem.key();
  begun.message = "measuring the energy of it and others";
  const double block_s = seconds + 10;
  const auto reply = call_again(
      {{"call", "energy"},
       {"problem", problem.key()},
       {"configs", to_json(configs)},
       {"blocks", blocks},
       {"seconds", seconds},
       {"limits", to_json(limits)}},
      [&] {
        return blocks * static_cast<double>(configs.size()) * block_s +
               deadline(problem, options_.seed, limits);
      },
      begun);
  if (!reply) {
    lose(std::move(begun), reply.failure(), "");
    return reply.failure();
  }
  if (reply->contains("unavailable"))
    return Failure{Status::unavailable, reply->at("unavailable").get<std::string>(), {}};
  return energies_from_json(reply->at("energies"));
}

Result<CounterReading> WorkerEvaluator::count(const Problem& problem, const Config& config,
                                              const std::vector<std::string>& counters,
                                              const TrialLimits& limits) {
  constexpr double passes = 30;
  Trial begun;
  begun.config = config;
  begun.problem_key = problem.key();
  begun.message = "counting";
  const auto reply = call_again(
      {{"call", "count"},
       {"problem", problem.key()},
       {"config", to_json(config)},
       {"counters", counters},
       {"limits", to_json(limits)}},
      [&] { return deadline(problem, options_.seed, limits) + passes * limits.run_s; }, begun);
  if (!reply) {
    lose(std::move(begun), reply.failure(), "");
    return reply.failure();
  }
  if (!reply->contains("failure")) return reading_from_json(*reply);
  return Failure{static_cast<Status>(reply->at("failure").get<int>()),
                 reply->at("message").get<std::string>(),
                 {}};
}

std::vector<Ceiling> WorkerEvaluator::measure_ceilings(const std::vector<std::string>& kinds) {
  Trial begun;
  begun.message = "measuring the device's peaks";
  const auto reply = call_again(
      {{"call", "ceilings"}, {"kinds", kinds}}, [] { return open_s + first_s; }, begun);
  if (!reply) {
    lose(std::move(begun), reply.failure(), "");
    throw Error(reply.failure());
  }
  return ceilings_from_json(*reply);
}

}  // namespace greta::tuner
