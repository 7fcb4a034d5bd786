#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "db/counters.hpp"
#include "db/measurement.hpp"
#include "kernels/model/config.hpp"
#include "kernels/model/operation.hpp"
#include "runtime/device/device_info.hpp"
#include "runtime/device/result.hpp"
#include "tuner/measure/statistics.hpp"

namespace greta::tuner {

/// How the configuration of a result was chosen.
enum class ResultOrigin {
  trial,              ///< a candidate of a search
  stand_in,           ///< a candidate of a search on a smaller problem
  untuned,            ///< the operation's default
  winner,             ///< the winner for this problem on this device
  nearest_shape,      ///< lookup: the winner of another problem
  same_architecture,  ///< lookup: the winner on another device
  predicted,          ///< lookup: chosen by the static prior
  measured,           ///< no configuration: machine and runtime benchmarks
  random,             ///< drawn at random for verification
  chosen,             ///< named by the user, or the best known of a variant
};
inline constexpr std::array<std::string_view, 10> result_origins{
    "trial",        "stand_in", "default", "winner", "nearest shape", "same architecture",
    "static prior", "measured", "random",  "chosen"};
constexpr std::string_view to_string(ResultOrigin origin) {
  return result_origins[static_cast<std::size_t>(origin)];
}

/// The state of the caches before each sample.
enum class CacheState { not_timed, cold, warm };

/// A problem in the words that names and files contain. Fields that do not apply are empty.
struct ProblemWords {
  std::string op{}, dtype{}, out_dtype{}, dims{}, attributes{};
  auto operator<=>(const ProblemWords&) const = default;
};

/// What is measured: the problem, configuration, device and software.
struct Subject {
  /// A problem of an operation. Benchmarks of the machine, the runtime and models have the same
  /// form: `op` is their name, which no catalog contains, and `dims` are their sizes.
  Problem problem;
  bool typed = true;                ///< whether it has element types
  std::string backend{}, device{};  ///< DeviceInfo::backend and name
  std::optional<Config> config{};
  ResultOrigin origin = ResultOrigin::measured;
  CacheState cache = CacheState::not_timed;
  std::string driver{}, compiler{}, greta_version{};
  std::string greta_revision{};  ///< commit of the program that measured it; empty: unknown

  bool operator==(const Subject&) const = default;
  /// Sets the device, its driver and compiler, and this version of GRETA.
  void set_device(const DeviceInfo& info);
  ProblemWords words() const;
  /// Returns whether the configuration came from a database, as this problem's winner or as
  /// another's.
  bool from_database() const;
};

/// Samples in µs, in blocks that were taken at different times.
struct Samples {
  std::vector<std::vector<double>> blocks_us;  ///< in the order taken
  /// For each block, the time of constant work measured beside it. Empty if there is none.
  std::vector<double> control_us{};
  /// On a device that computes on the CPU: the CPU time of its threads for each launch of a block,
  /// and for the constant work beside the block.
  std::vector<std::vector<double>> cpu_us{};
  std::vector<double> cpu_control_us{};
};

/// A summary of all samples, in µs.
struct TimeSummary {
  double median = 0;
  double low = 0, high = 0;  ///< 95 % confidence interval of the median
  double p99 = 0;
  double spread_percent = 0;  ///< Measurement::spread_percent()
};
TimeSummary summary_of(const Measurement& measurement);

/// A subject with its result: of a trial, a certified configuration or a benchmark. CSV files
/// contain one per row (tuner/report/csv.hpp).
struct MeasuredResult {
  Subject subject;
  std::optional<Failure> failure{};  ///< empty: correct, and timed if requested
  TimeSummary us{};
  Work work{};            ///< minimum work of the problem
  double roofline = 0;    ///< fraction of the roofline, 0…1; 0: unknown
  Verdict verdict{};      ///< result of the check closest to its error bound
  Interval speedup{};     ///< time of the default divided by this time; 0: unknown
  std::size_t count = 0;  ///< number of timed samples, or of passed checks where nothing is timed
  Samples samples{};
  /// Number of processes that the samples were taken in, if each block had its own process.
  std::size_t processes = 0;
  std::string date{};    ///< start time, UTC
  std::string preset{};  ///< name of the preset that it is of; empty: of none, or unknown
  std::string clocks{};  ///< clocks of the GPU; empty if not readable
  std::optional<Counters> counters{};  ///< of its kernels, where they were counted
  std::string no_counters{};  ///< why they could not be; empty: they were, or not asked for
  std::string limiter{};      ///< what limits it, in words; empty: not counted
  std::string expect{};       ///< judgements of its gates, for readers; empty: it has none

  /// Sets the times, cache state and clocks, with the samples as one block.
  void set_measurement(const Measurement& measurement);
  /// Keeps `fresh` if it is closer to its bound than the current verdict.
  void add_verdict(const Verdict& fresh);
};

}  // namespace greta::tuner
