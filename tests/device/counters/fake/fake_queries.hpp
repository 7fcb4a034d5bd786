#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/layers.hpp"

namespace greta::test {

/// A counter of the layer. It counts what command buffers dispatch while they are counted.
struct FakeCounter {
  std::string name;
  int unit = 0;     ///< VkPerformanceCounterUnitKHR
  int storage = 0;  ///< VkPerformanceCounterStorageKHR
  double per_dispatch = 0;
  double per_group = 0;  ///< for each workgroup
  int scope = 2;         ///< VkPerformanceCounterScopeKHR: of a command
};

/// The configuration and the recorded state of the layer. Tests may change it at any time.
struct FakeQueries {
  bool extension = true;  ///< whether devices list VK_KHR_performance_query
  bool feature = true;    ///< performanceCounterQueryPools
  int driver = 6;         ///< VkDriverId of all devices: Mesa's of Intel GPUs
  int counters_a_pass = 2;
  int lock_result = 0;  ///< VkResult of acquiring the lock
  std::vector<FakeCounter> counters;

  bool enabled = false;  ///< the last device was created with the extension and the feature
  int locks = 0;         ///< that are held
  int pools = 0;         ///< query pools of counters that exist
  int passes = 0;        ///< that were submitted
  std::vector<std::string> misuse;  ///< calls that the specification forbids
};

}  // namespace greta::test
