#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::db {

/// Device times of one kernel, and their robust summary. All times in microseconds.
struct Measurement {
  std::vector<double> samples_us;  ///< in the order taken; outliers included
  double median_us = 0;
  double low_us = 0;   ///< 95 % confidence interval of the median; both equal to the extremes
  double high_us = 0;  ///< where there are too few samples for one
  double p99_us = 0;
  bool cold = true;               ///< caches were flushed before every sample
  bool raced = false;             ///< stopped early because it was surely slower than the best
  int batch = 1;                  ///< launches averaged in one sample
  int dropped = 0;                ///< samples or rounds left out because the device drifted
  std::uint64_t flush_bytes = 0;  ///< of memory that flushed the caches between cold samples
  std::string clocks;             ///< e.g. "SM 1980 MHz" where readable, else empty

  /// 10 %-90 % range over the median, in percent.
  double spread_percent() const;
};

}  // namespace greta::db
