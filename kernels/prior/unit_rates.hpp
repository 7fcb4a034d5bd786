#pragma once

#include "runtime/device/device_info.hpp"

namespace greta::kernels {

/// What a compute unit does in one cycle at most, and the latencies of a device, in cycles.
/// Vendors' documents give them; they rank configurations and need not be exact.
struct UnitRates {
  double units = 1;         ///< compute units
  double matrix_flops = 0;  ///< of 16-bit inputs; 0: no matrix instructions
  double vector_flops = 256;
  double lanes = 128;  ///< threads that issue a vector instruction at once
  double shared_bytes = 128;
  double cache_bytes = 64;   ///< from the last-level cache
  double memory_bytes = 16;  ///< this unit's part of the device's memory bandwidth
  double latency = 700;      ///< of a load from memory
  double launch = 5000;      ///< from one launch to the next
  /// Of this, what a launch after the plan's first one takes; less where they overlap.
  double next_launch = 1;
  double threads = 2048, registers = 65536, shared_memory = 65536;  ///< that fit a unit
  double thread_registers = 255;                                    ///< at most
};

UnitRates unit_rates(const DeviceInfo& device);

}  // namespace greta::kernels
