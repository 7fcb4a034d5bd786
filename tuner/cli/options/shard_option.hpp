#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tuner/tuning/tuner_options.hpp"

namespace greta::tuner::cli {

/// One of several parts of a list of problems.
struct Shard {
  std::size_t index = 0;  ///< from 0
  std::size_t count = 1;
};

/// Reads an environment variable; nothing if it is not set.
using Variables = std::function<std::optional<std::string>(const std::string& name)>;

/// Reads the value of --shard: "3/8" (from 1), "auto" or "auto/8". "auto" takes the index, and the
/// count if none is given, from the variables of a Slurm array or of an indexed job of Kubernetes.
/// Throws CommandError.
Shard read_shard(const std::string& text, const Variables& variables);
/// Reads it with the variables of this process.
Shard read_shard(const std::string& text);

/// Returns the tasks of a shard, in their order. All shards of equal tasks and budgets are of about
/// equal expected cost, and the same on every machine.
std::vector<TuningTask> tasks_of(const Shard& shard, const std::vector<TuningTask>& tasks,
                                 const Budget& budget);

}  // namespace greta::tuner::cli
