#include "tuner/bench/block_processes.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "db/enum_text.hpp"
#include "db/json.hpp"
#include "kernels/catalog.hpp"
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

// A kernel that ended like this may have left the device in a state in which nothing else works.
bool damages(Status status) {
  return status == Status::timeout || status == Status::launch || status == Status::device_lost;
}

Json failure_json(const Failure& failure) {
  return {{"status", to_string(failure.status)}, {"message", failure.message}};
}

const Failure unreported{Status::crash, "its process did not report it", {}};

// This and processor_from() throw Json::exception for a block of another form.
Result<std::vector<double>> samples_from(const Json& block) {
  if (block.contains("failure")) {
    const Json& failure = block["failure"];
    const auto status = status_from_text(failure.at("status").get<std::string>());
    return Failure{status.value_or(Status::crash), failure.at("message").get<std::string>(), {}};
  }
  auto samples = block.at("samples_us").get<std::vector<double>>();
  if (samples.empty()) return unreported;
  return samples;
}

Result<double> control_from(const Json& block) {
  const auto control = block.find("control_us");
  if (control != block.end() && control->is_number()) return control->get<double>();
  return Failure{Status::unavailable, "no control", {}};
}

ProcessorTime processor_from(const Json& block) {
  return {block.value("cpu_us", std::vector<double>{}), block.value("cpu_control_us", 0.0)};
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
    if (benchmark.processor) block["cpu_us"] = benchmark.processor().samples_us;
    const auto control = benchmark.control();
    if (!control) return block;
    block["control_us"] = *control;
    if (benchmark.processor) block["cpu_control_us"] = benchmark.processor().control_us;
    return block;
  } catch (const Error& error) {
    return {{"failure", failure_json({error.status(), error.what(), {}})}};
  }
}

/// The blocks that a process has taken so far.
struct TakenBlocks {
  int count;
  Json blocks = Json::object();
  bool damaged = false;  ///< no more can be taken

  void take(const std::string& name, const Benchmark& benchmark) {
    if (damaged) return;
    const Json& block = blocks[name] = block_json(benchmark, count);
    if (!block.contains("failure")) return;
    const auto status = status_from_text(block["failure"]["status"].get<std::string>());
    damaged = status && damages(*status);
  }
};

void take_calls(Device& device, const Json& names, TakenBlocks& taken) {
  auto all = platform_benchmarks(device, names_of(platform_names()));
  auto runtime = runtime_benchmarks(device, names_of(runtime_names()));
  std::move(runtime.begin(), runtime.end(), std::back_inserter(all));
  for (const auto& name : names.get<std::vector<std::string>>()) {
    for (const auto& benchmark : all) {
      if (benchmark.name() == name) taken.take(name, benchmark);
    }
  }
}

Json kernels_json(const KernelBenchmarks::Options& options, const Avoided& avoid) {
  return {{"cold", options.cold},
          {"timeout_s", options.timeout_s},
          {"flush_bytes", options.flush_bytes},
          {"seed", options.seed},
          {"avoid_f16", avoid.f16},
          {"avoid_matrix", avoid.matrix}};
}

// The process that measures other kernels holds memory as well.
constexpr double held_share = 0.125;

void take_kernels(Device& device, const Catalog& catalog, const Json& how, const Json& list,
                  TakenBlocks& taken) {
  KernelBenchmarks::Options options;
  options.cold = how.at("cold").get<bool>();
  options.timeout_s = how.at("timeout_s").get<double>();
  options.flush_bytes = how.at("flush_bytes").get<std::uint64_t>();
  options.seed = how.at("seed").get<std::uint64_t>();
  options.held_share = held_share;
  Avoided avoid;
  avoid.f16 = how.at("avoid_f16").get<bool>();
  avoid.matrix = how.at("avoid_matrix").get<bool>();
  const DeviceInfo info = without(device.info(), avoid);
  KernelBenchmarks kernels(device, catalog, info, options);
  for (const auto& entry : list) {
    const auto problem = Problem::parse(entry.at("problem").get<std::string>()).value();
    taken.take(
        entry.at("name").get<std::string>(),
        kernels.make(problem, db::config_from_json(entry.at("config")), ResultOrigin::measured));
  }
}

Json blocks_of(const Catalog& catalog, const Json& request) {
  if (request.contains("core")) stay_on_core(request["core"].get<int>());
  OpenOptions options;
  options.cache_directory = request.at("cache").get<std::string>();
  options.vendor = request.value("vendor", false);
  const auto device =
      std::move(open_device(request.at("device").get<std::string>(), options).value());
  TakenBlocks taken{request.at("count").get<int>()};
  if (request.contains("calls")) {
    take_calls(*device, request["calls"], taken);
    device->trim();  // kernels get memory as in a process without calls
  }
  if (request.contains("kernels")) {
    take_kernels(*device, catalog, request.at("how"), request["kernels"], taken);
  }
  return taken.blocks;
}

}  // namespace

BlockProcesses::BlockProcesses(std::vector<std::string> command, const DeviceInfo& device,
                               const Options& options)
    : command_(std::move(command)),
      device_(device.id()),
      options_(options),
      on_cpu_(device.is_cpu()) {}

Benchmark BlockProcesses::apart(Benchmark benchmark) {
  const std::string name = benchmark.name();
  const Subject& subject = benchmark.subject;
  if (subject.config) kernels_.insert_or_assign(name, Kernel{subject.problem, *subject.config});
  benchmark.take = [this, name](int count) { return take(name, count); };
  benchmark.waiting = [this, name](int count) { return is_waiting(name, count); };
  benchmark.control = [this, name] { return last_.at(name).control_us; };
  if (benchmark.processor) benchmark.processor = [this, name] { return last_.at(name).processor; };
  benchmark.apart = true;
  benchmark.device_bytes = 0;
  return benchmark;
}

void BlockProcesses::expect(const std::vector<std::string>& names) {
  blocks_.clear();
  for (const auto& name : names) blocks_[name];
}

bool BlockProcesses::is_waiting(const std::string& name, int count) const {
  const auto found = blocks_.find(name);
  return found != blocks_.end() && !found->second.empty() && found->second.front().count == count;
}

Result<std::vector<double>> BlockProcesses::take(const std::string& name, int count) {
  auto& queue = blocks_[name];
  while (!queue.empty() && queue.front().count != count) queue.pop_front();
  if (queue.empty()) {
    std::vector<std::string> names;
    for (const auto& [other, blocks] : blocks_) {
      if (blocks.empty() || blocks.back().samples_us) names.push_back(other);  // has not failed
    }
    auto done = run(names, count);
    // Another one may have failed, or ended the process before this one's turn.
    if (queue.empty() && names.size() > 1) done = run({name}, count);
    if (done && queue.empty()) done = unreported;
    if (!done) {
      blocks_.erase(name);
      return done.failure();
    }
  }
  Block block = std::move(queue.front());
  queue.pop_front();
  auto samples = std::move(block.samples_us);
  block.samples_us = std::vector<double>{};
  last_.insert_or_assign(name, std::move(block));
  if (!samples) blocks_.erase(name);
  return samples;
}

std::string BlockProcesses::request(const std::vector<std::string>& names, int count) {
  Json text{{"device", device_}, {"cache", options_.cache_directory.string()}, {"count", count}};
  std::vector<Json> kernels;
  for (const auto& name : names) {
    const auto kernel = kernels_.find(name);
    if (kernel == kernels_.end()) {
      text["calls"].push_back(name);
      continue;
    }
    kernels.push_back({{"name", name},
                       {"problem", kernel->second.problem.key()},
                       {"config", db::to_json(kernel->second.config)}});
  }
  std::shuffle(kernels.begin(), kernels.end(), std::mt19937(started_));
  if (!kernels.empty()) {
    text["kernels"] = kernels;
    text["how"] = kernels_json(options_.kernels, options_.avoid);
    text["vendor"] = options_.vendor;
  } else if (on_cpu_) {
    text["core"] = started_;
  }
  ++started_;
  return text.dump();
}

Result<void> BlockProcesses::run(const std::vector<std::string>& names, int count) {
  const auto patience = patience_of(names.size());
  const auto ended = run_process(command_, request(names, count), patience, options_.stop);
  if (!ended) return ended.failure();
  if (ended->stopped) return Failure{Status::unavailable, "interrupted", {}};
  Json result;
  if (ended->ok()) {
    result = printed_result(ended->output, "blocks").value("blocks", nlohmann::json());
  }
  if (!result.is_object()) {
    std::string why = "the process that measures it " + ended->how_it_ended(patience);
    if (const auto said = ended->last_error_line(); !said.empty()) why += ": " + said;
    return Failure{ended->failure(), why, {}};
  }
  for (const auto& name : names) {
    const auto block = result.find(name);
    if (block == result.end()) continue;
    auto& queue = blocks_[name];
    try {
      queue.push_back({count, samples_from(*block), control_from(*block), processor_from(*block)});
    } catch (const Json::exception&) {
      queue.push_back({count, unreported, unreported, {}});
    }
  }
  return {};
}

bool depends_on_process(const Benchmark& kernel, const DeviceInfo& device) {
  constexpr double most_moved = 64 << 20;
  constexpr std::uint64_t most_created = 256 << 20;
  return !device.is_cpu() && kernel.work.bytes <= most_moved && kernel.device_bytes <= most_created;
}

int serve_blocks(const Catalog& catalog) {
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  const auto request = Json::parse(text, nullptr, false);
  if (!request.is_object()) throw Error("no request on standard input");
  const Json result{{"blocks", blocks_of(catalog, request)}};
  print_json(result, -1);
  return 0;
}

}  // namespace greta::tuner
