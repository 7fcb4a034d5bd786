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

/// What the compiler or the driver says about one kernel of a candidate.
struct KernelFigures {
  std::string name;  ///< "gemm/tiled"
  KernelStatistics statistics;

  bool operator==(const KernelFigures&) const = default;
};

/// One evaluated configuration: the one thing told to strategies, recorded and exported.
struct Trial {
  Config config;
  std::optional<Status> failure;  ///< nothing: compiled, right and measured
  std::string message;            ///< one line on the failure
  std::string log;                ///< whole compiler output of a failure
  Verdict verdict;
  Measurement measurement;
  std::string problem_key;   ///< what was run: differs from the session's problem for a stand-in
  std::string content_keys;  ///< of its kernels, comma-separated
  std::vector<KernelFigures> kernels;  ///< in the same order; empty where it did not compile
  double compile_s = 0;                ///< host seconds
  double verify_s = 0;
  double measure_s = 0;
  std::string recorded_utc;  ///< when it was stored; empty before

  bool ok() const { return !failure.has_value(); }
};

}  // namespace greta::db
