#include <algorithm>
#include <set>

#include "db/lookup/lookup.hpp"
#include "tuner/page/page_parts.hpp"
#include "tuner/report/next_steps.hpp"

namespace greta::tuner {
namespace {

using nlohmann::json;

constexpr std::size_t most_problems = 4000;
constexpr std::size_t most_steps = 50;

/// Returns a look-up in the databases alone.
db::Lookup lookup_in(const PageInput& input, const DeviceInfo& device, bool cold,
                     const Catalog& catalog) {
  LookupFiles files = LookupFiles::none();
  for (const auto& one : input.databases) {
    if (!files.own) {
      files.own = one.db->file();
    } else {
      files.application.push_back(one.db->file());
    }
  }
  return db::Lookup::open(device, files, {.cold = cold, .allow_unsafe = true, .catalog = catalog});
}

/// Returns the database that a tune writes: the first that is not shipped, else the first.
const PageDatabase& written_database(const PageInput& input) {
  const auto own = std::find_if(input.databases.begin(), input.databases.end(),
                                [](const PageDatabase& one) { return !one.db->shipped(); });
  return own == input.databases.end() ? input.databases.front() : *own;
}

json answer_json(const db::Lookup& lookup, const Problem& problem) {
  json row{{"problem", problem.key()}, {"op", problem.op},  {"dims", problem.dims_text()},
           {"origin", "none"},         {"regret", nullptr}, {"command", nullptr}};
  try {
    const auto& answer = lookup.find(problem);
    row["origin"] = to_string(answer.origin);
    if (answer.expected_regret) row["regret"] = known(*answer.expected_regret);
  } catch (const Error&) {
    // A device on which no configuration of the problem is valid.
  }
  return row;
}

}  // namespace

json lookup_data(const std::vector<PageResult>& results, const PageInput& input,
                 const PageDevices& devices, const Catalog& catalog) {
  json list = json::array();
  std::vector<Problem> problems;
  std::set<std::string> seen;
  std::set<std::size_t> used;
  bool cold = false;
  for (const auto& one : results) cold = cold || one.stored.winner.cold;
  for (const auto& one : results) {
    const Problem& problem = one.stored.problem;
    if (one.stored.winner.cold != cold || !catalog.read(problem.key())) continue;
    used.insert(one.device);
    if (seen.insert(problem.key()).second && problems.size() < most_problems)
      problems.push_back(problem);
  }
  for (const std::size_t device : used) {
    const DeviceInfo& info = devices.all()[device];
    const auto lookup = lookup_in(input, info, cold, catalog);
    json answers = json::array();
    for (const Problem& problem : problems) {
      json row = answer_json(lookup, problem);
      if (row["origin"] != "exact")
        row["command"] = input.tune_command(problem, info.id(), cold, written_database(input));
      answers.push_back(std::move(row));
    }
    list.push_back({{"device", device}, {"cold", cold}, {"answers", std::move(answers)}});
  }
  return list;
}

json next_data(const std::vector<PageResult>& results, const PageInput& input,
               const Catalog& catalog) {
  struct Found {
    NextStep step;
    std::size_t result, file;
  };
  std::vector<Found> found;
  StalenessJudge judge(catalog);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& one = results[i];
    if (!one.current || catalog.find(one.stored.problem.op) == nullptr) continue;
    if (auto step = next_step(one.stored, judge)) found.push_back({*std::move(step), i, one.file});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.step.gain_us > b.step.gain_us; });
  if (found.size() > most_steps) found.resize(most_steps);
  json list = json::array();
  for (const auto& [step, result, file] : found) {
    list.push_back({{"problem", step.problem.key()},
                    {"device", results[result].device},
                    {"result", result},
                    {"why", step.why},
                    {"gain_us", step.gain_us > 0 ? known(step.gain_us) : json(nullptr)},
                    {"stale", step.stale},
                    {"command", input.tune_command(step.problem, step.device_id, step.cold,
                                                   input.databases[file])}});
  }
  return list;
}

}  // namespace greta::tuner
