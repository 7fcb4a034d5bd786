#pragma once

#include <atomic>

#include "runtime/device/layers.hpp"

namespace greta::tuner::cli {

/// From now on SIGINT, SIGTERM and SIGHUP ask for an orderly end; a second one of its kind ends the
/// process. A signal that is ignored, as nohup leaves it, stays so.
void catch_interrupts();

/// Whether an orderly end was asked for.
const std::atomic<bool>& stop_requested();

}  // namespace greta::tuner::cli
