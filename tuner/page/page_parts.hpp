#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tuner/page/page_data.hpp"
#include "tuner/page/summary.hpp"

namespace greta::tuner {

// The parts of page_data(), each in a source of its own.

/// The devices of all databases and recordings, by fingerprint.
class PageDevices {
 public:
  explicit PageDevices(const PageInput& input);

  /// Returns the index of a device. Throws Error for one that no database has.
  std::size_t index(const std::string& fingerprint) const { return indices_.at(fingerprint); }
  const std::vector<DeviceInfo>& all() const { return devices_; }
  /// Returns the devices without their summaries.
  nlohmann::json json() const;

 private:
  std::vector<PageDatabase> databases_;
  std::vector<StoredDevice> stored_;
  std::vector<DeviceInfo> devices_;
  std::map<std::string, std::size_t> indices_;
};

/// A result with its place in the page's list.
struct PageResult {
  StoredWinner stored;
  std::size_t file = 0;
  std::size_t device = 0;
  bool current = false;
  std::vector<std::string> stale{};
};

/// The place of a search: the file and the session.
using SearchPlaces = std::map<std::pair<std::size_t, std::int64_t>, std::size_t>;

/// Returns the results of all databases; a question's current one is its first.
std::vector<PageResult> page_results(const std::vector<PageDatabase>& databases,
                                     const PageDevices& devices, const Catalog& catalog);
nlohmann::json result_data(const std::vector<PageResult>& results, const SearchPlaces& searches,
                           const PageInput& input, const Catalog& catalog);
nlohmann::json summary_data(const std::vector<PageResult>& results, std::size_t device);
nlohmann::json rival_data(const std::vector<PageResult>& results, const PageInput& input,
                          const PageDevices& devices);
/// Returns the searches without `result`, and notes their places.
nlohmann::json search_data(const PageInput& input, const PageDevices& devices,
                           const Catalog& catalog, SearchPlaces& places);
/// Returns one search's trials: statuses, variants, parameters, messages, columns, best, fronts and
/// importance. Values for which `words` has a word are texts.
nlohmann::json trial_data(const std::vector<Trial>& trials, const ValueWords& words = {});
/// Returns the words of the values of a configuration's parameters. None if the configuration is
/// not valid today.
ValueWords value_words(const Problem& problem, const DeviceInfo& device, const Config& config,
                       const Catalog& catalog);
nlohmann::json lookup_data(const std::vector<PageResult>& results, const PageInput& input,
                           const PageDevices& devices, const Catalog& catalog);
nlohmann::json next_data(const std::vector<PageResult>& results, const PageInput& input,
                         const Catalog& catalog);
nlohmann::json baseline_data(const std::vector<PageBaselines>& baselines);
nlohmann::json pass_data(const std::vector<PageTrace>& traces);

nlohmann::json spread_json(const Spread& spread);
/// Returns the number, or null if it is not finite.
nlohmann::json known(double value);

}  // namespace greta::tuner
