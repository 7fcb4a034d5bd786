#include "tuner/report/task_json.hpp"

#include <nlohmann/json.hpp>

#include "tuner/report/report.hpp"

namespace greta::tuner {

nlohmann::json task_json(const TaskResult& result, const std::string& database) {
  if (result.sessions.size() == 1) return report_json(result.sessions.front(), database);
  nlohmann::json object{
      {"format", "greta-tune 1"}, {"results", nlohmann::json::array()}, {"comparison", nullptr}};
  for (const auto& session : result.sessions) {
    object["results"].push_back(report_json(session, database));
  }
  if (result.contest) object["comparison"] = contest_json(result.entrants(), *result.contest);
  return object;
}

}  // namespace greta::tuner
