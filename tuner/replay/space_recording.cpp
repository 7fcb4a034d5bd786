#include "tuner/replay/space_recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "db/enum_text.hpp"
#include "db/json.hpp"

namespace greta::tuner {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view recording_format = "greta-recording 1";

/// Takes the first line from a text, without its newline. Returns false if there is no whole line.
bool take_line(std::string_view& text, std::string_view& line) {
  const auto end = text.find('\n');
  if (end == std::string_view::npos) return false;
  line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return true;
}

json parsed(std::string_view line, std::size_t number) {
  json object = json::parse(line, nullptr, false);
  if (!object.is_object()) throw Error(fmt::format("line {} is not a JSON object", number));
  return object;
}

std::vector<Alternative> alternatives_of(const json& list) {
  std::vector<Alternative> alternatives;
  for (const json& entry : list) {
    Alternative alternative{entry.at("variant").get<std::string>(), {}, {}};
    for (const json& parameter : entry.at("parameters")) {
      alternative.parameters.push_back({parameter.at("name").get<std::string>(),
                                        parameter.at("values").get<std::vector<int>>()});
    }
    alternatives.push_back(std::move(alternative));
  }
  return alternatives;
}

Choice choice_of(const std::vector<Alternative>& alternatives, const json& row) {
  const auto variant = row.at("variant").get<std::string>();
  const auto values = row.at("values").get<std::vector<int>>();
  const auto alternative =
      std::find_if(alternatives.begin(), alternatives.end(),
                   [&](const Alternative& one) { return one.variant == variant; });
  if (alternative == alternatives.end()) throw Error("unknown variant " + variant);
  if (values.size() != alternative->parameters.size()) {
    throw Error("wrong number of values for variant " + variant);
  }
  Choice choice{static_cast<std::uint32_t>(alternative - alternatives.begin()), {}};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto& list = alternative->parameters[i].values;
    const auto found = std::find(list.begin(), list.end(), values[i]);
    if (found == list.end()) throw Error("unknown value of " + alternative->parameters[i].name);
    choice.values.push_back(static_cast<std::uint16_t>(found - list.begin()));
  }
  return choice;
}

RecordedRow trial_row(const std::vector<Alternative>& alternatives, const json& line) {
  RecordedRow row;
  row.choice = choice_of(alternatives, line);
  row.failure = status_from_text(line.at("status").get<std::string>());
  row.message = line.value("message", "");
  if (row.failure) return row;
  row.time_us = line.at("median_us").get<double>();
  if (!std::isfinite(row.time_us) || row.time_us <= 0) throw Error("a time is not positive");
  return row;
}

/// Returns nothing for a description of another version, without which the times can be replayed.
std::optional<DeviceInfo> device_of(const json& description) {
  try {
    return device_from_json(description);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace

std::string RecordingHeader::line() const {
  ordered_json object{{"format", recording_format},
                      {"greta", version},
                      {"problem", problem},
                      {"cold", cold},
                      {"seed", seed},
                      {"configurations", space_count},
                      {"device", device},
                      {"alternatives", ordered_json::array()}};
  if (template_key) object["template_key"] = *template_key;
  for (const Alternative& alternative : alternatives) {
    ordered_json parameters = ordered_json::array();
    for (const Parameter& parameter : alternative.parameters) {
      parameters.push_back({{"name", parameter.name}, {"values", parameter.values}});
    }
    object["alternatives"].push_back(
        {{"variant", alternative.variant}, {"parameters", std::move(parameters)}});
  }
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string recording_line(const Trial& trial) {
  ordered_json values = ordered_json::array();
  for (const auto& value : trial.config.values) values.push_back(value.second);
  ordered_json object{{"variant", trial.config.variant},
                      {"values", std::move(values)},
                      {"status", status_text(trial.failure)}};
  if (trial.ok()) {
    object["median_us"] = trial.measurement.median_us;
    object["low_us"] = trial.measurement.low_us;
    object["high_us"] = trial.measurement.high_us;
    object["samples"] = trial.measurement.samples_us.size();
    if (trial.measurement.raced) object["raced"] = true;
  } else {
    object["message"] = trial.message;
  }
  return object.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

bool is_space_recording(std::string_view text) {
  return text.starts_with("{\"format\":\"greta-recording");
}

RecordingHeader read_recording_header(std::string_view text) {
  std::string_view line;
  if (!take_line(text, line)) throw Error("its first line is incomplete");
  const json object = parsed(line, 1);
  if (object.at("format") != recording_format) {
    throw Error("it is of the format " + object.at("format").dump() + ", which is unknown");
  }
  RecordingHeader header;
  header.version = object.at("greta").get<std::string>();
  header.device = object.at("device");
  header.problem = object.at("problem").get<std::string>();
  header.cold = object.at("cold").get<bool>();
  header.seed = object.at("seed").get<std::uint64_t>();
  if (object.contains("template_key"))
    header.template_key = object["template_key"].get<std::string>();
  header.space_count = object.at("configurations").get<std::uint64_t>();
  header.alternatives = alternatives_of(object.at("alternatives"));
  return header;
}

RecordedSpace read_space_recording(std::string_view text) {
  const RecordingHeader header = read_recording_header(text);
  RecordedSpace space;
  space.device_name = header.device.at("name").get<std::string>();
  space.problem = header.problem;
  space.device = device_of(header.device);
  space.alternatives = header.alternatives;
  std::string_view line;
  take_line(text, line);
  for (std::size_t number = 2; take_line(text, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const json trial = parsed(line, number);
    try {
      space.rows.push_back(trial_row(space.alternatives, trial));
    } catch (const json::exception&) {
      throw Error(
          fmt::format("line {} lacks a field of a trial, or has one of another type", number));
    } catch (const Error& error) {
      throw Error(fmt::format("line {}: {}", number, error.what()));
    }
  }
  space.completed = !text.empty();
  return space;
}

}  // namespace greta::tuner
