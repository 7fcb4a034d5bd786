#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/layers.hpp"

namespace greta::test {

/// A GPU that the fake library lists.
struct FakeAgent {
  std::uint64_t handle = 1;
  std::uint32_t domain = 0, location = 0xc100;  ///< 0000:c1:00.0
  std::uint32_t compute_units = 104, simds = 4, waves = 8, dies = 1;
};

/// The configuration and the recorded state of the fake library.
struct FakeRocprofiler {
  std::uint32_t major = 1, minor = 0;
  std::vector<FakeAgent> agents{FakeAgent{}};
  /// Counters by name: what a dispatch adds to each instance.
  std::map<std::string, std::vector<double>> counters;
  std::size_t most_a_pass = 4;               ///< counters that the hardware counts at a time
  std::map<std::string, int> results;        ///< by function: what it returns instead of success
  std::vector<std::string> not_countable{};  ///< counters that no set can have
  bool drops_records = false;                ///< never tells what it counted
  std::uint64_t dispatch_ns = 2500;
  std::function<void()> on_configure;

  bool started = false;
  int sets = 0;                                   ///< of counters that exist
  std::vector<std::vector<std::string>> counted;  ///< counters of each counted dispatch
  int ignored = 0;                                ///< dispatches that were not to be counted
  std::vector<std::string> misuse;
  /// Dispatches a kernel on an agent. Counts are told later, by another thread.
  std::function<void(std::uint64_t agent)> dispatch;
  std::function<void()> settle;  ///< waits for that thread
};

}  // namespace greta::test
