#include "tuner/profile/profiler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "kernels/launch/prepared_plan.hpp"
#include "runtime/device/backend.hpp"
#include "tuner/evaluate/workload.hpp"
#include "tuner/measure/cache_flush.hpp"
#include "tuner/measure/ceilings.hpp"
#include "tuner/measure/stopwatch.hpp"
#include "tuner/profile/figures.hpp"

namespace greta::tuner {
namespace {

constexpr double profiler_confidence = 0.95;
constexpr int first_rounds = 10;
constexpr int most_rounds = 200;
constexpr int energy_blocks = 3;
constexpr double energy_block_s = 1;

TrialLimits limits_of(const ProfileRequest& request) {
  TrialLimits limits;
  limits.run_s = request.run_s;
  limits.cold = request.cold;
  limits.measure_s = std::min(limits.measure_s, request.seconds);
  return limits;
}

class Profiler {
 public:
  Profiler(Evaluator& timing, const ProfileRequest& request,
           const std::function<void(const std::string&)>& announce)
      : timing_(timing), request_(request), announce_(announce), limits_(limits_of(request)) {}

  Profile run(const OpenCounting& counting) {
    begin();
    verify();
    time();
    if (request_.energy) measure_energy();
    count(counting);
    return std::move(profile_);
  }

 private:
  void begin() {
    const Operation& operation = timing_.catalog().at(request_.problem.op);
    profile_.problem = request_.problem;
    profile_.device = timing_.device();
    profile_.cold = request_.cold;
    profile_.work = operation.work(request_.problem);
    profile_.copy_gbps = ceiling(request_.ceilings, ceiling_copy);
    profile_.arithmetic_gflops =
        arithmetic_gflops(request_.problem.dtype, profile_.work, request_.ceilings);
    profile_.roofline_us = roofline_us(request_.problem.dtype, profile_.work, request_.ceilings);
    for (const auto& [name, config] : request_.ways) {
      profile_.ways.push_back({.name = name, .config = config});
    }
  }

  void verify() {
    for (ProfiledWay& way : profile_.ways) {
      announce_(fmt::format("verifying and timing the {}", way.name));
      way.trial = timing_.evaluate(request_.problem, way.config, limits_);
      const Measurement& taken = way.trial.measurement;
      way.kernels = static_kernels(timing_.catalog().at(request_.problem.op), request_.problem,
                                   timing_.device(), way.trial);
      if (way.trial.ok()) way.us = {taken.low_us, taken.high_us, taken.median_us};
    }
  }

  /// Returns the positions of the ways that run.
  std::vector<std::size_t> right() const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < profile_.ways.size(); ++i) {
      if (profile_.ways[i].trial.ok()) found.push_back(i);
    }
    return found;
  }

  std::vector<Config> configs(const std::vector<std::size_t>& positions) const {
    std::vector<Config> list;
    for (const std::size_t i : positions) list.push_back(profile_.ways[i].config);
    return list;
  }

  void time() {
    const auto ways = right();
    if (ways.size() < 2) return;
    announce_("timing all of them in rounds");
    const double launch_s = 1e-6 * total_us(ways);
    const int rounds = std::clamp(static_cast<int>(request_.seconds / std::max(launch_s, 1e-3)),
                                  first_rounds, most_rounds);
    const Rounds taken = timing_.time_rounds(request_.problem, configs(ways), rounds,
                                             request_.seconds, request_.seed, limits_);
    // A single round says less than the samples before it.
    if (taken.us.size() != ways.size() || taken.us.front().size() < 2) return;
    std::optional<std::size_t> fallback;
    for (std::size_t i = 0; i < ways.size(); ++i) {
      ProfiledWay& way = profile_.ways[ways[i]];
      way.us = median_interval(taken.us[i], profiler_confidence);
      if (way.name == "default") fallback = i;
    }
    if (!fallback) return;
    for (std::size_t i = 0; i < ways.size(); ++i) {
      if (i == *fallback) continue;
      const Interval ratio = ratio_interval(taken.us[*fallback], taken.us[i], profiler_confidence);
      if (std::isfinite(ratio.high)) profile_.ways[ways[i]].speedup = ratio;
    }
  }

  double total_us(const std::vector<std::size_t>& ways) const {
    double us = 0;
    for (const std::size_t i : ways) us += profile_.ways[i].us.estimate;
    return us;
  }

  void measure_energy() {
    const auto ways = right();
    if (ways.empty()) return;
    announce_("measuring the energy of a launch");
    const auto energies = timing_.measure_energy(request_.problem, configs(ways), energy_blocks,
                                                 energy_block_s, limits_);
    if (!energies) return;
    for (std::size_t i = 0; i < ways.size(); ++i) {
      profile_.ways[ways[i]].energy = (*energies)[i];
    }
  }

  void count(const OpenCounting& counting) {
    const auto ways = right();
    if (ways.empty()) {
      profile_.no_counters = "no configuration ran";
      return;
    }
    announce_("counting in a process of its own");
    std::unique_ptr<Evaluator> counts;
    try {
      counts = counting();
      for (const std::size_t i : ways) count(*counts, profile_.ways[i]);
    } catch (const Error& error) {
      if (error.status() == Status::interrupted) throw;
      for (const std::size_t i : ways) {
        ProfiledWay& way = profile_.ways[i];
        if (!way.counters && way.no_counters.empty()) way.no_counters = error.what();
      }
    }
    const bool some = std::any_of(profile_.ways.begin(), profile_.ways.end(),
                                  [](const ProfiledWay& way) { return bool(way.counters); });
    if (!some) profile_.no_counters = profile_.ways[ways.front()].no_counters;
  }

  void count(Evaluator& counts, ProfiledWay& way) {
    const auto names = counter_names();
    auto counted =
        figures_of(counts.count(request_.problem, way.config, names, limits_), request_.cold);
    if (counted) {
      way.counters = *std::move(counted);
    } else {
      way.no_counters = counted.failure().message;
    }
  }

  Evaluator& timing_;
  const ProfileRequest& request_;
  const std::function<void(const std::string&)>& announce_;
  TrialLimits limits_;
  Profile profile_;
};

}  // namespace

Profile profile(Evaluator& timing, const OpenCounting& counting, const ProfileRequest& request,
                const std::function<void(const std::string&)>& announce) {
  return Profiler(timing, request, announce).run(counting);
}

Result<void> launch_once(const EvaluatorOptions& options, const Problem& problem,
                         const Config& config, bool cold, double run_s) {
  OpenOptions open;
  open.cache_directory = options.cache_directory;
  open.vendor = options.vendor;
  auto device = open_device(options.device, open);
  if (!device) return device.failure();
  const Operation& operation = options.catalog.at(problem.op);
  auto plan = operation.plan(problem, without((*device)->info(), options.avoid), config);
  if (!plan) return plan.failure();
  auto workload = Workload::create(**device, operation, problem);
  if (!workload) return workload.failure();
  if (auto set = workload->set_inputs(**device, options.seed, InputStyle::plain); !set) return set;
  const auto prepared =
      PreparedPlan::create(**device, *plan, workload->operands(),
                           [&](const KernelSource& source) { return (*device)->compile(source); });
  if (!prepared) return prepared.failure();
  auto stream = (*device)->create_stream();
  if (!stream) return stream.failure();
  std::optional<CacheFlush> flush;
  if (cold) {
    auto created = CacheFlush::create(**device, default_flush_bytes((*device)->info()));
    if (!created) return created.failure();
    flush = *std::move(created);
    if (auto recorded = flush->record(**stream, 0); !recorded) return recorded;
    if (auto done = (*stream)->synchronize(deadline_of(run_s)); !done) return done;
  }
  if (auto recorded = prepared->record(**stream); !recorded) return recorded;
  return (*stream)->synchronize(deadline_of(run_s));
}

}  // namespace greta::tuner
