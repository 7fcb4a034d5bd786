#pragma once

#include <optional>
#include <string>
#include <vector>

#include "db/pin.hpp"
#include "kernels/model/config.hpp"

namespace greta::db {

/// The energy that one launch takes, from blocks of launches back to back, with warm caches. It is
/// that of the whole card, including what it takes while it does nothing.
struct Energy {
  double joules = 0;
  double low = 0, high = 0;  ///< bounds by the spread of the blocks and the sensor's resolution
  double watts = 0;          ///< mean power during the blocks
  double us = 0;             ///< time of a launch in the blocks
  std::string source;        ///< "NVML energy counter"
};

/// The configuration of which a launch takes the least energy.
struct EnergyWinner {
  Config config;
  bool is_default = false;  ///< nothing takes significantly less than the default
  Energy energy;
  Energy default_energy;
  std::string card;  ///< UUID; empty: unknown
};

/// A stored EnergyWinner with its question.
struct StoredEnergyWinner {
  Question question;
  std::string device;  ///< name
  std::string driver;
  std::string started_utc;
  EnergyWinner winner;
};

}  // namespace greta::db
