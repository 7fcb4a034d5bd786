#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/measure/measured_result.hpp"

namespace greta::tuner {

/// A limit that the result of a problem must keep: "us <= 40", ">= 10x vulkan:8600g.csv".
struct Gate {
  enum class Measure {
    us,        ///< median time in µs, at most
    tflops,    ///< 10¹² operations per second, at least
    gbps,      ///< 10⁹ bytes per second by the minimum traffic, at least
    roofline,  ///< share of the roofline, 0…1, at least
    error,     ///< largest error divided by its bound, at most
    speed,     ///< time of the reference divided by this time, at least
  };
  /// What a speed is compared with.
  enum class Reference { none, fallback, variant, file };

  Measure measure = Measure::us;
  double limit = 0;
  Reference reference = Reference::none;
  std::string variant{};         ///< its best known configuration is the reference
  std::filesystem::path file{};  ///< CSV file of a baseline
  std::string backend{};         ///< API of the baseline's row; empty: any
  std::string device{};  ///< id, API or part of the name of the only devices; empty: all devices
  std::string text{};    ///< as the user wrote it, on one line

  bool is_upper() const { return measure == Measure::us || measure == Measure::error; }
  /// Returns whether the gate is one of the device's.
  bool concerns(const DeviceInfo& info) const;
};

/// Reads a gate. `variants` are those of the operation. The path of a baseline is relative to
/// `folder`. A failure is one line that begins with the text.
Result<Gate> parse_gate(const std::string& text, const std::vector<std::string>& variants,
                        const std::filesystem::path& folder);

/// Returns the regular expression (ECMAScript) of gates, for the schema of presets.
std::string gate_pattern();

enum class GateOutcome {
  met,           ///< the whole interval keeps the limit
  missed,        ///< the whole interval exceeds it
  inconclusive,  ///< the interval contains it
  not_measured   ///< there is nothing to judge; `why` says why
};
std::string_view to_string(GateOutcome outcome);

/// The judgement of a gate.
struct GateResult {
  Gate gate;
  std::string benchmark{};  ///< name of the benchmark that it is of
  GateOutcome outcome = GateOutcome::not_measured;
  /// What was measured, in the gate's unit, with its 95 % interval. An error has no interval: both
  /// ends are the error.
  Interval measured{};
  std::string why{};

  /// Returns whether the gate is missed, or could not be judged.
  bool failed() const {
    return outcome == GateOutcome::missed || outcome == GateOutcome::not_measured;
  }
};

/// Returns the 95 % interval of the time in µs, from the medians of the blocks, which are
/// independent of each other; with fewer than two blocks, that of the summary.
Interval time_interval(const MeasuredResult& result);

/// Returns the time of one divided by that of the other, the median over the pairs of blocks that
/// were taken at about the same time, with its 95 % interval (ratio_interval()).
Interval paired_ratio(const Samples& one, const Samples& other);

/// Returns the time of `one` divided by that of `other`, which was measured at another time, maybe
/// on another device, with its 95 % interval: from the medians of the blocks of both
/// (shift_interval()), or from the intervals of both times if there are too few blocks.
Interval separate_ratio(const MeasuredResult& one, const MeasuredResult& other);

/// Judges a gate by the measured result. `reference` is what a speed is compared with; null if
/// there is none, or if the gate needs none.
GateResult judge(const Gate& gate, const std::string& benchmark, const MeasuredResult& measured,
                 const MeasuredResult* reference);

/// Returns the fastest result of a file that a gate with a baseline can be compared with: of this
/// problem with these caches, through the gate's API if it names one. Nothing if there is none.
std::optional<MeasuredResult> baseline_of(const Gate& gate, const Problem& problem,
                                          CacheState cache,
                                          const std::vector<MeasuredResult>& rows);

/// Returns "52.1 µs (51 to 53.5)", or why there is nothing.
std::string measured_text(const GateResult& result);
/// Returns "us <= 40: missed, 52.1 µs (51 to 53.5)".
std::string gate_text(const GateResult& result);

}  // namespace greta::tuner
