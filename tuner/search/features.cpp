#include "tuner/search/features.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace greta::tuner {

Features::Features(const Space& space) {
  const auto& alternatives = space.alternatives();
  std::map<std::string, std::set<int>> values;
  std::vector<std::uint32_t> used;
  for (std::uint32_t variant = 0; variant < alternatives.size(); ++variant) {
    if (space.count_at(variant) == 0) continue;
    used.push_back(variant);
    for (const Parameter& parameter : space.used(alternatives[variant].variant)) {
      values[parameter.name].insert(parameter.values.begin(), parameter.values.end());
    }
  }
  has_variants_ = used.size() > 1;
  if (has_variants_) ordered_.push_back(false);
  std::map<std::string, std::size_t> columns;
  for (const auto& [name, all] : values) {
    if (all.size() < 2 && !has_variants_) continue;
    columns[name] = ordered_.size();
    ordered_.push_back(true);
  }
  columns_ = ordered_.size();
  sources_.resize(alternatives.size());
  for (const std::uint32_t variant : used) {
    for (const Parameter& parameter : alternatives[variant].parameters) {
      Source source;
      const auto column = columns.find(parameter.name);
      if (column != columns.end()) {
        const auto& all = values[parameter.name];
        const auto last = std::max<std::size_t>(all.size() - 1, 1);
        source.column = column->second;
        for (const int value : parameter.values) {
          const auto place = std::distance(all.begin(), all.lower_bound(value));
          source.coordinates.push_back(static_cast<float>(place) / static_cast<float>(last));
        }
      }
      sources_[variant].push_back(std::move(source));
    }
  }
}

std::vector<float> Features::of(const Choice& choice) const {
  std::vector<float> point(columns_, absent);
  if (has_variants_) point[0] = static_cast<float>(choice.variant);
  const auto& sources = sources_[choice.variant];
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].coordinates.empty()) continue;
    point[sources[i].column] = sources[i].coordinates[choice.values[i]];
  }
  return point;
}

}  // namespace greta::tuner
