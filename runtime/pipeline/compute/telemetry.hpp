#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/pipeline/compute/prepared.hpp"

namespace greta::runtime {

/// Counts of one problem.
struct OperationReport {
  Problem problem;
  std::string key;  ///< of the problem
  std::string config;
  LookupOrigin origin = LookupOrigin::fallback;
  OperationCounts counts;
};

/// Counts of one operation of the catalog over all its problems.
struct OperationTotals {
  std::string op;
  std::array<std::uint64_t, lookup_origins> hits{};  ///< runs by LookupOrigin
  std::uint64_t prepared = 0;  ///< number of problems that were looked up and compiled
  std::uint64_t replaced = 0;  ///< of these, number that ran another configuration than looked up
  OperationCounts counts;
};

/// Counts a runtime's operations. Off by default, when it costs one branch per operation.
class Telemetry {
 public:
  struct Options {
    bool count = false;
    /// With `count`: also times each operation on the device. Operations of graphs are then
    /// launched one by one, with events between them.
    bool device_time = false;
  };

  void set(const Options& options) { options_ = options; }
  bool counts() const { return options_.count; }
  bool times() const { return options_.count && options_.device_time; }

  /// Registers a graph. Its replays, counted in the returned number, count for each of its
  /// operations.
  std::shared_ptr<std::uint64_t> add_graph(std::vector<const PreparedOperation*> operations);

  /// Returns counts by problem, sorted by device time, then by runs, in descending order.
  /// `prepared`: Runtime::prepared().
  std::vector<OperationReport> report(std::span<const PreparedOperation* const> prepared) const;
  /// Returns counts of the operations that ran or were prepared, in the catalog's order.
  std::vector<OperationTotals> totals(std::span<const PreparedOperation* const> prepared) const;

 private:
  struct GraphCounts {
    std::vector<const PreparedOperation*> operations;
    std::shared_ptr<std::uint64_t> replays;
  };
  OperationCounts counts_of(const PreparedOperation& operation) const;

  Options options_;
  std::vector<GraphCounts> graphs_;
};

}  // namespace greta::runtime
