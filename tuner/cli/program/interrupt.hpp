#pragma once

#include <atomic>

#include "runtime/device/layers.hpp"

namespace greta::tuner::cli {

/// Makes SIGINT, SIGTERM and SIGHUP request an orderly end; a second signal of the same kind ends
/// the process. Ignored signals, e.g. under nohup, stay ignored.
void catch_interrupts();

/// Returns whether an orderly end was requested.
const std::atomic<bool>& stop_requested();

}  // namespace greta::tuner::cli
