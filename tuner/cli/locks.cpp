#include "tuner/cli/locks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "tuner/cli/interrupt.hpp"
#include "tuner/cli/paths.hpp"
#include "tuner/cli/tool.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {

// In one order in every process, so that two never wait for each other.
std::vector<CardLock> lock_cards(const std::vector<ProbedDevice>& devices,
                                 const std::string& tool) {
  std::vector<std::string> keys;
  for (const auto& device : devices) keys.push_back(CardLock::key(device.info));
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  std::vector<CardLock> locks;
  for (const auto& key : keys) {
    const auto announce = [&](const std::string& holder) {
      print(stderr,
            "waiting for {}, which measures on the same card ({}); --no-lock does not wait\n",
            holder.empty() ? "another process" : holder, key);
    };
    locks.emplace_back(default_cache_directory() / "locks", key, tool, announce, stop_requested());
  }
  if (stop_requested()) throw CommandError(exit_failed, "interrupted; nothing was measured");
  return locks;
}

}  // namespace greta::tuner::cli
