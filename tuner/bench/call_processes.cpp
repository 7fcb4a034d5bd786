#include "tuner/bench/call_processes.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "db/enum_text.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/device/system/process.hpp"
#include "tuner/bench/benchmark_names.hpp"
#include "tuner/bench/machine_benchmarks.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner {
namespace {

using Json = nlohmann::ordered_json;

// Time limit for one block of each benchmark.
std::chrono::seconds patience_of(std::size_t benchmarks) {
  return std::chrono::seconds(60 + 20 * benchmarks);
}

Json failure_json(const Failure& failure) {
  return {{"status", to_string(failure.status)}, {"message", failure.message}};
}

Result<std::vector<double>> samples_from(const Json& block) {
  const Failure unreadable{Status::crash, "its process did not report it", {}};
  try {
    if (block.contains("failure")) {
      const Json& failure = block["failure"];
      const auto status = status_from_text(failure.at("status").get<std::string>());
      return Failure{status.value_or(Status::crash), failure.at("message").get<std::string>(), {}};
    }
    auto samples = block.at("samples_us").get<std::vector<double>>();
    if (samples.empty()) return unreadable;
    return samples;
  } catch (const Json::exception&) {
    return unreadable;
  }
}

Result<double> control_from(const Json& block) {
  const auto control = block.find("control_us");
  if (control != block.end() && control->is_number()) return control->get<double>();
  return Failure{Status::unavailable, "no control", {}};
}

/// Restricts this process to one of the cores that it may run on.
void stay_on_core(int ordinal) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  int left = ordinal % CPU_COUNT(&allowed);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || left-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    static_cast<void>(sched_setaffinity(0, sizeof one, &one));
    return;
  }
}

Json block_json(const Benchmark& benchmark, int count) {
  try {
    const auto samples = benchmark.take(count);
    if (!samples) return {{"failure", failure_json(samples.failure())}};
    Json block{{"samples_us", *samples}};
    const auto control = benchmark.control();
    if (control) block["control_us"] = *control;
    return block;
  } catch (const Error& error) {
    return {{"failure", failure_json({error.status(), error.what(), {}})}};
  }
}

Json blocks_of(const Json& request) {
  if (request.contains("core")) stay_on_core(request["core"].get<int>());
  OpenOptions options;
  options.cache_directory = request.at("cache").get<std::string>();
  const auto device =
      std::move(open_device(request.at("device").get<std::string>(), options).value());
  auto all = platform_benchmarks(*device, names_of(platform_names()));
  auto runtime = runtime_benchmarks(*device, names_of(runtime_names()));
  std::move(runtime.begin(), runtime.end(), std::back_inserter(all));
  Json blocks = Json::object();
  for (const auto& name : request.at("benchmarks").get<std::vector<std::string>>()) {
    for (const auto& benchmark : all) {
      if (benchmark.name() != name) continue;
      blocks[name] = block_json(benchmark, request.at("count").get<int>());
    }
  }
  return blocks;
}

}  // namespace

CallProcesses::CallProcesses(std::vector<std::string> command, const DeviceInfo& device,
                             std::filesystem::path cache_directory)
    : command_(std::move(command)),
      device_(device.id()),
      cache_directory_(std::move(cache_directory)),
      on_one_core_(device.is_cpu()) {}

Benchmark CallProcesses::apart(Benchmark benchmark) {
  const std::string name = benchmark.name();
  benchmark.take = [this, name](int count) { return take(name, count); };
  benchmark.control = [this, name] { return last_control_us_.at(name); };
  benchmark.apart = true;
  return benchmark;
}

void CallProcesses::expect(const std::vector<std::string>& names) {
  blocks_.clear();
  for (const auto& name : names) blocks_[name];
}

Result<std::vector<double>> CallProcesses::take(const std::string& name, int count) {
  auto& queue = blocks_[name];
  while (!queue.empty() && queue.front().count != count) queue.pop_front();
  if (queue.empty()) {
    std::vector<std::string> names;
    for (const auto& entry : blocks_) names.push_back(entry.first);
    auto done = run(names, count);
    if (!done && names.size() > 1) done = run({name}, count);  // another one may have failed
    if (!done) {
      blocks_.erase(name);
      return done.failure();
    }
  }
  const Block block = queue.front();
  queue.pop_front();
  last_control_us_.insert_or_assign(name, block.control_us);
  if (!block.samples_us) blocks_.erase(name);
  return block.samples_us;
}

Result<void> CallProcesses::run(const std::vector<std::string>& names, int count) {
  Json request{{"device", device_},
               {"cache", cache_directory_.string()},
               {"benchmarks", names},
               {"count", count}};
  if (on_one_core_) request["core"] = started_;
  ++started_;
  const auto patience = patience_of(names.size());
  const auto ended = run_process(command_, request.dump(), patience);
  if (!ended) return ended.failure();
  Json result;
  if (ended->ok()) result = printed_result(ended->output, "calls").value("calls", nlohmann::json());
  if (!result.is_object()) {
    std::string why = "the process that measures it " + ended->how_it_ended(patience);
    if (const auto said = ended->last_error_line(); !said.empty()) why += ": " + said;
    return Failure{ended->failure(), why, {}};
  }
  for (const auto& name : names) {
    const Json block = result.value(name, Json::object());
    blocks_[name].push_back({count, samples_from(block), control_from(block)});
  }
  return {};
}

int serve_calls() {
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  const auto request = Json::parse(text, nullptr, false);
  if (!request.is_object()) throw Error("no request on standard input");
  const Json result{{"calls", blocks_of(request)}};
  print_json(result, -1);
  return 0;
}

}  // namespace greta::tuner
