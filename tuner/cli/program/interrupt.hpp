#pragma once

#include <atomic>
#include <chrono>

#include "runtime/device/layers.hpp"

namespace greta::tuner::cli {

/// Makes SIGINT, SIGTERM and SIGHUP request an orderly end; a second signal of the same kind ends
/// the process. Ignored signals, e.g. under nohup, stay ignored. If the orderly end has not begun
/// after a second (answer_interrupt()), a line says that the process waits for what runs; after
/// `patience`, the process ends.
void catch_interrupts(std::chrono::seconds patience = std::chrono::seconds(4));

/// From now on, results exist that are not stored yet: after an interrupt, the process does not end
/// before an orderly end.
void keep_results_after_interrupt();

/// While one exists, an interrupt ends the process at once: nothing would be lost.
class EndsAtOnce {
 public:
  EndsAtOnce();
  ~EndsAtOnce();
  EndsAtOnce(const EndsAtOnce&) = delete;
  EndsAtOnce& operator=(const EndsAtOnce&) = delete;
};

/// Begins the orderly end: only results are still written or printed. Does nothing without an
/// interrupt.
void answer_interrupt();

/// Returns whether an orderly end was requested.
const std::atomic<bool>& stop_requested();

}  // namespace greta::tuner::cli
