#pragma once

#include "runtime/device/layers.hpp"

namespace greta::tuner {

// Times of work that no change of GRETA can change, taken beside each block of samples: when they
// differ between two runs, the machine does. µs, the fastest of a few.

/// Dependent arithmetic on one core.
double spin_us();
/// A thread wakes another and is woken by it: there and back.
double wake_us();

}  // namespace greta::tuner
