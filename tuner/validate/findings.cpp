#include "tuner/validate/findings.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace greta::tuner {

void Findings::add(const std::string& kind, bool error, const std::string& text,
                   std::uint64_t count) {
  const auto [found, is_new] = found_.try_emplace({kind, error}, Finding{kind, error, 0, text});
  found->second.count += count;
  (error ? errors_ : warnings_) += count;
}

std::vector<Finding> Findings::list() const {
  std::vector<Finding> list;
  for (const auto& [key, finding] : found_) list.push_back(finding);
  std::stable_sort(list.begin(), list.end(), [](const Finding& a, const Finding& b) {
    return a.error != b.error ? a.error : a.count > b.count;
  });
  return list;
}

nlohmann::ordered_json to_json(const Findings& findings) {
  auto kinds = nlohmann::ordered_json::array();
  for (const Finding& finding : findings.list()) {
    kinds.push_back({{"kind", finding.kind},
                     {"error", finding.error},
                     {"count", finding.count},
                     {"first", finding.first}});
  }
  return {{"errors", findings.errors()}, {"warnings", findings.warnings()}, {"kinds", kinds}};
}

}  // namespace greta::tuner
