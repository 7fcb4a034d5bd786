#include "tuner/profile/static_figures.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "db/json.hpp"
#include "tuner/compile/loop_report.hpp"
#include "tuner/compile/target_compiler.hpp"
#include "tuner/report/format.hpp"

namespace greta::tuner {
namespace {

std::uint32_t threads_of(const KernelSource& source) {
  return source.block[0] * source.block[1] * source.block[2];
}

/// Sets the main loops of an AMD GPU's kernels, as far as they can be found.
void add_loops(const Operation& operation, const Candidate& candidate, const DeviceInfo& device,
               std::vector<StaticKernel>& kernels) {
  if (device.language != Language::hip || !device.architecture.starts_with("gfx")) return;
  const auto target = create_probed_target(device, {});
  if (!target) return;
  const auto outcomes = compile_plans(**target, operation, {candidate});
  const auto& compiled = outcomes.front().compiled;
  if (!compiled || compiled->kernels.size() != kernels.size()) return;
  for (std::size_t i = 0; i < kernels.size(); ++i) kernels[i].loop = compiled->kernels[i].loop;
}

}  // namespace

std::vector<StaticKernel> static_kernels(const Operation& operation, const Problem& problem,
                                         const DeviceInfo& device, const Trial& trial) {
  const auto plan = operation.plan(problem, device, trial.config);
  if (!plan || plan->sources.size() != trial.kernels.size()) return {};
  std::vector<StaticKernel> kernels;
  for (std::size_t i = 0; i < trial.kernels.size(); ++i) {
    const auto& [name, statistics] = trial.kernels[i];
    StaticKernel kernel{
        .name = name, .threads = threads_of(plan->sources[i]), .statistics = statistics};
    if (statistics.registers > 0) kernel.occupancy = occupancy(device, statistics, kernel.threads);
    kernels.push_back(std::move(kernel));
  }
  add_loops(operation, {problem, trial.config}, device, kernels);
  return kernels;
}

std::string static_text(const StaticKernel& kernel) {
  const KernelStatistics& known = kernel.statistics;
  std::vector<std::string> parts{fmt::format("{} threads", kernel.threads)};
  const auto add = [&](double value, std::string text) {
    if (value > 0) parts.push_back(std::move(text));
  };
  add(known.registers, fmt::format("{} registers", known.registers));
  add(known.accumulator_registers,
      fmt::format("{} accumulator registers", known.accumulator_registers));
  add(known.spilled_registers, fmt::format("{} of them spilled", known.spilled_registers));
  add(known.scratch_bytes,
      fmt::format("{} of scratch memory a thread", format_bytes(known.scratch_bytes)));
  add(known.shared_memory_bytes,
      fmt::format("{} of shared memory", format_bytes(known.shared_memory_bytes)));
  add(known.matrix_instructions, fmt::format("{} matrix instructions", known.matrix_instructions));
  if (kernel.occupancy) {
    const Occupancy& most = *kernel.occupancy;
    parts.push_back(
        fmt::format("at most {:.3g} of {} subgroups a SIMD", most.waves, most.max_waves));
    if (most.waves < most.max_waves) parts.back() += fmt::format(", by {}", most.limit);
  } else {
    add(known.subgroups_per_simd,
        fmt::format("at most {} subgroups a SIMD", known.subgroups_per_simd));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

nlohmann::json static_json(const std::vector<StaticKernel>& kernels) {
  std::vector<KernelFigures> figures;
  for (const StaticKernel& kernel : kernels) figures.push_back({kernel.name, kernel.statistics});
  nlohmann::json list = to_json(figures);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const StaticKernel& kernel = kernels[i];
    list[i]["threads"] = kernel.threads;
    if (kernel.loop) list[i]["main_loop"] = loop_json(*kernel.loop);
    if (!kernel.occupancy) continue;
    list[i]["occupancy"] = {{"groups", kernel.occupancy->groups},
                            {"waves", kernel.occupancy->waves},
                            {"max_waves", kernel.occupancy->max_waves},
                            {"limit", kernel.occupancy->limit}};
  }
  return list;
}

}  // namespace greta::tuner
