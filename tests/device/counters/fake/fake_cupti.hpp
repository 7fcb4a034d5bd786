#pragma once

#include <map>
#include <string>
#include <vector>

namespace greta::test {

/// The state of the fake CUPTI, which tests read and set through fake_cupti().
struct FakeCupti {
  std::map<std::string, double> metrics;  ///< the chip's, with their values
  int passes = 1;                         ///< that any counters need
  std::map<std::string, int> results;     ///< what a function returns instead of 0
  std::vector<std::string> calls;         ///< functions in the order of their calls
  std::vector<std::string> misuse;        ///< calls with wrong sizes or out of order
  int hosts = 0, ranges = 0;              ///< objects that exist
  bool initialized = false, enabled = false, configured = false, started = false, pushed = false;
  bool decoded = false;
  int done = 0;  ///< passes
};

}  // namespace greta::test
