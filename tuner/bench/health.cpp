#include "tuner/bench/health.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>

#include "db/enum_text.hpp"
#include "kernels/catalog.hpp"
#include "kernels/model/problem_rules.hpp"
#include "kernels/sampling/candidates.hpp"
#include "runtime/device/system/log.hpp"
#include "runtime/device/system/process.hpp"
#include "tuner/bench/kernel_benchmarks.hpp"
#include "tuner/measure/stopwatch.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner {
namespace {

constexpr std::int64_t least_launch_s = 30;
constexpr std::size_t matrix_configs = 6;  // per input type
constexpr double cpu_flops = 5e7;          // per configuration on a device that acts as a GPU

Health passed(const std::string& message) {
  return {{}, std::nullopt, message, true, {}, {}, 0};
}
Health failed(const Failure& failure) {
  return {{}, failure.status, failure.message, true, {}, {}, 0};
}
Health nothing(const std::string& message) {
  return {{}, std::nullopt, message, false, {}, {}, 0};
}

Result<void> fill_and_copy(Device& device) {
  constexpr std::size_t bytes = 1 << 20;
  constexpr std::uint32_t pattern = 0xA5C3F00D;
  auto first = device.allocate(bytes), second = device.allocate(bytes);
  auto stream = device.create_stream();
  if (!first) return first.failure();
  if (!second) return second.failure();
  if (!stream) return stream.failure();
  if (auto r = (*stream)->fill(**first, 0, bytes, pattern); !r) return r;
  if (auto r = (*stream)->copy(**second, 0, **first, 0, bytes); !r) return r;
  if (auto r = (*stream)->synchronize(std::chrono::seconds(30)); !r) return r;
  std::vector<std::uint32_t> words(bytes / sizeof pattern);
  const auto view = std::as_writable_bytes(std::span(words));
  if (auto r = device.download(**second, 0, view); !r) return r;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == pattern) continue;
    return Failure{Status::correctness,
                   fmt::format("word {} of a filled and copied buffer is {:#x}, not {:#x}", i,
                               words[i], pattern),
                   {}};
  }
  for (std::size_t i = 0; i < words.size(); ++i)
    words[i] = static_cast<std::uint32_t>(i * 2654435761U);
  const auto sent = words;
  if (auto r = device.upload(**first, 0, view); !r) return r;
  if (auto r = device.download(**first, 0, view); !r) return r;
  if (words != sent) return Failure{Status::correctness, "an upload does not come back", {}};
  return {};
}

Health check_fill(const EvaluatorOptions& options) {
  auto device = open_device(options.device, {});
  if (!device) return failed(device.failure());
  const auto right = fill_and_copy(**device);
  return right ? passed("1 MiB filled, copied and read back") : failed(right.failure());
}

using Listener = std::function<void(const CheckedChoice&)>;

/// What a check tells, and the time that it gives a launch.
struct Tell {
  Listener listener;
  double launch_s;
  void operator()(const CheckedChoice& choice) const { listener(choice); }
};

/// Verifies all candidates until one hangs. Further failures help to explain the first one. Returns
/// the first failure and the number of failures.
Health verify_all(LocalEvaluator& evaluator, const std::vector<Candidate>& choices,
                  const Tell& tell) {
  constexpr std::uint64_t seed = 1;
  TrialLimits limits;
  limits.run_s = tell.launch_s;
  std::optional<Failure> first;
  std::size_t failures = 0;
  for (const auto& [problem, config] : choices) {
    CheckedChoice told{problem.key(), config.text(), seed, "running", {}, {}};
    tell(told);
    const Trial trial = evaluator.verify(problem, config, seed, limits);
    told.status = status_text(trial.failure);
    told.message = trial.message;
    told.log = trial.log;
    tell(told);
    if (trial.ok()) continue;
    ++failures;
    if (!first) {
      first = {
          *trial.failure, fmt::format("{} | {}: {}", told.problem, told.config, trial.message), {}};
    }
    if (trial.failure == Status::timeout) break;
  }
  if (!first) return passed(format_count(choices.size(), "configuration") + " correct");
  if (failures > 1) {
    first->message += fmt::format("; {} of {} configurations fail", failures, choices.size());
  }
  return failed(*first);
}

Health check_ultrasafe(const EvaluatorOptions& options, const Tell& tell) {
  LocalEvaluator evaluator(options);
  const Operation& gemm = options.catalog.at("gemm");
  const auto problem =
      make_problem(gemm, {{{"m", "33"}, {"n", "17"}, {"k", "19"}}, "f32", "f32"}).value();
  const Config config = *gemm.naive;
  if (!gemm.space(problem, evaluator.device()).valid(config)) {
    return failed({Status::constraints, "the simplest kernel is not valid on this device", {}});
  }
  return verify_all(evaluator, {{problem, config}}, tell);
}

// Returns the smallest of an operation's listed sizes, with these types. On a CPU, it is reduced to
// fewer tiles of the same kernel.
Problem small_problem(const Operation& operation, const DTypes& types, const DeviceInfo& device) {
  Problem smallest = typical_problem(operation, types);
  for (std::size_t i = 1; i < operation.sizes.size(); ++i) {
    const Problem problem = typical_problem(operation, types, i);
    if (operand_bytes(operation, problem) < operand_bytes(operation, smallest)) smallest = problem;
  }
  const double flops = operation.work(smallest).flops;
  if (device.is_cpu() && flops > cpu_flops) return operation.stand_in(smallest, cpu_flops / flops);
  return smallest;
}

Health check_defaults(const EvaluatorOptions& options, const std::vector<DType>& inputs,
                      const Tell& tell) {
  LocalEvaluator evaluator(options);
  std::vector<Candidate> choices;
  for (const Operation& operation : options.catalog) {
    for (const DType input : inputs) {
      const auto& all = operation.dtypes;
      const auto types = std::find_if(all.begin(), all.end(),
                                      [&](const DTypes& pair) { return pair.in == input; });
      if (types == all.end()) continue;
      const Problem problem = small_problem(operation, *types, evaluator.device());
      if (operation.space(problem, evaluator.device()).count() == 0) continue;
      choices.push_back({problem, operation.default_config(problem, evaluator.device())});
    }
  }
  if (choices.empty()) return nothing("the device has none of these types");
  return verify_all(evaluator, choices, tell);
}

Health check_matrix(const EvaluatorOptions& options, const Tell& tell) {
  LocalEvaluator evaluator(options);
  const DeviceInfo& device = evaluator.device();
  const Operation& gemm = options.catalog.at("gemm");
  std::vector<Candidate> choices;
  for (const DType type : converted_types()) {
    const auto problem =
        make_problem(gemm,
                     {{{"m", "128"}, {"n", "128"}, {"k", "128"}}, std::string(to_string(type)), ""})
            .value();
    if (gemm.space(problem, device).count() == 0) continue;
    for (auto& choice : sample_candidates(gemm, problem, device, "matrix", matrix_configs, 1)) {
      choices.push_back(std::move(choice));
    }
  }
  if (choices.empty()) return nothing("the device has no matrix operations");
  return verify_all(evaluator, choices, tell);
}

Health run_check(const std::string& check, const EvaluatorOptions& options, const Tell& tell) {
  if (check == "fill") return check_fill(options);
  if (check == "ultrasafe") return check_ultrasafe(options, tell);
  if (check == "default") return check_defaults(options, {DType::f32}, tell);
  if (check == "f16") return check_defaults(options, narrow_types(), tell);
  if (check == "matrix") return check_matrix(options, tell);
  throw Error("no health check " + check);
}

void print_line(const nlohmann::ordered_json& object) {
  print_json(object, -1);
  std::fflush(stdout);  // the process may end at any time
}

void print_choice(const CheckedChoice& choice) {
  print_line({{"choice", choice.problem},
              {"config", choice.config},
              {"seed", choice.seed},
              {"status", choice.status},
              {"message", choice.message},
              {"log", choice.log}});
}

/// Parses the output of print_choice(), with the last state of each choice.
std::vector<CheckedChoice> printed_choices(const std::string& output) {
  std::vector<CheckedChoice> choices;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("choice")) continue;
    if (!choices.empty() && choices.back().status == "running") choices.pop_back();
    choices.push_back({json.value("choice", ""), json.value("config", ""),
                       json.value("seed", std::uint64_t{0}), json.value("status", ""),
                       json.value("message", ""), json.value("log", "")});
  }
  return choices;
}

}  // namespace

std::string health_text(const Health& health) {
  if (!health.applies) return "does not apply: " + health.message;
  if (!health.failure) return "passed: " + health.message;
  return fmt::format("FAILED, {}: {}", to_string(*health.failure), health.message);
}

Health check_health(const std::string& check, const EvaluatorOptions& options, const Listener& tell,
                    double launch_s) {
  Health health;
  try {
    health = run_check(check, options, {tell, launch_s});
  } catch (const Error& error) {
    health = failed({error.status(), error.what(), {}});
  }
  health.check = check;
  return health;
}

int serve_health_check(const std::string& check, const EvaluatorOptions& options, double launch_s) {
  set_log_sink([](LogLevel, std::string_view line) { print(stderr, "{}\n", line); });
  const Health health = check_health(check, options, print_choice, launch_s);
  print_line({{"health", check},
              {"status", status_text(health.failure)},
              {"message", health.message},
              {"applies", health.applies}});
  return health.failure ? 1 : 0;
}

Health check_health_apart(const std::vector<std::string>& command, const std::string& check,
                          const std::string& device, const std::string& cache_directory,
                          std::chrono::seconds deadline, const std::atomic<bool>* stop) {
  std::vector<std::string> words = command;
  // A check has several launches, so that each gets a part of its time.
  const std::int64_t launch_s = std::max<std::int64_t>(least_launch_s, deadline.count() / 4);
  words.insert(words.end(), {check, device, cache_directory, std::to_string(launch_s)});
  const Stopwatch watch;
  const auto ended = run_process(words, {}, deadline, stop);
  if (!ended) throw Error(ended.failure());
  Health health = nothing({});
  health.check = check;
  health.applies = true;
  health.choices = printed_choices(ended->output);
  health.errors = ended->errors;
  health.seconds = watch.seconds();
  if (const auto result = printed_result(ended->output, "health");
      !result.empty() && !ended->killed() && ended->signal == 0) {
    health.failure = status_from_text(result.value("status", ""));
    health.message = result.value("message", "");
    health.applies = result.value("applies", true);
    return health;
  }
  health.failure = ended->failure();
  health.message = "its process " + ended->how_it_ended(deadline);
  // A driver that ends its process prints the reason last: an illegal address, or an assertion.
  std::string said = ended->killed() ? std::string() : ended->last_error_line();
  if (!said.empty()) said.insert(0, ": ");
  std::string running;
  if (!health.choices.empty() && health.choices.back().status == "running") {
    CheckedChoice& last = health.choices.back();
    last.status = status_text(health.failure);
    last.message = health.message + said;
    running = fmt::format(" while it ran {} | {}", last.problem, last.config);
  }
  health.message += running + said;
  return health;
}

}  // namespace greta::tuner
