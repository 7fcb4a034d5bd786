#pragma once

#include <map>
#include <string>
#include <vector>

#include "tuner/bench/gate.hpp"
#include "tuner/cli/bench/device_bench.hpp"
#include "tuner/cli/bench/table.hpp"

namespace greta::tuner::cli {

/// The gates of a run.
class Gates {
 public:
  /// Reads the baselines that the preset's gates name. Throws CommandError if one can't be read or
  /// has no time of its problem. `cold`: the state of the caches.
  Gates(const Preset& preset, bool cold);

  /// Adds the gates of a device, whose benchmarks are known. `prefix` begins the names of its rows;
  /// `filter` is the expression that selects benchmarks, whose gates alone are judged.
  void add(const DeviceBench& device, const std::string& prefix, const std::string& filter);

  /// Judges the gates of which `rows` contain a benchmark and what it is compared with, and, if
  /// `all`, says of the others why nothing is measured.
  std::vector<GateResult> judge(const std::vector<NamedResult>& rows, bool all) const;

  /// Sets `expect` of the rows that have gates. A gate whose reference is not among the rows is
  /// left out: it may be measured later.
  void annotate(std::vector<NamedResult>& rows) const;

 private:
  struct OnDevice {
    DeviceInfo info;
    std::string prefix;
    GatedProblem problem;
  };

  /// Returns the name of the row that a gate compares with; empty if there is none.
  static std::string reference_of(const OnDevice& gated, const Gate& gate);
  GateResult judge_one(const OnDevice& gated, const Gate& gate,
                       const std::vector<NamedResult>& rows,
                       const std::vector<const NamedResult*>& subjects) const;

  CacheState cache_;
  std::map<std::string, std::vector<MeasuredResult>> baselines_;  // by path
  std::vector<OnDevice> gated_;
};

/// Tells each gate that failed on standard error. Throws CommandError if there is one.
void conclude_gates(const std::vector<GateResult>& results);

}  // namespace greta::tuner::cli
