#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "runtime/device/text/hash.hpp"
#include "tests/catalog.hpp"
#include "tuner/evaluate/local_evaluator.hpp"
#include "tuner/measure/ceilings.hpp"
#include "tuner/measure/sampler.hpp"

namespace greta::test {

/// Simulates a device by formulas. Tests set times and failures.
class FakeEvaluator : public Evaluator {
 public:
  FakeEvaluator() {
    info_.backend = Api::vulkan;
    info_.name = "Fake GPU";
    info_.vendor = "NVIDIA";
    info_.architecture = "sm_90";
    info_.driver = "fake 1.0";
    info_.compiler = "fake compiler";
    info_.kind = DeviceKind::discrete_gpu;
    info_.max_workgroup_invocations = 1024;
    info_.max_workgroup_size = {1024, 1024, 64};
    info_.max_grid = {1U << 30, 65535, 65535};
    info_.shared_memory_bytes = 48 * 1024;
    info_.subgroup_size = info_.min_subgroup_size = info_.max_subgroup_size = 32;
    info_.max_argument_bytes = 256;
    info_.compute_units = 132;
    info_.memory_bytes = 1ULL << 37;
    info_.max_allocation_bytes = 1ULL << 36;
    info_.last_level_cache_bytes = 64ULL << 20;
    info_.timestamp_period_ns = 1;
    info_.f16_arithmetic = info_.f16_storage = true;
  }

  const Catalog& catalog() const override { return test::catalog(); }
  const DeviceInfo& device() const override { return info_; }
  void prepare(const Problem&, const std::vector<Config>& upcoming) override {
    prepared_ += upcoming.size();
  }
  std::size_t first_ready(const Problem&, const std::vector<Config>& announced) override {
    return ready ? ready(announced) : 0;
  }
  int lookahead() const override { return lookahead_; }

  Trial evaluate(const Problem& problem, const Config& config, const TrialLimits& limits) override {
    if (interrupts_ && interrupts_(config)) {
      throw Error(Failure{Status::interrupted, "interrupted", {}});
    }
    evaluating_ = problem.key();
    if (throws_) throws_();
    if (limits_seen) limits_seen(limits);
    if (dies(config)) {
      lose(problem, config, Status::timeout);
      throw Error(Failure{Status::timeout, "the device does not answer", {}});
    }
    if (is_killed(config)) lose(problem, config, Status::crash);
    ++evaluated_[config];
    problems_.push_back(problem.key());
    Trial trial = verify(problem, config, 0, limits);
    if (!trial.ok()) return trial;
    SamplingLimits sampling;
    sampling.best_us = limits.best_us;
    trial.measurement = sample_until_sure(
                            [&](int count) -> Result<std::vector<double>> {
                              std::vector<double> us;
                              for (int i = 0; i < count; ++i) us.push_back(draw(problem, config));
                              return us;
                            },
                            sampling)
                            .value();
    return trial;
  }

  Trial verify(const Problem& problem, const Config& config, std::uint64_t seed,
               const TrialLimits& limits) override {
    Trial trial;
    trial.config = config;
    trial.problem_key = problem.key();
    trial.kernels = kernels_of(config);
    trial.content_keys = content_keys(config);
    if (limits.reject_spills && !check_spills(trial.kernels)) {
      rejected_.push_back(config);
      trial.failure = Status::constraints;
      return trial;
    }
    trial.failure = seed == 0 ? fails(config) : fails_last_check(config);
    if (rounds_failed_ && fails_in_rounds(config)) trial.failure = Status::timeout;
    if (trial.failure) trial.message = failure_message_;
    trial.verdict = {!trial.failure, 1e-6, 1e-5, "full", trial.failure ? "planted" : ""};
    return trial;
  }

  Rounds time_rounds(const Problem& problem, const std::vector<Config>& configs, int rounds, double,
                     std::uint64_t, const TrialLimits&) override {
    timed_.insert(configs.begin(), configs.end());
    if (--dies_in_rounds_after_ == 0) {
      throw Error(Failure{Status::timeout, "the device does not answer", {}});
    }
    Rounds result;
    result.us.resize(configs.size());
    result.batch.assign(configs.size(), 1);
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < configs.size(); ++i) {
        if (fails_in_rounds(configs[i])) {
          result.failure = Failure{Status::timeout, "planted", {}};
          rounds_failed_ = true;
          return result;
        }
      }
      if (drifting_rounds_ > 0) {
        --drifting_rounds_;
        ++result.dropped;
        continue;
      }
      for (std::size_t i = 0; i < configs.size(); ++i) {
        result.us[i].push_back(draw(problem, configs[i]));
      }
    }
    return result;
  }

  Result<std::vector<Energy>> measure_energy(const Problem&, const std::vector<Config>& configs,
                                             int, double, const TrialLimits&) override {
    if (!joules_) return Failure{Status::unavailable, "the driver reports no energy", {}};
    std::vector<Energy> energies;
    for (const Config& config : configs) {
      const double joules = joules_(config);
      energies.push_back({joules, 0.98 * joules, 1.02 * joules, 300, 10, "fake energy counter"});
    }
    return energies;
  }
  void renew() override {
    ++renewed_;
    if (renews_) renews_();
  }
  std::vector<Trial> take_lost() override { return std::exchange(undone_, {}); }

  std::vector<Ceiling> measure_ceilings(const std::vector<std::string>& kinds) override {
    std::vector<Ceiling> measured;
    for (const std::string& kind : kinds) {
      if (before_peaks_) before_peaks_();
      ++ceilings_measured_;
      measured.push_back({kind, kind == ceiling_copy ? 4000 : fma_gflops_, 1, info_.driver,
                          "2026-01-01T00:00:00Z"});
    }
    return measured;
  }

  /// Returns one kernel, which spills for every third configuration and for the defaults of all
  /// problems.
  std::vector<KernelFigures> kernels_of(const Config& config) const {
    KernelFigures kernel{"gemm/" + config.variant, {}};
    kernel.statistics.registers = static_cast<std::uint32_t>(config.hash() % 256);
    const Problem usual = Problem::parse("gemm dtype=f32 out=f32 m=512 n=512 k=512").value();
    const bool is_default = config == built_in("gemm").default_config(usual, info_);
    if (is_default || config.hash() % 3 == 0) kernel.statistics.scratch_bytes = 64;
    return {kernel};
  }

  // Behaviour that tests set.
  std::function<std::string(const Config&)> content_keys = [](const Config& config) {
    return config.text();
  };
  std::function<double(const Config&)> factor = [](const Config& config) {
    return 1.0 + 0.5 * static_cast<double>(config.hash() % 1000) / 1000;
  };
  std::function<std::optional<Status>(const Config&)> fails = [](const Config&) {
    return std::optional<Status>{};
  };
  std::function<std::optional<Status>(const Config&)> fails_last_check = fails;
  std::function<bool(const Config&)> fails_in_rounds = [](const Config&) { return false; };
  /// Returns which of several candidates is compiled first. Empty: in the order of the queue.
  std::function<std::size_t(const std::vector<Config>&)> ready;
  /// The device is lost with these configurations: evaluating throws.
  std::function<bool(const Config&)> dies = [](const Config&) { return false; };
  /// The process that evaluates it, which is begun again.
  std::function<bool(const Config&)> is_killed = [](const Config&) { return false; };
  std::function<void()> throws_;                        ///< called by evaluate(); may throw
  std::function<void()> renews_;                        ///< called by renew()
  std::function<void(const TrialLimits&)> limits_seen;  ///< called by evaluate()
  int dies_in_rounds_after_ = -1;  ///< number of calls of time_rounds() until the device is lost
  int drifting_rounds_ = 0;        ///< first rounds, which are dropped
  /// The energy of a launch; empty: there is no counter.
  std::function<double(const Config&)> joules_;
  std::string failure_message_ = "planted";
  double noise = 0.005;
  double speed = 1;  ///< factor for all kernels; ceilings are not affected
  double fma_gflops_ = 50000;
  int lookahead_ = 4;

  // State that tests inspect.
  DeviceInfo info_;
  std::map<Config, int> evaluated_;
  std::string evaluating_;  ///< problem of the last call of evaluate()
  std::vector<std::string> problems_;
  std::set<Config> timed_;  ///< in rounds
  std::size_t prepared_ = 0;
  std::vector<Config> rejected_;
  /// Whether a stop ends the trial of a configuration, as in a worker process.
  std::function<bool(const Config&)> interrupts_;
  int ceilings_measured_ = 0;           ///< number of peaks
  std::function<void()> before_peaks_;  ///< called before each peak
  int renewed_ = 0;
  bool rounds_failed_ = false;

 private:
  std::vector<Trial> undone_;

  void lose(const Problem& problem, const Config& config, Status status) {
    Trial& begun = undone_.emplace_back();
    begun.config = config;
    begun.problem_key = problem.key();
    begun.failure = status;
    begun.message = "evaluating: planted";
  }

  double draw(const Problem& problem, const Config& config) {
    const double flops = built_in(problem.op).work(problem).flops;
    const double ideal_us = flops / fma_gflops_ / 1e3;
    return ideal_us * 2 * factor(config) / speed * std::exp(noise * normal_(random_));
  }
  std::mt19937_64 random_{11};
  std::normal_distribution<double> normal_{0, 1};
};

}  // namespace greta::test
