#include "kernels/model/first_valid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "kernels/model/space_table.hpp"

namespace greta::kernels {

bool is_possible(const Alternative& alternative) {
  return std::all_of(alternative.constraints.begin(), alternative.constraints.end(),
                     [&](const Constraint& constraint) {
                       return !constraint.condition.parameters().empty() ||
                              constraint.condition.holds(Config{alternative.variant, {}});
                     });
}

std::optional<Config> first_valid(const Alternative& alternative) {
  check_names(alternative);
  const SpaceTable table(alternative, SpaceTable::Extent::first);
  if (table.count() == 0) return std::nullopt;
  return config_of(alternative, table.at(0));
}

void check_names(const Alternative& alternative) {
  const std::string& variant = alternative.variant;
  std::set<std::string> names;
  for (const Parameter& parameter : alternative.parameters) {
    const std::set<int> values(parameter.values.begin(), parameter.values.end());
    if (!names.insert(parameter.name).second || values.size() != parameter.values.size()) {
      throw Error(fmt::format("parameter {} of variant {}, or a value of it, occurs twice",
                              parameter.name, variant));
    }
  }
  for (const Constraint& constraint : alternative.constraints) {
    for (const std::string& name : constraint.condition.parameters()) {
      if (names.contains(name)) continue;
      throw Error(fmt::format("constraint {} of variant {} reads {}, which is not a parameter",
                              constraint.name, variant, name));
    }
  }
}

Config config_of(const Alternative& alternative, const Space::Positions& positions) {
  Config config{alternative.variant, {}, alternative.words};
  config.values.reserve(positions.size());
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const Parameter& parameter = alternative.parameters[i];
    config.values.emplace_back(parameter.name, parameter.values[positions[i]]);
  }
  return config;
}

}  // namespace greta::kernels
