#include "tuner/bench/preset.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "kernels/catalog.hpp"
#include "kernels/model/problem_rules.hpp"
#include "runtime/device/system/input_file.hpp"
#include "runtime/device/text/printable.hpp"
#include "tuner/bench/benchmark_names.hpp"
#include "tuner/bench/json_text.hpp"
#include "tuner/search/budget.hpp"

namespace greta::tuner {

bool PresetProblem::names(std::string_view variant) const {
  const auto begins = [&](const std::string& text) {
    return text == variant || text.starts_with(std::string(variant) + " ");
  };
  return std::any_of(configs.begin(), configs.end(), begins) ||
         std::any_of(variants.begin(), variants.end(), begins) ||
         std::any_of(expect.begin(), expect.end(),
                     [&](const Gate& gate) { return gate.variant == variant; });
}

namespace {

using nlohmann::json;

constexpr std::size_t most_problems = 10'000;
constexpr std::uint64_t most_bytes = std::uint64_t{16} << 20;

// Reports an error at a place of the file. Only read_preset() catches it.
[[noreturn]] void refuse(const std::string& place, const std::string& why) {
  throw Error(place.empty() ? why : place + ": " + why);
}

std::string joined(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

// Returns a number without a fraction as an integer: 64.0 is one by JSON Schema, and 64 as text.
json integer_of(const json& value) {
  constexpr double most = 0x1p53;
  if (!value.is_number_float()) return value;
  const double number = value.get<double>();
  if (std::trunc(number) != number || std::abs(number) > most) return value;
  return static_cast<std::int64_t>(number);
}

// Returns a scalar as the text that a command line would contain.
std::string scalar_text(const json& value, const std::string& place) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number()) return integer_of(value).dump();
  refuse(place, "must be a number or text");
}

const Operation& read_op(const Catalog& catalog, const json& entry, const std::string& place) {
  if (!entry.is_object()) refuse(place, "is not an object");
  if (!entry.contains("op")) refuse(place, "\"op\" is missing");
  const json& op = entry["op"];
  const auto* found = op.is_string() ? catalog.find(op.get<std::string>()) : nullptr;
  if (found != nullptr) return *found;
  std::vector<std::string> known;
  for (const Operation& operation : catalog) known.push_back(operation.name);
  refuse(place + ".op", fmt::format("{} is not an operation; there are {}",
                                    op.is_string() ? op.get<std::string>() : "it", joined(known)));
}

std::vector<std::string> option_names(const Operation& operation) {
  std::vector<std::string> names;
  for (const auto& dimension : operation.dimensions) names.push_back(dimension.name);
  for (const auto& attribute : operation.attributes) names.push_back(attribute.name);
  for (const auto& earlier : operation.renamed) names.push_back(earlier.old_name);
  if (operation.notation) names.push_back(operation.notation->name);
  names.insert(names.end(), {"dtype", "out_dtype"});
  return names;
}

// Reports an invalid field with its place in the file.
[[noreturn]] void refuse_problem(const std::string& place, const Failure& failure) {
  if (!failure.field) refuse(place, failure.message);
  const auto& [field, value, reason] = *failure.field;
  refuse(place + "." + (field == "out" ? "out_dtype" : field),
         value.empty() ? reason : fmt::format("{}: {}", value, reason));
}

Problem read_problem(const Operation& operation,
                     const std::vector<std::pair<std::string, std::string>>& values,
                     const std::string& place) {
  ProblemRequest request;
  for (const auto& [name, text] : values) request.set(name == "out_dtype" ? "out" : name, text);
  auto problem = make_problem(operation, std::move(request));
  if (!problem) refuse_problem(place, problem.failure());
  return *std::move(problem);
}

// Options of an entry with all their values. Most have one value; a list means one problem per
// element.
struct Options {
  std::string name;
  std::vector<std::string> texts;
};

// Whether "parts" asks for the operations that one fuses: attention_merge has a dimension of that
// name.
bool parts_is_a_choice(const Operation& operation) {
  const auto known = option_names(operation);
  return std::find(known.begin(), known.end(), "parts") == known.end();
}

std::vector<Options> read_options(const Operation& operation, const json& entry,
                                  const std::string& place) {
  const auto known = option_names(operation);
  std::vector<Options> options;
  for (const auto& [name, value] : entry.items()) {
    if (name == "op" || name == "config" || name == "variants" || name == "expect" ||
        (name == "parts" && parts_is_a_choice(operation))) {
      continue;
    }
    const std::string here = place + "." + name;
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      refuse(here, fmt::format("{} has no such dimension or option; it has {}", operation.name,
                               joined(known)));
    }
    Options option{name, {}};
    if (!value.is_array()) {
      option.texts.push_back(scalar_text(value, here));
    } else {
      if (value.empty()) refuse(here, "is an empty list");
      for (std::size_t i = 0; i < value.size(); ++i) {
        option.texts.push_back(scalar_text(value[i], fmt::format("{}[{}]", here, i)));
      }
    }
    options.push_back(std::move(option));
  }
  return options;
}

std::string read_text(const json& value, const std::string& place) {
  if (!value.is_string()) refuse(place, "must be text");
  return value.get<std::string>();
}

std::vector<std::string> read_names(const json& value, const std::string& place,
                                    const std::vector<std::string>& all) {
  if (value == "all") return all;
  if (!value.is_array()) refuse(place, "must be \"all\" or a list of names: " + joined(all));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const std::string here = fmt::format("{}[{}]", place, i);
    const std::string name = read_text(value[i], here);
    if (std::find(all.begin(), all.end(), name) == all.end()) {
      refuse(here, fmt::format("{} is not one of {}", name, joined(all)));
    }
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      refuse(here, name + " is listed twice");
    }
    names.push_back(name);
  }
  return names;
}

// Reads what is measured of an entry's problems: "config", one or a list, and "variants", "all" or
// a list of names.
PresetProblem read_ways(const Operation& operation, const json& entry, const std::string& place) {
  const std::vector<std::string> variants = operation.variant_names();
  const auto check = [&](const std::string& variant, const std::string& here) {
    if (std::find(variants.begin(), variants.end(), variant) == variants.end()) {
      refuse(here, fmt::format("{} has no variant {}; it has {}", operation.name, variant,
                               joined(variants)));
    }
  };
  PresetProblem ways;
  if (entry.contains("config")) {
    const json list = entry["config"].is_array() ? entry["config"] : json::array({entry["config"]});
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string here = fmt::format("{}.config[{}]", place, i);
      ways.configs.push_back(read_text(list[i], here));
      check(ways.configs.back().substr(0, ways.configs.back().find(' ')), here);
    }
  }
  if (entry.contains("variants")) {
    ways.variants = read_names(entry["variants"], place + ".variants", variants);
  }
  if (entry.contains("parts") && parts_is_a_choice(operation)) {
    if (!entry["parts"].is_boolean()) refuse(place + ".parts", "must be true or false");
    ways.parts = entry["parts"].get<bool>();
    if (ways.parts && !operation.parts) {
      refuse(place + ".parts", fmt::format("{} fuses no other operations", operation.name));
    }
  }
  return ways;
}

// Reads an entry's gates, one or a list.
std::vector<Gate> read_expect(const Operation& operation, const json& entry,
                              const std::filesystem::path& folder, const std::string& place) {
  std::vector<Gate> gates;
  if (!entry.contains("expect")) return gates;
  const json& given = entry["expect"];
  const json list = given.is_array() ? given : json::array({given});
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string here = fmt::format("{}.expect[{}]", place, i);
    auto gate = parse_gate(read_text(list[i], here), operation.variant_names(), folder);
    if (!gate) refuse(here, gate.failure().message);
    gates.push_back(*std::move(gate));
  }
  return gates;
}

// Gates of times need times.
void check_expect(const Preset& preset) {
  if (preset.measure) return;
  for (const PresetProblem& listed : preset.problems) {
    for (const Gate& gate : listed.expect) {
      if (gate.measure == Gate::Measure::error) continue;
      const std::string place = listed.where.substr(listed.where.rfind(": ") + 2);
      refuse(place + ".expect",
             fmt::format("\"{}\" needs times, and \"measure\" is false", gate.text));
    }
  }
}

// Reads all combinations of an entry's lists.
void read_entry(const Catalog& catalog, const json& entry, const std::filesystem::path& file,
                const std::string& place, Preset& preset, std::set<std::string>& seen) {
  const Operation& operation = read_op(catalog, entry, place);
  const auto options = read_options(operation, entry, place);
  PresetProblem listed = read_ways(operation, entry, place);
  listed.where = fmt::format("{}: {}", file.string(), place);
  listed.expect = read_expect(operation, entry, file.parent_path(), place);
  std::vector<std::size_t> at(options.size(), 0);
  for (bool more = true; more;) {
    std::vector<std::pair<std::string, std::string>> values;
    for (std::size_t i = 0; i < options.size(); ++i) {
      values.emplace_back(options[i].name, options[i].texts[at[i]]);
    }
    if (preset.problems.size() == most_problems) {
      refuse(place,
             fmt::format("is more than the {} problems that a preset may have", most_problems));
    }
    auto problem = read_problem(operation, values, place);
    if (!seen.insert(problem.key()).second) {
      refuse(place, fmt::format("{} is listed twice", problem.key()));
    }
    listed.problem = std::move(problem);
    preset.problems.push_back(listed);
    more = false;
    for (std::size_t i = options.size(); i-- > 0 && !more;) {
      at[i] = (at[i] + 1) % options[i].texts.size();
      more = at[i] != 0;
    }
  }
}

int read_whole(const json& given, const std::string& place, int least, int most) {
  const json value = integer_of(given);
  const bool whole = value.is_number_integer() &&
                     (!value.is_number_unsigned() || value.get<std::uint64_t>() <= 1'000'000);
  const auto number = whole ? value.get<std::int64_t>() : std::int64_t{-1};
  if (number < least || number > most) {
    refuse(place, fmt::format("must be a whole number between {} and {}", least, most));
  }
  return static_cast<int>(number);
}

void read_budget(const json& value, const std::string& place, Preset& preset) {
  preset.budget = read_text(value, place);
  if (const auto budget = Budget::parse(preset.budget); !budget) {
    refuse(place, budget.failure().message);
  }
}

void read_key(const Catalog& catalog, const std::string& name, const json& value,
              const std::filesystem::path& file, Preset& preset) {
  if (name == "$schema" || name == "summary") {
    static_cast<void>(read_text(value, name));
  } else if (name == "name") {
    preset.name = read_text(value, name);
  } else if (name == "budget") {
    read_budget(value, name, preset);
  } else if (name == "iterations") {
    preset.iterations = read_whole(value, name, 1, 10'000);
  } else if (name == "batch") {
    preset.batch = read_whole(value, name, 1, 10'000);
  } else if (name == "repeat") {
    preset.repeat = read_whole(value, name, 1, 10'000);
  } else if (name == "random") {
    preset.random = read_whole(value, name, 0, 100'000);
  } else if (name == "measure") {
    if (!value.is_boolean()) refuse(name, "must be true or false");
    preset.measure = value.get<bool>();
  } else if (name == "checks") {
    preset.checks = read_names(value, name, names_of(check_names()));
  } else if (name == "platform") {
    preset.platform = read_names(value, name, names_of(platform_names()));
  } else if (name == "runtime") {
    preset.runtime = read_names(value, name, names_of(runtime_names()));
  } else if (name == "problems") {
    if (!value.is_array()) refuse(name, "is not a list");
    std::set<std::string> seen;
    for (std::size_t i = 0; i < value.size(); ++i) {
      read_entry(catalog, value[i], file, fmt::format("problems[{}]", i), preset, seen);
    }
  } else {
    refuse(name, "unknown key");
  }
}

}  // namespace

Result<Preset> read_preset(const std::filesystem::path& file, const Catalog& catalog) {
  try {
    const auto text = read_file(file, most_bytes);
    if (!text) return text.failure();
    const json object = parse_json_text(*text);
    if (!object.is_object()) refuse("", "is not a JSON object");
    Preset preset;
    preset.name = file.stem().string();
    for (const auto& [name, value] : object.items()) read_key(catalog, name, value, file, preset);
    check_expect(preset);
    const bool empty = preset.problems.empty() && preset.platform.empty() &&
                       preset.runtime.empty() && preset.checks.empty() && preset.random == 0;
    if (empty) refuse("", "lists nothing: it has no problems, checks, platform or runtime");
    return preset;
  } catch (const std::exception& error) {
    return Failure{Status::invalid_argument, file.string() + ": " + one_line(error.what()), {}};
  }
}

}  // namespace greta::tuner
