#include "kernels/described/described_extents.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace greta::kernels::described {

int number_of(const DescribedParameter& parameter, const FormulaValue& value) {
  if (value.is_integer()) return static_cast<int>(value.integer());
  const auto found = std::find(parameter.values.begin(), parameter.values.end(), value);
  return static_cast<int>(found - parameter.values.begin());
}
FormulaValue value_of(const DescribedParameter& parameter, int number) {
  const FormulaValue& first = parameter.values.front();
  if (first.word() != nullptr) return parameter.values.at(static_cast<std::size_t>(number));
  if (std::holds_alternative<bool>(first.is)) return {number != 0};
  return {std::int64_t{number}};
}

namespace {

/// The values of the names that a formula reads.
Result<std::vector<FormulaValue>> values_of(const Extents& extents, const Formula& formula,
                                            const Config* config) {
  std::vector<FormulaValue> values;
  for (const std::string& name : formula.names()) {
    const auto extent = extents.values.find(name);
    if (extent != extents.values.end()) {
      values.push_back(extent->second);
      continue;
    }
    const auto& parameters = extents.shared->description.parameters;
    const auto parameter = std::find_if(parameters.begin(), parameters.end(),
                                        [&](const auto& p) { return p.name == name; });
    if (parameter == parameters.end())
      return invalid_argument(fmt::format("nothing is called {}", name));
    values.push_back(config != nullptr ? value_of(*parameter, (*config)[name])
                                       : FormulaValue{parameter->values});
  }
  return values;
}

/// " with n=1000, BLOCK=32"; empty for a constant.
std::string with_values(const Formula& formula, const std::vector<FormulaValue>& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += fmt::format("{}{}={}", i == 0 ? " with " : ", ", formula.names()[i], values[i].text());
  }
  return text;
}

}  // namespace

Result<FormulaValue> evaluate(const Extents& extents, const Formula& formula, const Config* config,
                              std::int64_t& steps) {
  const auto values = values_of(extents, formula, config);
  if (!values) return values.failure();
  auto value = formula.value(*values, steps);
  if (value) return value;
  return invalid_argument(
      at_place(extents, formula,
               fmt::format("the formula \"{}\"{}: {}", formula.text(),
                           with_values(formula, *values), value.failure().message)));
}

Result<FormulaValue> evaluate(const Extents& extents, const Formula& formula,
                              const Config* config) {
  std::int64_t steps = most_steps;
  return evaluate(extents, formula, config, steps);
}

std::string at_place(const Extents& extents, const Formula& formula, const std::string& message) {
  const std::string& path = extents.shared->description.path;
  return fmt::format("{}{}{}{}{}", path, path.empty() ? "" : ": ", formula.place(),
                     formula.place().empty() ? "" : ": ", message);
}

std::string shown(const Extents& extents, const Formula& formula, const Config* config) {
  const auto values = values_of(extents, formula, config);
  if (!values) return values.failure().message;
  std::int64_t steps = most_steps;
  const auto value = formula.value(*values, steps);
  const std::string with = with_values(formula, *values);
  if (!value)
    return fmt::format("{} has no value{}: {}", formula.text(), with, value.failure().message);
  if (formula.names().empty()) return "it is " + value->text();
  return fmt::format("{} is {}{}", formula.text(), value->text(), with);
}

bool reads_parameters(const Extents& extents, const Formula& formula) {
  return std::any_of(formula.names().begin(), formula.names().end(),
                     [&](const std::string& name) { return extents.values.count(name) == 0; });
}

std::optional<std::int64_t> integer(const Extents& extents, const Formula& formula,
                                    const Config* config, std::int64_t least, std::int64_t most) {
  const auto value = evaluate(extents, formula, config);
  if (!value || !value->is_integer()) return std::nullopt;
  const std::int64_t number = value->integer();
  return number >= least && number <= most ? std::optional(number) : std::nullopt;
}

Extents extents_of(const std::shared_ptr<const Shared>& shared, const Problem& problem) {
  Extents extents{shared, {}};
  for (const auto& [name, extent] : problem.dims) extents.values[name] = {extent};
  return extents;
}

}  // namespace greta::kernels::described
