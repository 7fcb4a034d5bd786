#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "kernels/model/space.hpp"
#include "tuner/evaluate/evaluator_pool.hpp"

namespace greta::tuner {

struct RecordOptions {
  /// The recording; compressed when it is complete if its name ends in .gz. Until then its lines
  /// are appended to a file of this name without .gz, with the ending .part.
  std::filesystem::path file;
  std::optional<std::uint64_t> points;  ///< number of random configurations; nothing: all
  std::uint64_t seed = 1;               ///< of the order of the configurations
  TrialLimits limits;                   ///< best_us is ignored: every time is measured in full
};

struct RecordProgress {
  std::uint64_t wanted = 0;    ///< configurations
  std::uint64_t recorded = 0;  ///< of them, including earlier runs
  std::uint64_t failed = 0;    ///< of those recorded

  bool complete() const { return recorded == wanted; }
};

/// Evaluates the configurations of a space in a random order and appends each trial to a recording
/// (space_recording.hpp) as soon as it ends, so that a kill loses at most those that run. Asked
/// again, goes on with what is missing; with more points, adds them. Fails on the field "record" if
/// the file is of another problem, device, driver, compiler, template, space or seed, or is no
/// recording, or can't be written. `show` is called
/// after each trial. Ends early when `stop` is set.
Result<RecordProgress> record_space(EvaluatorPool& pool, const Problem& problem, const Space& space,
                                    const RecordOptions& options,
                                    const std::function<void(const RecordProgress&)>& show,
                                    const std::atomic<bool>& stop);

}  // namespace greta::tuner
