#include "tuner/model/scratch_database.hpp"

#include <algorithm>

namespace greta::tuner::model {

void ScratchDatabase::write(const Contents& contents) const {
  TunedDb::open(file_, TunedDb::Mode::read_write).write(contents);
}

void ScratchDatabase::remove() const {
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    std::error_code ignored;
    std::filesystem::remove(file_.string() + suffix, ignored);
  }
}

Contents contents_of(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return {};
  return TunedDb::open(file, TunedDb::Mode::read_only).contents();
}

Contents with(Contents contents, const StoredWinner& winner) {
  contents.results.push_back(winner);
  const auto same = [&](const StoredDevice& known) {
    return known.info.fingerprint() == winner.device.fingerprint();
  };
  if (std::none_of(contents.devices.begin(), contents.devices.end(), same)) {
    const std::string& now = winner.provenance.started_utc;
    contents.devices.push_back({winner.device, now, now});
  }
  return contents;
}

}  // namespace greta::tuner::model
