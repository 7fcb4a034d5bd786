#pragma once

#include "kernels/catalog.hpp"

namespace greta::tuner {

/// Serves a session from this process until the connection closes: opens a device, then answers
/// evaluate, verify, time_rounds and measure_ceilings. Returns the process's exit code. Ends the
/// process when its device is lost, since a kernel that never ends can't be stopped otherwise.
/// `catalog` must hold the operations of the program that starts the worker. If it does not, or if
/// the program is another build, the session fails with a one-line message.
int serve_as_worker(const Catalog& catalog = Catalog::built_in());

}  // namespace greta::tuner
