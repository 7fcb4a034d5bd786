#include "tuner/replay/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "kernels/model/random.hpp"
#include "runtime/device/system/input_file.hpp"

namespace greta::tuner {
namespace {

constexpr double microseconds_per_millisecond = 1000;
constexpr std::uint64_t most_recording_bytes = std::uint64_t{1} << 30;
constexpr double failed = std::numeric_limits<double>::infinity();

void shuffle(std::vector<int>& values, std::mt19937_64& random) {
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[uniform_below(random, i)]);
  }
}

/// Parses "16,1,4": one value per parameter, in order.
Config read_key(const Alternative& alternative, const std::string& key) {
  const auto values = nlohmann::json::parse("[" + key + "]").get<std::vector<int>>();
  if (values.size() != alternative.parameters.size()) throw Error("wrong number of values: " + key);
  Config config{alternative.variant, {}};
  for (std::size_t i = 0; i < values.size(); ++i) {
    config.values.emplace_back(alternative.parameters[i].name, values[i]);
  }
  return config;
}

Alternative read_parameters(const nlohmann::json& json) {
  Alternative alternative{json.at("kernel_name").get<std::string>(), {}, {}};
  for (const auto& name : json.at("tune_params_keys")) {
    const auto values = json.at("tune_params").at(name.get<std::string>());
    alternative.parameters.push_back({name.get<std::string>(), values.get<std::vector<int>>()});
  }
  return alternative;
}

}  // namespace

Result<Recording> Recording::load(const std::filesystem::path& file, std::uint64_t shuffle_seed) {
  Recording recording;
  Times& times = *recording.times_;
  Alternative alternative;
  try {
    const auto json = nlohmann::json::parse(read_file(file, most_recording_bytes).value());
    alternative = read_parameters(json);
    recording.device_name_ = json.value("device_name", "");
    for (const auto& [key, entry] : json.at("cache").items()) {
      const auto& time = entry.at("time");
      times[read_key(alternative, key)] =
          time.is_number() ? time.get<double>() * microseconds_per_millisecond : failed;
    }
  } catch (const std::exception& error) {
    return Failure{
        Status::io, fmt::format("recording {} can't be read: {}", file.string(), error.what()), {}};
  }
  if (times.empty()) return Failure{Status::io, file.string() + " records nothing", {}};
  std::mt19937_64 random(shuffle_seed);
  std::vector<std::string> all;
  for (Parameter& parameter : alternative.parameters) {
    if (shuffle_seed != 0) shuffle(parameter.values, random);
    all.push_back(parameter.name);
  }
  alternative.constraints.push_back(
      {"recorded",
       "it was not measured",
       {std::move(all),
        [table = recording.times_](const Config& config) { return table->count(config) != 0; }}});
  recording.space_ = std::make_unique<Space>(std::vector{std::move(alternative)});
  recording.optimum_us_ =
      std::min_element(times.begin(), times.end(), [](const auto& a, const auto& b) {
        return a.second < b.second;
      })->second;
  return recording;
}

Trial Recording::trial(const Config& config) const {
  Trial trial;
  trial.config = config;
  const double time = times_->at(config);
  if (time == failed) {
    trial.failure = Status::launch;
    trial.message = "it failed when it was recorded";
    return trial;
  }
  trial.verdict.passed = true;
  trial.measurement.samples_us = {time};
  trial.measurement.median_us = trial.measurement.low_us = trial.measurement.high_us = time;
  return trial;
}

}  // namespace greta::tuner
