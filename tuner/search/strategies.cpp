#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "runtime/device/text/spelling.hpp"
#include "tuner/search/factories.hpp"

namespace greta::tuner {
namespace {

std::string rule_of(const StrategyOption& option) {
  return fmt::format("{} must be a {}number from {:g} to {:g}", option.name,
                     option.whole ? "whole " : "", option.least, option.most);
}

/// Reads "option=value" into `options`; returns what is wrong, or an empty string.
std::string read_strategy_option(const StrategyEntry& entry, std::string_view text,
                                 StrategyOptions& options) {
  const auto equals = std::min(text.find('='), text.size());
  const std::string name(text.substr(0, equals));
  const auto option = std::find_if(entry.options.begin(), entry.options.end(),
                                   [&](const StrategyOption& known) { return known.name == name; });
  if (option == entry.options.end()) {
    std::vector<std::string> names;
    for (const StrategyOption& known : entry.options) names.emplace_back(known.name);
    if (names.empty()) return fmt::format("{} has no options", entry.name);
    return fmt::format("option \"{}\" {}", name, must_be_one_of(name, names));
  }
  const std::string_view digits = text.substr(std::min(equals + 1, text.size()));
  double value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value) || value < option->least ||
      value > option->most || (option->whole && value != std::floor(value))) {
    return rule_of(*option);
  }
  if (!options.emplace(name, value).second) return fmt::format("{} is given twice", name);
  return {};
}

/// Returns the options that all model-based strategies have, and more.
std::vector<StrategyOption> model_options(std::vector<StrategyOption> more) {
  std::vector<StrategyOption> options{
      {"design", 4, 1, 1e6, "trials before the model chooses", true},
      {"climbers", 5, 1, 1000, "best trials whose neighbours are candidates", true},
      {"strangers", 100, 0, 1e5, "random candidates", true},
      {"prior", 1, 0, 1, "whether predictions made before anything runs are used", true}};
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

std::string check_temperatures(const StrategyOptions& options) {
  const double hot = options.at("hot"), cold = options.at("cold");
  return cold <= hot
             ? ""
             : fmt::format("cold must be at most hot, and {:g} is more than {:g}", cold, hot);
}

}  // namespace

const std::vector<StrategyEntry>& strategies() {
  static const std::vector<StrategyEntry> list{
      {"auto",
       "a Gaussian process that learns which parameters matter, and where configurations fail",
       create_auto, model_options({})},
      {"forest", "the same with a random forest", create_forest,
       model_options({{"trees", 30, 2, 1000, "number of regression trees", true}})},
      {"local", "a random design, then the most promising around the best", create_local},
      {"annealing",
       "a random walk that accepts worse steps less and less",
       create_annealing,
       {{"hot", 0.5, 1e-3, 100, "temperature at the start, as a difference of log time"},
        {"cold", 0.01, 1e-6, 100, "temperature at the end of the budget"}},
       check_temperatures},
      {"basin",
       "descents among neighbours, each from the best found with some changes",
       create_basin,
       {{"design", 10, 1, 1e6, "random trials before the first descent", true},
        {"changes", 3, 1, 100, "parameters that a restart changes", true}}},
      {"evolution",
       "differential evolution on the ordered values",
       create_evolution,
       {{"population", 15, 4, 1e4, "number of members", true},
        {"weight", 0.7, 0, 2, "factor of the difference of two members"},
        {"crossover", 0.6, 0, 1, "probability of taking a value from the new vector"}}},
      {"genetic",
       "a genetic algorithm without generations",
       create_genetic,
       {{"population", 20, 2, 1e4, "number of parents", true},
        {"mutations", 1, 0, 100, "mean number of mutations of a child"}}},
      {"random", "uniform over the whole space", create_random},
      {"exhaustive", "every configuration, in order", create_exhaustive},
  };
  return list;
}

const StrategyEntry* find_strategy(std::string_view name) {
  for (const StrategyEntry& entry : strategies()) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

Result<StrategyChoice> parse_strategy(std::string_view text) {
  const auto colon = std::min(text.find(':'), text.size());
  StrategyChoice choice{find_strategy(text.substr(0, colon)), {}};
  if (choice.entry == nullptr) {
    std::vector<std::string> names;
    for (const StrategyEntry& entry : strategies()) names.emplace_back(entry.name);
    return bad_field("strategy", std::string(text), must_be_one_of(text.substr(0, colon), names));
  }
  for (std::string_view rest = text.substr(colon); !rest.empty();) {
    rest.remove_prefix(1);  // the colon or a comma
    const auto comma = std::min(rest.find(','), rest.size());
    const auto wrong = read_strategy_option(*choice.entry, rest.substr(0, comma), choice.options);
    if (!wrong.empty()) return bad_field("strategy", std::string(text), wrong);
    rest.remove_prefix(comma);
  }
  for (const StrategyOption& option : choice.entry->options) {
    choice.options.emplace(option.name, option.standard);
  }
  if (choice.entry->check != nullptr) {
    const auto wrong = choice.entry->check(choice.options);
    if (!wrong.empty()) return bad_field("strategy", std::string(text), wrong);
  }
  return choice;
}

std::unique_ptr<Strategy> create_strategy(std::string_view text, SearchProblem problem) {
  const StrategyChoice choice = parse_strategy(text).value();
  problem.options = choice.options;
  return choice.entry->create(problem);
}

}  // namespace greta::tuner
