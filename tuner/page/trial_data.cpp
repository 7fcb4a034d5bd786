#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "db/enum_text.hpp"
#include "runtime/device/text/strings.hpp"
#include "tuner/page/columns.hpp"
#include "tuner/page/importance.hpp"
#include "tuner/page/page_parts.hpp"

namespace greta::tuner {
namespace {

using nlohmann::json;

constexpr std::size_t most_messages = 200;
constexpr std::size_t most_logs = 40;
constexpr std::size_t most_message_bytes = 400;
constexpr std::size_t most_log_bytes = 4000;

/// Distinct texts in the order in which they first occur.
class Names {
 public:
  std::size_t place(const std::string& name) {
    const auto [at, added] = places_.emplace(name, list_.size());
    if (added) list_.push_back(name);
    return at->second;
  }
  const std::vector<std::string>& list() const { return list_; }

 private:
  std::map<std::string, std::size_t> places_;
  std::vector<std::string> list_;
};

/// Returns places as the smallest type that has room for them and for its largest number.
json places_column(const std::vector<std::uint16_t>& places, std::size_t count) {
  constexpr std::uint16_t none = std::numeric_limits<std::uint16_t>::max();
  if (count >= 255) return column(std::span(places));
  std::vector<std::uint8_t> narrow;
  for (const std::uint16_t place : places)
    narrow.push_back(place == none ? std::uint8_t{255} : static_cast<std::uint8_t>(place));
  return column(std::span<const std::uint8_t>(narrow));
}

/// The parameters of trials and each one's values.
struct Parameters {
  explicit Parameters(const std::vector<Trial>& trials) {
    Names known;
    for (const Trial& trial : trials) {
      for (const auto& [name, value] : trial.config.values) {
        const std::size_t place = known.place(name);
        if (place == values.size()) values.emplace_back();
        values[place].insert(value);
      }
    }
    names = known.list();
    for (std::size_t p = 0; p < names.size(); ++p) {
      places.emplace_back(trials.size(), std::numeric_limits<std::uint16_t>::max());
      for (std::size_t i = 0; i < trials.size(); ++i) {
        if (!trials[i].config.has(names[p])) continue;
        const auto at = values[p].find(trials[i].config[names[p]]);
        const auto place = std::distance(values[p].begin(), at);
        if (place < 65535) places[p][i] = static_cast<std::uint16_t>(place);
      }
    }
  }

  std::vector<std::string> names;
  std::vector<std::set<int>> values;
  std::vector<std::vector<std::uint16_t>> places;  ///< [parameter][trial]
};

/// Returns a value of a parameter as the page shows it: the word for it, or the number.
json value_json(const ValueWords& words, const std::string& parameter, int value) {
  const auto known = words.find(parameter);
  if (known == words.end() || value < 0 || std::cmp_greater_equal(value, known->second.size()))
    return value;
  return known->second[static_cast<std::size_t>(value)];
}

/// Messages of failures, each once.
class Messages {
 public:
  /// Returns 0 for none, else its place plus 1.
  std::uint16_t code(const Trial& trial) {
    if (trial.ok()) return 0;
    const std::string text = device::first_line(trial.message).substr(0, most_message_bytes);
    if (text.empty()) return 0;
    const auto known = places_.find(text);
    if (known != places_.end()) {
      ++counts_[known->second];
      return static_cast<std::uint16_t>(known->second + 1);
    }
    if (counts_.size() == most_messages) return 0;
    places_.emplace(text, counts_.size());
    counts_.push_back(1);
    texts_.push_back(text);
    logs_.push_back(logs_.size() < most_logs ? trial.log.substr(0, most_log_bytes) : "");
    return static_cast<std::uint16_t>(counts_.size());
  }

  json list() const {
    json all = json::array();
    for (std::size_t i = 0; i < counts_.size(); ++i)
      all.push_back({{"text", texts_[i]}, {"log", logs_[i]}, {"count", counts_[i]}});
    return all;
  }

 private:
  std::map<std::string, std::size_t> places_;
  std::vector<std::string> texts_, logs_;
  std::vector<std::size_t> counts_;
};

double time_of(const Trial& trial) {
  const double us = trial.measurement.median_us;
  return trial.ok() && us > 0 ? us : std::numeric_limits<double>::quiet_NaN();
}

/// Returns when each trial ended, in seconds since the session began. Where the elapsed budget was
/// not recorded, trials are taken to run one after the other.
std::vector<double> ends_of(const std::vector<Trial>& trials) {
  std::vector<double> ends;
  double sum = 0;
  for (const Trial& trial : trials) {
    sum += trial.compile_s + trial.verify_s + trial.measure_s;
    ends.push_back(trial.elapsed_s > 0 ? trial.elapsed_s : sum);
  }
  return ends;
}

template <typename Get>
json figures_column(const std::vector<Trial>& trials, Get get) {
  std::vector<float> values;
  for (const Trial& trial : trials) {
    double most = trial.kernels.empty() ? std::numeric_limits<double>::quiet_NaN() : 0;
    for (const auto& kernel : trial.kernels)
      most = std::max(most, static_cast<double>(get(kernel.statistics)));
    values.push_back(static_cast<float>(most));
  }
  return column(std::span<const float>(values));
}

template <typename Get>
json times_column(const std::vector<Trial>& trials, Get get) {
  std::vector<float> values;
  for (const Trial& trial : trials) values.push_back(static_cast<float>(get(trial)));
  return column(std::span<const float>(values));
}

void add_figures(json& columns, const std::vector<Trial>& trials) {
  using Kernel = KernelStatistics;
  columns["registers"] = figures_column(trials, [](const Kernel& k) { return k.registers; });
  columns["lds_bytes"] =
      figures_column(trials, [](const Kernel& k) { return k.shared_memory_bytes; });
  columns["spills"] = figures_column(
      trials, [](const Kernel& k) { return std::max(k.scratch_bytes, k.spilled_registers); });
  columns["code_bytes"] = figures_column(trials, [](const Kernel& k) { return k.code_bytes; });
  columns["matrix_instructions"] =
      figures_column(trials, [](const Kernel& k) { return k.matrix_instructions; });
  columns["waves"] = figures_column(trials, [](const Kernel& k) { return k.subgroups_per_simd; });
}

void add_times(json& columns, const std::vector<Trial>& trials) {
  columns["us"] = times_column(trials, time_of);
  const auto bound = [](double Measurement::*which) {
    return [which](const Trial& trial) {
      return std::isnan(time_of(trial)) ? time_of(trial) : trial.measurement.*which;
    };
  };
  columns["low_us"] = times_column(trials, bound(&Measurement::low_us));
  columns["high_us"] = times_column(trials, bound(&Measurement::high_us));
  columns["compile_s"] = times_column(trials, [](const Trial& t) { return t.compile_s; });
  columns["verify_s"] = times_column(trials, [](const Trial& t) { return t.verify_s; });
  columns["measure_s"] = times_column(trials, [](const Trial& t) { return t.measure_s; });
  columns["end_s"] = column(std::span<const double>(ends_of(trials)));
}

/// Returns the fronts of time and of a figure of the kernels.
json front(const std::vector<Trial>& trials, std::uint32_t KernelStatistics::*figure) {
  std::vector<double> times, figures;
  for (const Trial& trial : trials) {
    times.push_back(time_of(trial));
    double most = std::numeric_limits<double>::quiet_NaN();
    for (const auto& kernel : trial.kernels)
      most = std::fmax(most, static_cast<double>(kernel.statistics.*figure));
    figures.push_back(most);
  }
  std::vector<std::int32_t> places;
  for (const std::size_t i : pareto(figures, times)) places.push_back(static_cast<std::int32_t>(i));
  return column(std::span<const std::int32_t>(places));
}

json best_json(const std::vector<Trial>& trials) {
  std::vector<double> numbers, times;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    numbers.push_back(static_cast<double>(i));
    times.push_back(time_of(trials[i]));
  }
  std::vector<std::int32_t> places;
  std::vector<double> best;
  for (const std::size_t i : pareto(numbers, times)) {
    places.push_back(static_cast<std::int32_t>(i));
    best.push_back(times[i]);
  }
  return {{"trial", column(std::span<const std::int32_t>(places))},
          {"us", column(std::span<const double>(best))}};
}

/// Returns the times by the values of each parameter; the variant is parameter −1.
json effects_json(const std::vector<Trial>& trials, const Parameters& parameters,
                  const std::vector<std::string>& variants,
                  const std::vector<std::uint8_t>& variant_of) {
  std::vector<double> times;
  for (const Trial& trial : trials) times.push_back(time_of(trial));
  json effects = json::array();
  const auto add = [&](int parameter, const std::vector<std::uint16_t>& places,
                       std::size_t values) {
    if (values < 2) return;
    json effect{{"parameter", parameter}};
    const auto time = [](const Spread& spread, double us) {
      return spread.count > 0 ? json(us) : json(nullptr);
    };
    for (const Spread& one : spreads_by_value(times, places, values)) {
      effect["trials"].push_back(one.count);
      effect["best_us"].push_back(time(one, one.least));
      effect["quarter_us"].push_back(time(one, one.quarter));
      effect["median_us"].push_back(time(one, one.half));
      effect["three_quarters_us"].push_back(time(one, one.three_quarters));
    }
    effects.push_back(std::move(effect));
  };
  add(-1, {variant_of.begin(), variant_of.end()}, variants.size());
  for (std::size_t p = 0; p < parameters.names.size(); ++p)
    add(static_cast<int>(p), parameters.places[p], parameters.values[p].size());
  return effects;
}

json importance_json(const std::vector<Trial>& trials, const Parameters& parameters,
                     const std::vector<std::uint8_t>& variant_of) {
  // The first column is the variant, of which the page knows as parameter −1.
  Rows rows;
  std::vector<double> times;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (std::isnan(time_of(trials[i]))) continue;
    std::vector<float> row{static_cast<float>(variant_of[i])};
    for (const auto& places : parameters.places)
      row.push_back(places[i] == 65535 ? absent_coordinate : static_cast<float>(places[i]));
    rows.push_back(std::move(row));
    times.push_back(time_of(trials[i]));
  }
  json marginals = json::array(), pairs = json::array();
  const auto measured = measured_importance(rows, times, 0);
  const auto& found = measured.importance;
  for (std::size_t c = 0; c < found.marginals.size(); ++c) {
    const Marginal& one = found.marginals[c];
    if (one.values.size() < 2) continue;
    marginals.push_back({{"parameter", static_cast<int>(c) - 1}, {"share", one.share}});
  }
  for (const auto& pair : found.pairs)
    pairs.push_back({{"a", static_cast<int>(pair.a) - 1},
                     {"b", static_cast<int>(pair.b) - 1},
                     {"share", pair.share}});
  return {{"fit", known(measured.fit)},
          {"rows", rows.size()},
          {"marginals", marginals},
          {"pairs", pairs}};
}

}  // namespace

json trial_data(const std::vector<Trial>& trials, const ValueWords& words) {
  const Parameters parameters(trials);
  Names statuses, variants;
  Messages messages;
  std::vector<std::uint8_t> status, variant, phase, raced;
  std::vector<std::uint16_t> message;
  statuses.place("ok");
  for (const Trial& trial : trials) {
    status.push_back(
        static_cast<std::uint8_t>(statuses.place(std::string(db::status_text(trial.failure)))));
    variant.push_back(static_cast<std::uint8_t>(
        std::min<std::size_t>(255, variants.place(trial.config.variant))));
    phase.push_back(trial.phase ? static_cast<std::uint8_t>(*trial.phase) : std::uint8_t{255});
    raced.push_back(trial.measurement.raced ? 1 : 0);
    message.push_back(messages.code(trial));
  }
  json columns{{"status", column(std::span<const std::uint8_t>(status))},
               {"variant", column(std::span<const std::uint8_t>(variant))},
               {"phase", column(std::span<const std::uint8_t>(phase))},
               {"raced", column(std::span<const std::uint8_t>(raced))},
               {"message", column(std::span<const std::uint16_t>(message))}};
  add_times(columns, trials);
  add_figures(columns, trials);
  json names = json::array();
  for (std::size_t p = 0; p < parameters.names.size(); ++p) {
    json values = json::array();
    for (const int value : parameters.values[p])
      values.push_back(value_json(words, parameters.names[p], value));
    names.push_back({{"name", parameters.names[p]}, {"values", values}});
    columns["p" + std::to_string(p)] =
        places_column(parameters.places[p], parameters.values[p].size());
  }
  return {{"trials", trials.size()},
          {"statuses", statuses.list()},
          {"variants", variants.list()},
          {"parameters", names},
          {"messages", messages.list()},
          {"columns", columns},
          {"best", best_json(trials)},
          {"fronts",
           {{"registers", front(trials, &KernelStatistics::registers)},
            {"lds_bytes", front(trials, &KernelStatistics::shared_memory_bytes)}}},
          {"effects", effects_json(trials, parameters, variants.list(), variant)},
          {"importance", importance_json(trials, parameters, variant)}};
}

}  // namespace greta::tuner
