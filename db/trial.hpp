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
  std::string recorded_utc;  ///< when it was stored; empty before
  std::string card;          ///< UUID of the card that it ran on; empty: unknown

  bool ok() const { return !failure.has_value(); }
};

}  // namespace greta::db
