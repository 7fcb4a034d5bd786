#include "tuner/replay/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <utility>

#include "kernels/catalog.hpp"
#include "kernels/model/problem_rules.hpp"
#include "kernels/model/random.hpp"
#include "kernels/prior/prior.hpp"
#include "runtime/device/system/input_file.hpp"
#include "tuner/replay/gzip.hpp"
#include "tuner/search/ranking.hpp"

namespace greta::tuner {
namespace {

constexpr std::uint64_t most_recording_bytes = std::uint64_t{1} << 30;

/// Returns 0 … count-1 in a random order.
std::vector<std::uint16_t> random_order(std::size_t count, std::mt19937_64& random) {
  std::vector<std::uint16_t> order(count);
  std::iota(order.begin(), order.end(), std::uint16_t{0});
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[uniform_below(random, i)]);
  return order;
}

/// The order of one variant's parameters and of their values: new place -> place in the file.
struct VariantOrder {
  std::vector<std::uint16_t> parameters;
  std::vector<std::vector<std::uint16_t>> values;  ///< by place in the file: old -> new

  VariantOrder(const Alternative& alternative, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto order = [&](std::size_t count) {
      if (seed != 0) return random_order(count, random);
      std::vector<std::uint16_t> same(count);
      std::iota(same.begin(), same.end(), std::uint16_t{0});
      return same;
    };
    parameters = order(alternative.parameters.size());
    for (const Parameter& parameter : alternative.parameters) {
      values.push_back(order(parameter.values.size()));
    }
  }

  Alternative applied(const Alternative& alternative) const {
    Alternative result{alternative.variant, {}, {}};
    for (const std::size_t parameter : parameters) {
      const auto& from = alternative.parameters[parameter];
      Parameter moved{from.name, std::vector<int>(from.values.size())};
      for (std::size_t value = 0; value < from.values.size(); ++value) {
        moved.values[values[parameter][value]] = from.values[value];
      }
      result.parameters.push_back(std::move(moved));
    }
    return result;
  }

  Choice applied(const Choice& choice) const {
    Choice result{choice.variant, {}};
    for (const std::size_t parameter : parameters) {
      result.values.push_back(values[parameter][choice.values[parameter]]);
    }
    return result;
  }
};

/// Adds the constraint that a configuration was recorded.
void constrain(Alternative& alternative, const std::vector<Space::Positions>& valid) {
  auto listed = std::make_shared<const Space>(
      Space::listed({alternative}, std::vector<std::vector<Space::Positions>>{valid}));
  std::vector<std::string> all;
  for (const Parameter& parameter : alternative.parameters) all.push_back(parameter.name);
  alternative.constraints.push_back(
      {"recorded", "it was not measured", {std::move(all), [listed](const Config& config) {
                                             return listed->index(config).has_value();
                                           }}});
}

}  // namespace

Recording::Recording(std::shared_ptr<const RecordedSpace> recorded, std::uint64_t shuffle_seed)
    : recorded_(std::move(recorded)) {
  std::vector<VariantOrder> orders;
  std::vector<Alternative> alternatives;
  for (const Alternative& alternative : recorded_->alternatives) {
    const std::uint64_t seed = shuffle_seed == 0 ? 0 : mix64(shuffle_seed + orders.size());
    orders.emplace_back(alternative, seed);
    alternatives.push_back(orders.back().applied(alternative));
  }
  std::vector<std::vector<Space::Positions>> valid(alternatives.size());
  std::vector<Choice> choices;
  for (const RecordedRow& row : recorded_->rows) {
    choices.push_back(orders[row.choice.variant].applied(row.choice));
    valid[row.choice.variant].push_back(choices.back().values);
  }
  for (std::size_t i = 0; i < alternatives.size(); ++i) constrain(alternatives[i], valid[i]);
  space_ = std::make_shared<const Space>(Space::listed(std::move(alternatives), std::move(valid)));
  rows_.resize(space_->count());
  optimum_us_ = std::numeric_limits<double>::infinity();
  for (std::size_t row = 0; row < choices.size(); ++row) {
    rows_[*space_->index(choices[row])] = static_cast<std::uint32_t>(row);
  }
  for (const std::uint32_t row : rows_) {
    const RecordedRow& recorded_row = recorded_->rows[row];
    if (!recorded_row.failure) optimum_us_ = std::min(optimum_us_, recorded_row.time_us);
  }
}

Recording Recording::shuffled(std::uint64_t seed) const {
  return {recorded_, mix64(seed) | 1};
}

Result<Recording> Recording::load(const std::filesystem::path& file, std::uint64_t shuffle_seed) {
  const auto unreadable = [&](const std::string& why) {
    return Failure{
        Status::io, fmt::format("recording {} can't be read: {}", file.string(), why), {}};
  };
  try {
    std::string text = read_file(file, most_recording_bytes).value();
    bool cut = false;
    if (is_gzip(text)) {
      auto decompressed = decompress_beginning(text, most_recording_bytes);
      if (!decompressed) return unreadable(decompressed.failure().message);
      text = std::move(decompressed->text);
      cut = !decompressed->complete;
      if (cut && text.empty()) return unreadable("its compressed data ends early");
    }
    auto recorded = std::make_shared<RecordedSpace>(read_recorded_space(std::move(text)));
    recorded->completed = recorded->completed || cut;
    if (recorded->rows.empty()) return unreadable("it records nothing");
    return Recording(std::move(recorded), shuffle_seed);
  } catch (const nlohmann::json::parse_error&) {
    return unreadable("it is not valid JSON");
  } catch (const nlohmann::json::exception&) {
    return unreadable("it lacks a field of a recording, or has one of another type");
  } catch (const std::exception& error) {
    return unreadable(error.what());
  }
}

Trial Recording::trial(const Choice& choice) const {
  const RecordedRow& row = recorded_->rows[rows_.at(space_->index(choice).value())];
  Trial trial;
  trial.config = space_->config(choice);
  if (row.failure) {
    trial.failure = row.failure;
    trial.message = row.message;
    return trial;
  }
  trial.verdict.passed = true;
  trial.measurement.samples_us = {row.time_us};
  trial.measurement.median_us = trial.measurement.low_us = trial.measurement.high_us = row.time_us;
  return trial;
}

std::vector<Trial> Recording::trials() const {
  std::vector<Trial> trials;
  for (const RecordedRow& row : recorded_->rows) trials.push_back(trial(row.choice));
  return trials;
}

std::optional<Recording::Subject> Recording::subject() const {
  static const Catalog catalog = Catalog::built_in();
  const auto problem = Problem::parse(recorded_->problem);
  if (!problem || !recorded_->device) return std::nullopt;
  const Operation* const operation = catalog.find(problem->op);
  if (operation == nullptr || !check_problem(*operation, *problem)) return std::nullopt;
  return Subject{operation, *problem, *recorded_->device};
}

SearchProblem::Prior Recording::prior() const {
  const auto recorded = subject();
  if (!recorded || !has_prior(*recorded->operation)) return nullptr;
  const auto prior = std::make_shared<const StaticPrior>(*recorded->operation, recorded->problem,
                                                         recorded->device);
  // Variants may have other parameters today than when they were recorded.
  return [prior, space = space_](const Choice& choice) {
    constexpr double unknown = std::numeric_limits<double>::infinity();
    const auto today = prior->instance().migrate(space->config(choice));
    return today ? prior->cost(today->config).value_or(unknown) : unknown;
  };
}

}  // namespace greta::tuner
