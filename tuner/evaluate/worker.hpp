#pragma once

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// Serves a session from this process until the connection closes: opens a device, then answers
/// evaluate, verify, time_rounds and measure_ceilings. Returns the process's exit code. Ends the
/// process when its device is lost, since a kernel that never ends can't be stopped otherwise.
int serve_as_worker();

}  // namespace greta::tuner
