#include "tuner/evaluate/worker.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "db/json.hpp"
#include "runtime/device/system/log.hpp"
#include "runtime/device/system/stall_watch.hpp"
#include "tuner/evaluate/local_evaluator.hpp"
#include "tuner/evaluate/worker_protocol.hpp"

namespace greta::tuner {
namespace {

using nlohmann::json;

Problem problem_of(const json& request) {
  return Problem::parse(request.at("problem").get<std::string>()).value();
}

json answer(LocalEvaluator& evaluator, const json& request) {
  const auto call = request.at("call").get<std::string>();
  if (call == "ceilings") {
    return to_json(evaluator.measure_ceilings(request.at("kinds").get<std::vector<std::string>>()));
  }
  const Problem problem = problem_of(request);
  if (call == "first_ready") {
    return evaluator.first_ready(problem, configs_from_json(request.at("configs")));
  }
  const TrialLimits limits = limits_from_json(request.at("limits"));
  if (call == "evaluate") {
    return to_json(evaluator.evaluate(problem, config_from_json(request.at("config")), limits));
  }
  if (call == "verify") {
    return to_json(evaluator.verify(problem, config_from_json(request.at("config")),
                                    request.at("seed").get<std::uint64_t>(), limits));
  }
  if (call == "rounds") {
    return to_json(evaluator.time_rounds(
        problem, configs_from_json(request.at("configs")), request.at("rounds").get<int>(),
        request.at("seconds").get<double>(), request.at("seed").get<std::uint64_t>(), limits));
  }
  if (call == "energy") {
    const auto energies = evaluator.measure_energy(
        problem, configs_from_json(request.at("configs")), request.at("blocks").get<int>(),
        request.at("seconds").get<double>(), limits);
    if (!energies) return {{"unavailable", energies.failure().message}};
    return {{"energies", to_json(*energies)}};
  }
  if (call == "count") {
    const auto reading =
        evaluator.count(problem, config_from_json(request.at("config")),
                        request.at("counters").get<std::vector<std::string>>(), limits);
    if (!reading) {
      return {{"failure", static_cast<int>(reading.failure().status)},
              {"message", reading.failure().message}};
    }
    return to_json(*reading);
  }
  throw Error("unknown call " + call);
}

json error_answer(const Error& error) {
  return {{"error", error.what()}, {"status", static_cast<int>(error.status())}};
}

/// Time limit of a device call without a deadline (allocating memory, loading a module), as a
/// multiple of the time by which a launch may exceed its deadline.
constexpr double patience = 1.5;

/// Ends this process with a signal that the session recognises and answers with a new process.
void end_when_stalled(double stall_s) {
  std::signal(SIGALRM, SIG_DFL);
  watch_for_stalls({.patience_s = patience * stall_s, .margin_s = stall_s, .end = [] {
                      kill(getpid(), SIGALRM);
                    }});
}

/// Collects the warnings since the last answer, which the next answer passes to the session.
/// Thread-safe, since kernels are compiled in threads.
class Warnings {
 public:
  void add(std::string_view line) {
    const std::lock_guard lock(mutex_);
    lines_.emplace_back(line);
  }
  std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(lines_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace

int serve_as_worker(const Catalog& catalog) {
  const auto warnings = std::make_shared<Warnings>();
  set_log_sink([warnings](LogLevel level, std::string_view line) {
    if (level == LogLevel::warning) warnings->add(line);
  });
  // The session receives these signals as well and decides. When it ends, it closes the connection.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  LineChannel channel(worker_descriptor);
  json request;
  if (channel.receive(request, -1) != LineChannel::Received::message) return 0;
  std::unique_ptr<LocalEvaluator> evaluator;
  try {
    const json ours = greeting(catalog);
    check_greeting(ours, request.value("greeting", json())).value();
    auto options = evaluator_options_from_json(request.at("options"));
    options.catalog = catalog;
    options.reopen = false;
    end_when_stalled(request.at("stall_s").get<double>());
    evaluator = std::make_unique<LocalEvaluator>(options);
    channel.send({{"result",
                   {{"greeting", ours},
                    {"device", to_json(evaluator->device())},
                    {"lookahead", evaluator->lookahead()}}}});
  } catch (const Error& error) {
    channel.send(error_answer(error));
    return 1;
  }
  while (channel.receive(request, -1) == LineChannel::Received::message) {
    if (request.at("call") == "prepare") {
      evaluator->prepare(problem_of(request), configs_from_json(request.at("configs")));
      continue;
    }
    json reply;
    try {
      reply = {{"result", answer(*evaluator, request)}};
    } catch (const Error& error) {
      reply = error_answer(error);
    } catch (const std::exception& error) {  // most likely out of memory
      reply = error_answer(Error(Failure{Status::out_of_memory, error.what(), {}}));
    }
    reply["lost"] = evaluator->lost();
    reply["warnings"] = warnings->take();
    channel.send(reply);
    if (evaluator->lost()) _exit(0);  // destructors would wait for the kernel
  }
  return 0;
}

}  // namespace greta::tuner
