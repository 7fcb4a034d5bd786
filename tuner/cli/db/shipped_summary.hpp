#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/device/device_info.hpp"

namespace greta::tuner::cli {

/// A database that GRETA ships, and a summary of its contents.
struct ShippedSummary {
  std::filesystem::path file;
  std::string unreadable;  ///< why it can't be read; then the rest is empty
  std::vector<DeviceInfo> devices;
  std::size_t results = 0;
  std::size_t damaged = 0;    ///< rows
  std::string newest_utc;     ///< of its results
  std::string greta_version;  ///< which measured the newest one
};

/// Reads the databases of folder_of_shipped(), sorted by path. None if there is no such folder.
std::vector<ShippedSummary> summarise_shipped();

nlohmann::json shipped_json(const std::vector<ShippedSummary>& all);
/// Returns a table; empty for no databases.
std::string shipped_text(const std::vector<ShippedSummary>& all);

}  // namespace greta::tuner::cli
