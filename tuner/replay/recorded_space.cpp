#include "tuner/replay/recorded_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "db/enum_text.hpp"
#include "tuner/replay/json_completion.hpp"
#include "tuner/replay/space_recording.hpp"

namespace greta::tuner {
namespace {

using nlohmann::json;

/// Tools write times of failed configurations as numbers that no kernel takes.
constexpr double longest_ms = 1e15;
constexpr std::size_t most_values = std::numeric_limits<std::uint16_t>::max();

bool less_value(const json& a, const json& b) {
  const auto rank = [](const json& value) {
    return value.is_boolean() ? 0 : value.is_number() ? 1 : 2;
  };
  if (rank(a) != rank(b)) return rank(a) < rank(b);
  return a < b;
}

/// Collects a variant's configurations, whose values may be any JSON scalars.
class VariantRows {
 public:
  explicit VariantRows(std::vector<std::string> parameters) : names_(std::move(parameters)) {
    values_.resize(names_.size());
  }

  void declare(std::size_t parameter, const json& value) {
    if (!value.is_primitive()) throw Error("parameter " + names_[parameter] + " is not a scalar");
    values_[parameter].push_back(value);
  }

  void add(const json& configuration) {
    std::vector<json> row;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const json& value = configuration.at(names_[i]);
      declare(i, value);
      row.push_back(value);
    }
    rows_.push_back(std::move(row));
  }

  /// Returns the parameters with their values in ascending order.
  std::vector<Parameter> parameters() {
    std::vector<Parameter> parameters;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      auto& list = values_[i];
      std::sort(list.begin(), list.end(), less_value);
      list.erase(std::unique(list.begin(), list.end()), list.end());
      if (list.size() > most_values) throw Error("parameter " + names_[i] + " has too many values");
      const bool integers = std::all_of(list.begin(), list.end(), [](const json& value) {
        return value.is_number_integer() && value >= std::numeric_limits<int>::min() &&
               value <= std::numeric_limits<int>::max();
      });
      Parameter parameter{names_[i], {}};
      for (std::size_t code = 0; code < list.size(); ++code) {
        parameter.values.push_back(integers ? list[code].get<int>() : static_cast<int>(code));
      }
      parameters.push_back(std::move(parameter));
    }
    return parameters;
  }

  /// Returns the configurations in order of add(), after parameters().
  std::vector<std::vector<std::uint16_t>> positions() const {
    std::vector<std::vector<std::uint16_t>> all;
    all.reserve(rows_.size());
    for (const auto& row : rows_) {
      std::vector<std::uint16_t> positions;
      for (std::size_t i = 0; i < row.size(); ++i) {
        const auto found =
            std::lower_bound(values_[i].begin(), values_[i].end(), row[i], less_value);
        positions.push_back(static_cast<std::uint16_t>(found - values_[i].begin()));
      }
      all.push_back(std::move(positions));
    }
    return all;
  }

 private:
  std::vector<std::string> names_;
  std::vector<std::vector<json>> values_;  ///< by parameter
  std::vector<std::vector<json>> rows_;
};

/// Returns the failure that the name of an error means.
Status failure_named(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("ompil")) return Status::compile;
  if (has("nvalidConfig") || has("onstraint")) return Status::constraints;
  if (has("orrect")) return Status::correctness;
  if (has("imeout")) return Status::timeout;
  return Status::launch;
}

RecordedRow row_of(const json& time, double scale_us) {
  RecordedRow row;
  if (time.is_number() && time.get<double>() > 0 && time.get<double>() < longest_ms) {
    row.time_us = time.get<double>() * scale_us;
    return row;
  }
  row.failure = time.is_string() ? failure_named(time.get<std::string>()) : Status::launch;
  row.message = time.is_string() ? time.get<std::string>() : "no time was recorded";
  return row;
}

/// Collects the rows of a recording by variant.
class SpaceRows {
 public:
  bool has(const std::string& variant) const { return place_.contains(variant); }

  VariantRows& begin(const std::string& variant, std::vector<std::string> parameters) {
    place_.emplace(variant, variants_.size());
    names_.push_back(variant);
    return variants_.emplace_back(std::move(parameters));
  }

  void add(const std::string& variant, const json& configuration, RecordedRow row) {
    row.choice.variant = place_.at(variant);
    variants_[row.choice.variant].add(configuration);
    rows_.push_back(std::move(row));
  }

  RecordedSpace finish() {
    RecordedSpace space;
    std::vector<std::vector<std::vector<std::uint16_t>>> positions;
    for (std::size_t i = 0; i < variants_.size(); ++i) {
      space.alternatives.push_back({names_[i], variants_[i].parameters(), {}});
      positions.push_back(variants_[i].positions());
    }
    std::vector<std::size_t> next(variants_.size());
    for (RecordedRow& row : rows_) {
      const std::uint32_t variant = row.choice.variant;
      row.choice.values = std::move(positions[variant][next[variant]++]);
    }
    space.rows = std::move(rows_);
    return space;
  }

 private:
  std::map<std::string, std::uint32_t> place_;
  std::vector<std::string> names_;
  std::vector<VariantRows> variants_;
  std::vector<RecordedRow> rows_;
};

/// Reads a value of a key like "16,1,True,fast".
json value_in_key(const std::string& text) {
  if (text == "True" || text == "False") return text == "True";
  json value = json::parse(text, nullptr, false);
  return value.is_discarded() || !value.is_primitive() ? json(text) : value;
}

/// Returns the configuration of a cache entry: from its fields, or from the key if it lacks some.
json configuration_of(const std::vector<std::string>& names, const std::string& key,
                      const json& entry) {
  if (std::all_of(names.begin(), names.end(),
                  [&](const std::string& name) { return entry.contains(name); })) {
    return entry;
  }
  json configuration = json::object();
  std::size_t begin = 0;
  for (const std::string& name : names) {
    if (begin > key.size()) throw Error("wrong number of values: " + key);
    const std::size_t end = std::min(key.find(',', begin), key.size());
    configuration[name] = value_in_key(key.substr(begin, end - begin));
    begin = end + 1;
  }
  if (begin <= key.size()) throw Error("wrong number of values: " + key);
  return configuration;
}

RecordedSpace read_kernel_tuner(const json& file) {
  const auto names = file.at("tune_params_keys").get<std::vector<std::string>>();
  const auto kernel = file.at("kernel_name").get<std::string>();
  SpaceRows collected;
  VariantRows& variant = collected.begin(kernel, names);
  const json& declared = file.at("tune_params");
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (const json& value : declared.at(names[i])) variant.declare(i, value);
  }
  for (const auto& [key, entry] : file.at("cache").items()) {
    collected.add(kernel, configuration_of(names, key, entry),
                  row_of(entry.contains("time") ? entry["time"] : json(), 1000));
  }
  RecordedSpace space = collected.finish();
  space.device_name = file.value("device_name", "");
  return space;
}

/// Returns how many microseconds a unit of time has; T4 leaves it out where it is milliseconds.
double microseconds(const std::string& unit) {
  static const std::map<std::string, double> units{{"", 1e3},
                                                   {"ms", 1e3},
                                                   {"milliseconds", 1e3},
                                                   {"miliseconds", 1e3},
                                                   {"s", 1e6},
                                                   {"seconds", 1e6},
                                                   {"us", 1},
                                                   {"microseconds", 1},
                                                   {"ns", 1e-3},
                                                   {"nanoseconds", 1e-3}};
  const auto found = units.find(unit);
  if (found == units.end()) throw Error("unknown unit of time " + unit);
  return found->second;
}

RecordedRow t4_row(const json& result) {
  const std::string invalidity = result.value("invalidity", "correct");
  if (invalidity != "correct") {
    RecordedRow row = row_of(invalidity, 0);
    if (invalidity == "runtime") row.failure = Status::launch;
    return row;
  }
  const std::string objective = result.contains("objectives") && !result["objectives"].empty()
                                    ? result["objectives"][0].get<std::string>()
                                    : "time";
  for (const json& measurement : result.at("measurements")) {
    if (measurement.at("name") != objective) continue;
    return row_of(measurement.at("value"), microseconds(measurement.value("unit", "")));
  }
  throw Error("a result has no measurement of its objective " + objective);
}

/// Returns a configuration's variant, which GRETA writes among the parameters.
std::string variant_of(const json& configuration) {
  const auto found = configuration.find("variant");
  return found != configuration.end() && found->is_string() ? found->get<std::string>() : "t4";
}

RecordedSpace read_t4(const json& file) {
  SpaceRows collected;
  for (const json& result : file.at("results")) {
    const json& configuration = result.at("configuration");
    const std::string variant = variant_of(configuration);
    if (!collected.has(variant)) {
      std::vector<std::string> names;
      for (const auto& [name, value] : configuration.items()) {
        if (name != "variant") names.push_back(name);
      }
      collected.begin(variant, std::move(names));
    }
    collected.add(variant, configuration, t4_row(result));
  }
  return collected.finish();
}

/// Parses without lists of samples, which are most of such a file.
json parse_without_samples(const std::string& text) {
  return json::parse(text, [](int, json::parse_event_t event, json& key) {
    return event != json::parse_event_t::key || (key != "times" && key != "timestamp");
  });
}

}  // namespace

RecordedSpace read_recorded_space(std::string text) {
  if (is_space_recording(text)) return read_space_recording(text);
  CompletedJson completed = complete_json(std::move(text));
  const json file = parse_without_samples(completed.text);
  RecordedSpace space;
  if (file.is_object() && file.contains("cache")) {
    space = read_kernel_tuner(file);
  } else if (file.is_object() && file.contains("results")) {
    space = read_t4(file);
  } else {
    throw Error("it is neither a cache of Kernel Tuner, nor T4 results, nor a recording of GRETA");
  }
  space.completed = completed.completed;
  return space;
}

}  // namespace greta::tuner
