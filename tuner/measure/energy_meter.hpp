#pragma once

#include <functional>

#include "db/energy.hpp"
#include "runtime/device/result.hpp"
#include "tuner/measure/card_sensor.hpp"

namespace greta::tuner {

/// One block of launches back to back.
struct EnergyBlock {
  double joules = 0;  ///< of one launch
  double us = 0;      ///< of one launch
  double watts = 0;
  /// Uncertainty of `joules` by the moments of reading: one submission at each end.
  double sensor_error = 0;
};

/// Runs `launch`, which runs a number of launches and waits for them, for at least `seconds`, and
/// reads the energy counter at its updates: a counter that is updated ten times a second would
/// otherwise be wrong by a fifth of a second of power. Fails with `unavailable` if there is no
/// counter or it does not advance.
Result<EnergyBlock> measure_block(CardSensor& sensor,
                                  const std::function<Result<void>(int)>& launch, double seconds);

/// Summarises blocks: the median, with bounds that contain all blocks and the sensor's error.
Energy summarise(const std::vector<EnergyBlock>& blocks, const std::string& sensor);

}  // namespace greta::tuner
