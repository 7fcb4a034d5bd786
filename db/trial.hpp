#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "db/measurement.hpp"
#include "kernels/model/config.hpp"
#include "kernels/model/operation.hpp"
#include "runtime/device/device.hpp"
#include "runtime/device/result.hpp"

namespace greta::db {

/// Statistics from the compiler or the driver about one kernel of a candidate.
struct KernelFigures {
  std::string name;  ///< "gemm/tiled"
  KernelStatistics statistics;

  bool operator==(const KernelFigures&) const = default;
};

/// The part of a session in which a trial ran.
enum class TrialPhase {
  plan,    ///< of the default, before the search
  search,  ///< of a candidate that the strategy asked for
  finals,  ///< of a finalist, or of the naive kernel
  lost     ///< work of a process that died; it was begun again, or its trial follows
};

/// One evaluated configuration, in the form that is reported to strategies, recorded and exported.
struct Trial {
  Config config;
  std::optional<Status> failure;  ///< nothing: compiled, verified and measured
  std::string message;            ///< one line that describes the failure
  std::string log;                ///< full compiler output of a failure
  Verdict verdict;
  Measurement measurement;
  std::string problem_key;   ///< problem that ran; a stand-in's differs from the session's
  std::string content_keys;  ///< keys of its kernels, comma-separated
  std::vector<KernelFigures> kernels;  ///< in the same order; empty if it did not compile
  double compile_s = 0;                ///< seconds of host time
  double verify_s = 0;
  double measure_s = 0;
  std::optional<TrialPhase> phase;  ///< nothing: unknown
  /// Number of times that the strategy had been asked when it was told this trial of the search.
  std::optional<std::int64_t> asks;
  double elapsed_s = 0;      ///< seconds of the session's budget that were spent then
  std::string recorded_utc;  ///< when it was stored; empty before
  std::string card;          ///< UUID of the card that it ran on; empty: unknown

  bool ok() const { return !failure.has_value(); }
};

}  // namespace greta::db
