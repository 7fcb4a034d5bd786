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

Result<FormulaValue> evaluate(const Extents& extents, const Formula& formula,
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
  return formula.value(values);
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
