#include <algorithm>
#include <nlohmann/json.hpp>

#include "tuner/bench/preset.hpp"

namespace greta::tuner {

std::string preset_text(const std::string& name, const std::string& summary,
                        const std::vector<Problem>& problems) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Problem& problem : problems) {
    nlohmann::ordered_json entry{{"op", problem.op}, {"dtype", to_string(problem.dtype)}};
    if (problem.out_dtype != problem.dtype) entry["out_dtype"] = to_string(problem.out_dtype);
    for (const auto& [attribute, value] : problem.attributes) entry[attribute] = value;
    for (const auto& [dimension, value] : problem.dims) entry[dimension] = value;
    if (std::find(list.begin(), list.end(), entry) == list.end()) list.push_back(std::move(entry));
  }
  const nlohmann::ordered_json preset{
      {"name", name}, {"summary", summary}, {"budget", "60s"}, {"problems", std::move(list)}};
  return preset.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace greta::tuner
