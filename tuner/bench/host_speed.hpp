#pragma once

#include "runtime/device/layers.hpp"

namespace greta::tuner {

// Times of constant work, which no change of GRETA affects. They are measured beside each block of
// samples, so that a difference between two runs reveals a change of the machine. Each is the
// fastest of a few, in µs.

/// Times dependent arithmetic on one core.
double spin_us();
/// Times a thread that wakes another and is woken by it.
double wake_us();

}  // namespace greta::tuner
