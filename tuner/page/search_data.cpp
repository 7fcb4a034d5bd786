#include "db/enum_text.hpp"
#include "tuner/page/page_parts.hpp"
#include "tuner/report/report.hpp"

namespace greta::tuner {

using nlohmann::json;

namespace {

/// Adds what a search is of.
void add_subject(json& search, const Problem& problem, const Catalog& catalog) {
  const Work work = work_of(catalog, problem);
  const auto words = Subject{.problem = problem}.words();
  search.update({{"result", nullptr},
                 {"problem", problem.key()},
                 {"op", words.op},
                 {"dtype", words.dtype},
                 {"dims", words.dims},
                 {"attributes", words.attributes},
                 {"flops", known(work.flops)},
                 {"bytes", known(work.bytes)}});
}

/// Returns the words of the values in trials. A few configurations of each variant are tried,
/// because some are not valid today.
ValueWords words_of(const std::vector<Trial>& trials, const Problem& problem,
                    const DeviceInfo& device, const Catalog& catalog) {
  constexpr int most_tries = 8;
  ValueWords words;
  std::map<std::string, int> tries;
  for (const Trial& trial : trials) {
    if (tries[trial.config.variant]++ >= most_tries) continue;
    ValueWords found = value_words(problem, device, trial.config, catalog);
    if (!found.empty()) tries[trial.config.variant] = most_tries;
    words.merge(found);
  }
  return words;
}

json recorded_search(const Recording& recording, std::size_t file, const PageDevices& devices,
                     const Catalog& catalog) {
  const auto subject = *recording.subject();
  const auto trials = recording.trials();
  json search = trial_data(trials, words_of(trials, subject.problem, subject.device, catalog));
  add_subject(search, subject.problem, catalog);
  search.update({{"recorded", true},
                 {"device", devices.index(subject.device.fingerprint())},
                 {"file", file},
                 {"session", 0},
                 {"cold", true},
                 {"outcome", nullptr},
                 {"strategy", ""},
                 {"budget", ""},
                 {"utc", ""},
                 {"driver", subject.device.driver},
                 {"version", ""}});
  return search;
}

}  // namespace

json search_data(const PageInput& input, const PageDevices& devices, const Catalog& catalog,
                 SearchPlaces& places) {
  json list = json::array();
  for (std::size_t file = 0; file < input.databases.size(); ++file) {
    const TunedDb& db = *input.databases[file].db;
    for (const auto& session : db.sessions()) {
      if (session.trials == 0) continue;
      const auto trials = db.trials(session.id);
      const auto& device = devices.all()[devices.index(session.device_fingerprint)];
      json search = trial_data(trials, words_of(trials, session.problem, device, catalog));
      add_subject(search, session.problem, catalog);
      search.update({{"recorded", false},
                     {"device", devices.index(session.device_fingerprint)},
                     {"file", file},
                     {"session", session.id},
                     {"cold", session.cold},
                     {"outcome", session.outcome ? json(*session.outcome) : json(nullptr)},
                     {"strategy", session.strategy},
                     {"budget", session.budget},
                     {"utc", session.provenance.started_utc},
                     {"driver", session.provenance.driver},
                     {"version", session.provenance.greta_version}});
      places.emplace(std::pair(file, session.id), list.size());
      list.push_back(std::move(search));
    }
  }
  for (std::size_t i = 0; i < input.recordings.size(); ++i)
    list.push_back(recorded_search(*input.recordings[i].recording, input.databases.size() + i,
                                   devices, catalog));
  return list;
}

}  // namespace greta::tuner
