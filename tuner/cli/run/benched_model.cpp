#include "tuner/cli/run/benched_model.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "runtime/device/system/utc.hpp"
#include "runtime/pipeline/llama/needs.hpp"
#include "tuner/cli/model/packing_option.hpp"
#include "tuner/measure/clocks.hpp"
#include "tuner/measure/statistics.hpp"
#include "tuner/report/format.hpp"

namespace greta::tuner::cli {

BenchedModel::BenchedModel(const ModelBenchOptions& options, LlamaConfig config)
    : options_(options), config_(std::move(config)), date_(utc_now()) {
  RuntimeChoice untuned = options.runtime;
  untuned.untuned = true;
  untuned.use.clear();
  untuned_ = open_runtime(untuned);
  Device& device = untuned_->device();
  const DType dtype = run_dtype(options.runtime, config_.dtype.value_or(DType::f16), device.info());
  tell_idle_permission(options.runtime.allow, config_, dtype);
  const std::int64_t ways = beside_default().empty() ? 2 : 4;
  load_needs(*untuned_, config_, dtype, options.model.load, options.seed, ways)
      .check(device.info());
  if (!beside_default().empty()) {
    tuned_ = open_beside(*untuned_, lookup_files(options.runtime), options.runtime);
  }
  packing_ = apply_packing(tuned_ ? *tuned_ : *untuned_, config_, dtype,
                           load_passes(options.model.load, config_, options.seed),
                           options.runtime.packing);
  weights_ = random_weights(*untuned_, config_, dtype, options.seed);
}

/// Returns what runs beside default configurations: "tuned", "forced"; empty: nothing.
std::string BenchedModel::beside_default() const {
  if (!options_.runtime.use.empty()) return "forced";
  return options_.runtime.untuned ? "" : "tuned";
}

void BenchedModel::tell_unused() const {
  if (tuned_) tell_unused_rules(*tuned_);
}

void BenchedModel::for_each_way(const Visit& visit) {
  for (const bool graph : {true, false}) {
    if (tuned_) visit(*tuned_, beside_default(), graph);
  }
  for (const bool graph : {true, false}) visit(*untuned_, "default", graph);
}

MeasuredResult BenchedModel::result_of(
    const std::string& kernels, bool graph, const std::string& name,
    const std::vector<double>& samples,
    std::vector<std::pair<std::string, std::int64_t>> dims) const {
  const auto origin = kernels == "default"  ? ResultOrigin::untuned
                      : kernels == "forced" ? ResultOrigin::chosen
                                            : ResultOrigin::winner;
  const std::string model = std::filesystem::path(options_.model.config).filename().string();
  MeasuredResult result;
  result.subject = {.problem = {.op = name,
                                .dtype = weights_->dtype,
                                .out_dtype = weights_->dtype,
                                .attributes = {{"model", model}, {"graph", graph ? "on" : "off"}},
                                .dims = std::move(dims)},
                    .origin = origin,
                    .cache = CacheState::warm};
  if (!options_.model.quantize.empty()) {
    result.subject.problem.attributes.emplace_back("quantize", options_.model.quantize);
  }
  const DeviceInfo& device = untuned_->device().info();
  result.subject.set_device(device);
  const Interval interval = median_interval(samples, 0.95);
  const double typical = median(samples);
  result.us = {.median = typical,
               .low = interval.low,
               .high = interval.high,
               .p99 = quantile(samples, 0.99),
               .spread_percent = 100 * (quantile(samples, 0.9) - quantile(samples, 0.1)) / typical};
  result.count = samples.size();
  result.date = date_;
  result.clocks = read_conditions(device.card.pci_address).clocks;
  result.samples.blocks_us = {samples};
  return result;
}

std::string BenchedModel::memory_text(std::uint64_t weights, std::uint64_t cache,
                                      std::uint64_t passes) const {
  const MemoryStatistics memory = untuned_->device().memory();
  return fmt::format("memory: {} weights, {} cache, {} passes; {} at most for all ways together\n",
                     format_bytes(static_cast<double>(weights)),
                     format_bytes(static_cast<double>(cache)),
                     format_bytes(static_cast<double>(passes)),
                     format_bytes(static_cast<double>(memory.peak_bytes)));
}

std::string time_cell(const std::vector<double>& samples, double parts) {
  const Interval interval = median_interval(samples, 0.95);
  return format_time(median(samples) / parts, interval.low / parts, interval.high / parts);
}

std::string spread_text(const std::vector<double>& samples) {
  if (samples.size() < 2) return "";
  const Interval interval = median_interval(samples, 0.95);
  return " ± " + format_share((interval.high - interval.low) / 2 / median(samples));
}

}  // namespace greta::tuner::cli
