#pragma once

#include <functional>

#include "runtime/device/counter_reader.hpp"

namespace greta::device {

/// Runs one part of the work to count, and waits for it. An empty part does nothing.
inline Result<void> run_part(const CountedWork& work,
                             const std::function<Result<void>(Stream&)>& part) {
  if (!part) return {};
  if (auto recorded = part(*work.stream); !recorded) {
    work.stream->discard();
    return recorded;
  }
  return work.stream->synchronize(work.deadline);
}

}  // namespace greta::device
