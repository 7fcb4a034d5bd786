#include "db/staleness.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/chains/chains.hpp"

namespace greta::db {

StalenessJudge::StalenessJudge(Catalog catalog, const std::vector<DeviceInfo>& present)
    : catalog_(with_chains(catalog)) {
  for (const auto& device : present) present_.emplace(device.fingerprint(), device);
}

const std::string& StalenessJudge::template_key(const std::string& op) {
  auto found = template_keys_.find(op);
  if (found == template_keys_.end()) {
    const auto* operation = catalog_.find(op);
    found =
        template_keys_.emplace(op, operation != nullptr ? operation->key() : std::string()).first;
  }
  return found->second;
}

const DeviceInfo& StalenessJudge::device_of(const StoredWinner& result) const {
  const auto [first, last] = present_.equal_range(result.device.fingerprint());
  if (first == last) return result.device;
  const std::string& then = result.provenance.driver;
  // "radv Mesa 24.1.0": the same driver, else another version of it.
  const auto name_of = [](const std::string& driver) { return driver.substr(0, driver.find(' ')); };
  const auto found = [&, from = first, end = last](const auto& matches) {
    return std::find_if(from, end, [&](const auto& entry) { return matches(entry.second.driver); });
  };
  auto best = found([&](const std::string& driver) { return driver == then; });
  if (best == last)
    best = found([&](const std::string& driver) { return name_of(driver) == name_of(then); });
  return best == last ? first->second : best->second;
}

std::vector<std::string> StalenessJudge::reasons(const StoredWinner& result) {
  const DeviceInfo& now = device_of(result);
  std::vector<std::string> reasons;
  const auto compare = [&](std::string_view what, const std::string& then, const std::string& is) {
    if (then != is) reasons.push_back(fmt::format("{} was {}, is {}", what, then, is));
  };
  compare("driver", result.provenance.driver, now.driver);
  if (!is_of_vendor(result.winner)) {
    compare("compiler", result.provenance.compiler, now.compiler);
  } else if (const std::string* const library = now.library_like(result.provenance.compiler)) {
    compare("library", result.provenance.compiler, *library);
  }
  const std::string& key = template_key(result.problem.op);
  if (key.empty()) {
    reasons.push_back(fmt::format("there is no operation {}; --kernels DIR adds those of a folder",
                                  result.problem.op));
  } else if (key != result.provenance.template_key) {
    reasons.push_back("the templates changed");
  }
  return reasons;
}

}  // namespace greta::db
