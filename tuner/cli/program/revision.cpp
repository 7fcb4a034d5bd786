#include "tuner/cli/program/revision.hpp"

namespace greta::tuner::cli {

Result<void> export_csv(const std::filesystem::path& file, std::vector<MeasuredResult> results) {
  for (auto& result : results) result.subject.greta_revision = revision();
  return append_csv(file, results);
}

}  // namespace greta::tuner::cli
