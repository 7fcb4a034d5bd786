#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::db {

/// What a card's driver reports of its state; empty where it reports nothing.
struct CardState {
  std::optional<double> watts;
  std::optional<double> celsius;
  std::string throttled;  ///< why its clocks are limited: "power cap, thermal"

  bool operator==(const CardState&) const = default;
};

/// Device times of one kernel, and a robust summary. All times are in microseconds.
struct Measurement {
  std::vector<double> samples_us;  ///< in order of measurement, including outliers
  double median_us = 0;
  double low_us = 0;   ///< 95 % confidence interval of the median; the extremes
  double high_us = 0;  ///< of the samples where there are too few
  double p99_us = 0;
  bool cold = true;               ///< caches were flushed before every sample
  bool raced = false;             ///< stopped early as significantly slower than the best
  int batch = 1;                  ///< launches averaged in one sample
  int dropped = 0;                ///< samples or rounds left out because of device drift
  std::uint64_t flush_bytes = 0;  ///< memory used to flush caches between cold samples
  std::string clocks;             ///< e.g. "SM 1980 MHz"; empty where not readable
  CardState card_state;           ///< after the samples

  /// Returns the 10 %-90 % range divided by the median, in percent.
  double spread_percent() const;
};

}  // namespace greta::db
