#include "db/enum_text.hpp"
#include "tuner/page/page_parts.hpp"
#include "tuner/report/report.hpp"

namespace greta::tuner {

using nlohmann::json;

json search_data(const PageInput& input, const PageDevices& devices, const Catalog& catalog,
                 SearchPlaces& places) {
  json list = json::array();
  for (std::size_t file = 0; file < input.databases.size(); ++file) {
    const TunedDb& db = *input.databases[file].db;
    for (const auto& session : db.sessions()) {
      if (session.trials == 0) continue;
      const Work work = work_of(catalog, session.problem);
      const auto words = Subject{.problem = session.problem}.words();
      json search = trial_data(db.trials(session.id));
      search.update({{"device", devices.index(session.device_fingerprint)},
                     {"file", file},
                     {"session", session.id},
                     {"result", nullptr},
                     {"problem", session.problem.key()},
                     {"op", words.op},
                     {"dtype", words.dtype},
                     {"dims", words.dims},
                     {"attributes", words.attributes},
                     {"cold", session.cold},
                     {"outcome", session.outcome ? json(*session.outcome) : json(nullptr)},
                     {"strategy", session.strategy},
                     {"budget", session.budget},
                     {"utc", session.provenance.started_utc},
                     {"driver", session.provenance.driver},
                     {"version", session.provenance.greta_version},
                     {"flops", known(work.flops)},
                     {"bytes", known(work.bytes)}});
      places.emplace(std::pair(file, session.id), list.size());
      list.push_back(std::move(search));
    }
  }
  return list;
}

}  // namespace greta::tuner
