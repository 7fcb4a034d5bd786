#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "db/counters.hpp"
#include "db/energy.hpp"
#include "db/trial.hpp"
#include "kernels/model/operation.hpp"
#include "runtime/device/device_info.hpp"
#include "tuner/measure/statistics.hpp"
#include "tuner/profile/static_figures.hpp"

namespace greta::tuner {

/// What is known of one configuration of a problem.
struct ProfiledWay {
  std::string name;  ///< "default", "winner", "config"
  Config config;
  Trial trial{};       ///< compiled, verified and timed; or its failure
  Interval us{};       ///< its time in the rounds of all ways; 0: not timed
  Interval speedup{};  ///< time of the default divided by its time, in the same rounds; 0: unknown
  std::vector<StaticKernel> kernels{};  ///< of a trial that compiled
  std::optional<Counters> counters{};
  std::string no_counters{};  ///< why there are none
  std::optional<Energy> energy{};
};

/// The ways of one problem on one device, side by side.
struct Profile {
  Problem problem;
  DeviceInfo device;
  bool cold = true;
  Work work;
  double copy_gbps = 0;          ///< measured peak of memory, read plus written; 0: unknown
  double arithmetic_gflops = 0;  ///< measured peak for the problem's type; 0: unknown
  double roofline_us = 0;        ///< 0: unknown
  std::vector<ProfiledWay> ways;
  std::string no_counters{};  ///< why no way has any; empty: one has
};

}  // namespace greta::tuner
