#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/result.hpp"
#include "tuner/measure/card_sensor.hpp"
#include "tuner/measure/statistics.hpp"

namespace greta::tuner {

/// What was seen while one kernel ran for a moment of a soak.
struct SoakTurn {
  std::size_t kernel = 0;                ///< position among the soaked kernels
  double at_s = 0;                       ///< its end, since the start of the soak
  std::uint64_t launches = 0;            ///< all of them are checked
  std::uint64_t wrong = 0;               ///< number of launches with wrong results
  double median_us = 0, longest_us = 0;  ///< of a launch, on the device's clock
  double host_bytes = 0;                 ///< resident memory of the process after the turn
  double host_growth = 0;                ///< its change during the turn
  double device_bytes = 0;               ///< memory that the process has from the device's driver
  CardReading card{};                    ///< empty where the driver reports nothing
};

/// What a soak allows.
struct SoakLimits {
  double drift = 0.05;                     ///< change of the time, as a share
  double growth_bytes = 32.0 * (1 << 20);  ///< of memory
};

enum class SoakVerdict { skipped, stable, drifts, memory_grows, wrong_results, fails };
std::string_view to_string(SoakVerdict verdict);

/// The judgement of one kernel.
struct SoakResult {
  std::string benchmark{};
  SoakVerdict verdict = SoakVerdict::stable;
  std::uint64_t launches = 0, wrong = 0;
  double first_wrong_s = 0;  ///< when the first wrong result was seen; 0: never
  double median_us = 0;      ///< of the turns' medians
  double slowest_us = 0;     ///< the largest of them
  /// Time of a launch in the last third of the soak divided by that in the first third, after a
  /// warm-up; its interval is [0, infinity) if there are too few turns.
  Interval drift{0, std::numeric_limits<double>::infinity(), 1};
  double growth_bytes = 0;           ///< of the host's memory during its turns, after a warm-up
  bool unordered = false;            ///< results are compared with the reference, not by bits
  std::optional<Failure> failure{};  ///< it could not run, or not to the end
  bool skipped = false;              ///< because its operands do not fit beside the others'
};

/// The range of a sensor's values; empty: never read.
struct SoakRange {
  std::optional<double> least, most, last;
  void add(const std::optional<double>& value);
};

/// The judgement of a whole soak.
struct SoakSummary {
  std::vector<SoakResult> kernels;
  SoakVerdict verdict = SoakVerdict::stable;  ///< the worst of the kernels and of the memory
  double seconds = 0;
  double host_growth = 0, device_growth = 0;  ///< bytes, after a warm-up
  SoakRange sm_mhz, celsius, watts;
  std::string throttled{};  ///< reasons for which the clocks were limited at some time
};

/// Judges a soak. The first tenth of the turns of each kernel is a warm-up. The time of a kernel
/// drifts if it changes significantly by more than the limit (judge() in compare.hpp), with 95 %
/// confidence over all kernels. Memory grows if the process has more of it than after the warm-up,
/// by more than the limit: of the host, which is attributed to kernels, or of the device.
/// `results` have names, failures and what was skipped; the rest is filled in.
SoakSummary judge_soak(std::vector<SoakResult> results, const std::vector<SoakTurn>& turns,
                       const SoakLimits& limits);

}  // namespace greta::tuner
