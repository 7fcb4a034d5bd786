#include "tuner/validate/findings.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace greta::tuner {

void Findings::add(const std::string& kind, bool error, const std::string& text,
                   std::uint64_t count) {
  const auto [found, is_new] =
      found_.try_emplace({kind, error}, CheckerMessage{kind, error, 0, text});
  found->second.count += count;
  (error ? errors_ : warnings_) += count;
}

std::vector<CheckerMessage> Findings::list() const {
  std::vector<CheckerMessage> list;
  for (const auto& [key, finding] : found_) list.push_back(finding);
  std::stable_sort(list.begin(), list.end(), [](const CheckerMessage& a, const CheckerMessage& b) {
    return a.error != b.error ? a.error : a.count > b.count;
  });
  return list;
}

nlohmann::ordered_json to_json(const Findings& findings) {
  auto kinds = nlohmann::ordered_json::array();
  for (const CheckerMessage& finding : findings.list()) {
    kinds.push_back({{"kind", finding.kind},
                     {"error", finding.error},
                     {"count", finding.count},
                     {"first", finding.first}});
  }
  return {{"errors", findings.errors()}, {"warnings", findings.warnings()}, {"kinds", kinds}};
}

}  // namespace greta::tuner
