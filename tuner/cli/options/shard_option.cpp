#include "tuner/cli/options/shard_option.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>

#include "kernels/catalog.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/tuning/expected_cost.hpp"

namespace greta::tuner::cli {
namespace {

constexpr std::size_t most_shards = 1'000'000;

std::optional<std::size_t> number_of(const std::string& text) {
  std::size_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || text.empty()) return std::nullopt;
  return number;
}

[[noreturn]] void refuse_shard(const std::string& text, const std::string& why) {
  throw CommandError(exit_usage, fmt::format("--shard {}: {}", text, why));
}

std::optional<std::size_t> read_variable(const std::string& text, const Variables& variables,
                                         const std::string& name) {
  const auto value = variables(name);
  if (!value) return std::nullopt;
  const auto number = number_of(*value);
  if (!number) refuse_shard(text, fmt::format("{}={} is not a number", name, *value));
  return number;
}

/// Returns the index and, without `count`, the number of tasks of a Slurm array.
Shard shard_of_slurm(const std::string& text, const Variables& variables, std::size_t id,
                     std::optional<std::size_t> count) {
  // With a count, the array begins at 0: some of its tasks may be submitted again, and the others'
  // numbers are not known then.
  if (count) return {id, *count};
  count = read_variable(text, variables, "SLURM_ARRAY_TASK_COUNT");
  if (!count) refuse_shard(text, "SLURM_ARRAY_TASK_COUNT is not set; use auto/N");
  const std::size_t least = read_variable(text, variables, "SLURM_ARRAY_TASK_MIN").value_or(0);
  const std::size_t step = read_variable(text, variables, "SLURM_ARRAY_TASK_STEP").value_or(1);
  if (id < least || step == 0 || (id - least) % step != 0 || (id - least) / step >= *count) {
    refuse_shard(text, fmt::format("task {} of an array of {} tasks that has gaps; use auto/N with "
                                   "--array=0-(N-1)",
                                   id, *count));
  }
  return {(id - least) / step, *count};
}

Shard automatic_shard(const std::string& text, const Variables& variables) {
  std::optional<std::size_t> count;
  if (text != "auto") {
    count = number_of(text.substr(5));
    if (!count) refuse_shard(text, "must be i/n, auto or auto/n");
  }
  if (const auto id = read_variable(text, variables, "SLURM_ARRAY_TASK_ID"))
    return shard_of_slurm(text, variables, *id, count);
  if (const auto id = read_variable(text, variables, "JOB_COMPLETION_INDEX")) {
    if (!count)
      refuse_shard(text,
                   "Kubernetes sets JOB_COMPLETION_INDEX but not the number of completions; use "
                   "auto/N");
    return {*id, *count};
  }
  refuse_shard(text, "neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX is set");
}

}  // namespace

Shard read_shard(const std::string& text, const Variables& variables) {
  Shard shard;
  if (text == "auto" || text.starts_with("auto/")) {
    shard = automatic_shard(text, variables);
  } else {
    const auto slash = text.find('/');
    const auto index = number_of(text.substr(0, slash));
    const auto count =
        slash == std::string::npos ? std::nullopt : number_of(text.substr(slash + 1));
    if (!index || !count || *index == 0) refuse_shard(text, "must be i/n as 1/8, auto or auto/n");
    shard = {*index - 1, *count};
  }
  if (shard.count == 0 || shard.count > most_shards || shard.index >= shard.count) {
    refuse_shard(text, fmt::format("there is no part {} of {}", shard.index + 1, shard.count));
  }
  return shard;
}

Shard read_shard(const std::string& text) {
  return read_shard(text, [](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
  });
}

std::vector<TuningTask> tasks_of(const Shard& shard, const std::vector<TuningTask>& tasks,
                                 const Budget& budget) {
  const Catalog catalog = known_operations();
  std::vector<double> costs;
  for (const TuningTask& task : tasks) {
    costs.push_back(expected_cost_s(catalog.at(task.problem.op), task.problem, budget));
  }
  const auto parts = shards_of(costs, shard.count);
  std::vector<TuningTask> own;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (parts[i] == shard.index) own.push_back(tasks[i]);
  }
  return own;
}

}  // namespace greta::tuner::cli
