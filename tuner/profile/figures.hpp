#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "db/counters.hpp"
#include "runtime/device/counter_reader.hpp"

namespace greta::tuner {

/// The unit of a figure.
enum class FigureUnit { bytes, bytes_per_clock, number, share };

/// A figure that counters give, in words that do not depend on the GPU.
struct Figure {
  std::string_view name;   ///< in databases, JSON and CSV: "memory_read_bytes"
  std::string_view label;  ///< in tables: "read from memory"
  FigureUnit unit = FigureUnit::number;
  std::string_view meaning;  ///< one sentence
};

// Names that the limiter reads.
inline constexpr std::string_view figure_memory_read = "memory_read_bytes";
inline constexpr std::string_view figure_memory_write = "memory_write_bytes";
inline constexpr std::string_view figure_l2_share = "l2_share";
inline constexpr std::string_view figure_shared_rate = "shared_bytes_per_clock";
inline constexpr std::string_view figure_shared_peak = "shared_peak_bytes_per_clock";
inline constexpr std::string_view figure_shared_conflicts = "shared_conflict_share";
inline constexpr std::string_view figure_l1_share = "l1_share";
inline constexpr std::string_view figure_matrix_share = "matrix_share";
inline constexpr std::string_view figure_fma_share = "fma_share";
inline constexpr std::string_view figure_alu_share = "alu_share";
inline constexpr std::string_view figure_memory_unit_share = "memory_unit_share";
inline constexpr std::string_view figure_issue_share = "issue_share";
inline constexpr std::string_view figure_occupancy = "occupancy_share";
inline constexpr std::string_view figure_balance = "balance_share";
inline constexpr std::string_view figure_counted_time = "counted_us";

/// Returns all figures but the stalls, in the order of reports.
const std::vector<Figure>& figures();

/// A reason for which a subgroup waits.
struct StallReason {
  std::string_view name;   ///< "long_scoreboard"; its figure is "stall_long_scoreboard_share"
  std::string_view words;  ///< "loads from memory and L2"
};
const std::vector<StallReason>& stall_reasons();
/// Returns the name of a reason's figure, the share of the subgroups' time.
std::string stall_figure(std::string_view reason);

/// A counted share of the subgroups' time.
struct Stall {
  const StallReason* reason = nullptr;
  double share = 0;
};
/// Returns what the subgroups wait for, the longest first. Subgroups that issue an instruction, or
/// could issue one, wait for nothing and are left out.
std::vector<Stall> stalls(const Counters& counters);

/// Returns the counters of all sources whose values give the figures.
std::vector<std::string> counter_names();

/// Computes the figures of a reading.
Counters figures_of(const CounterReading& reading, bool cold);
/// Does the same of what a reader answered. Fails like it, and with `unavailable` if the source's
/// counters give no figure.
Result<Counters> figures_of(const Result<CounterReading>& reading, bool cold);

}  // namespace greta::tuner
