#include "tuner/compile/compile_report.hpp"

#include <fmt/format.h>

#include "db/json.hpp"
#include "runtime/device/hardware/occupancy.hpp"
#include "tuner/compile/loop_report.hpp"
#include "tuner/report/format.hpp"

namespace greta::tuner {
namespace {

constexpr auto columns = "  {:<14}{:>6}{:>6}{:>6}{:>8}{:>8}{:>9}{:>10}{:>10}{:>8}{:>12}  {}\n";

std::uint32_t threads_of(const KernelSource& source) {
  return source.block[0] * source.block[1] * source.block[2];
}

/// Computes the occupancy, unless the driver reports the number of waves per SIMD.
std::optional<Occupancy> reckoned(const DeviceInfo& target, std::uint32_t threads,
                                  const KernelStatistics& kernel) {
  if (kernel.subgroups_per_simd > 0) return std::nullopt;
  return occupancy(target, kernel, threads);
}

/// Returns the waves of a kernel per SIMD, as "4 of 8".
std::string waves_text(const KernelStatistics& kernel, const std::optional<Occupancy>& occupancy) {
  if (occupancy) return fmt::format("{:.3g} of {}", occupancy->waves, occupancy->max_waves);
  return kernel.subgroups_per_simd > 0 ? std::to_string(kernel.subgroups_per_simd) : "?";
}

/// Returns what limits the number of waves, or the driver's estimates.
std::string remarks(const KernelStatistics& kernel, const std::optional<Occupancy>& occupancy) {
  if (kernel.latency > 0) {
    return fmt::format("latency {:.0f}, inverse throughput {:.0f}", kernel.latency,
                       kernel.inverse_throughput);
  }
  if (!occupancy || occupancy->waves >= occupancy->max_waves) return {};
  return std::string(occupancy->limit);
}

std::string kernel_row(const DeviceInfo& target, const std::string& name, std::uint32_t threads,
                       const CompiledKernel& compiled) {
  const KernelStatistics& kernel = compiled.statistics;
  const auto there = reckoned(target, threads, kernel);
  std::string row = fmt::format(
      columns, name, kernel.registers, kernel.accumulator_registers, kernel.scalar_registers,
      kernel.spilled_registers, kernel.spilled_scalar_registers, format_bytes(kernel.scratch_bytes),
      format_bytes(kernel.shared_memory_bytes), format_bytes(kernel.code_bytes),
      compiled.counted ? std::to_string(kernel.matrix_instructions) : "?",
      waves_text(kernel, there), remarks(kernel, there));
  row.erase(row.find_last_not_of(" \n") + 1);
  row += '\n';
  for (const std::string& warning : compiled.warnings) row += "    warning: " + warning + "\n";
  return row + (compiled.loop ? loop_text(*compiled.loop) : "");
}

std::string header_row() {
  return fmt::format(columns, "kernel", "VGPR", "AGPR", "SGPR", "spilled", "(SGPR)", "scratch",
                     "LDS", "code", "matrix", "waves", "remarks");
}

/// Adds what only this report says about a kernel to its figures.
void add_figures(const DeviceInfo& target, std::uint32_t threads, const CompiledKernel& kernel,
                 nlohmann::json& json) {
  json["threads"] = threads;
  json["counted"] = kernel.counted;
  if (kernel.loop) json["main_loop"] = loop_json(*kernel.loop);
  if (!kernel.warnings.empty()) json["warnings"] = kernel.warnings;
  const auto there = reckoned(target, threads, kernel.statistics);
  if (!there) return;
  json["occupancy"] = {{"groups", there->groups},
                       {"waves", there->waves},
                       {"max_waves", there->max_waves},
                       {"limit", there->limit}};
}

nlohmann::json kernels_json(const DeviceInfo& target, const CompiledChoice& compiled) {
  std::vector<KernelFigures> figures;
  for (std::size_t i = 0; i < compiled.kernels.size(); ++i) {
    figures.push_back({compiled.plan.sources[i].name, compiled.kernels[i].statistics});
  }
  nlohmann::json list = to_json(figures);
  for (std::size_t i = 0; i < list.size(); ++i) {
    add_figures(target, threads_of(compiled.plan.sources[i]), compiled.kernels[i], list[i]);
  }
  return list;
}

}  // namespace

nlohmann::json compile_json(const DeviceInfo& target, const std::vector<CompileOutcome>& outcomes) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [choice, compiled, predicted] : outcomes) {
    nlohmann::json entry{{"problem", choice.problem.key()},
                         {"config", to_json(choice.config)},
                         {"config_text", choice.config.shown()},
                         {"status", compiled ? "ok" : to_string(compiled.failure().status)}};
    if (predicted) entry["predicted"] = *predicted;
    if (compiled) {
      entry["kernels"] = kernels_json(target, *compiled);
    } else {
      entry["message"] = compiled.failure().message;
      entry["log"] = compiled.failure().log;
    }
    list.push_back(std::move(entry));
  }
  return {{"architecture", target.architecture},
          {"name", target.name},
          {"driver", target.driver},
          {"compiler", target.compiler},
          {"configurations", std::move(list)}};
}

std::string compile_text(const DeviceInfo& target, const std::vector<CompileOutcome>& outcomes) {
  std::string text = target.architecture;
  if (!target.driver.empty()) text += fmt::format(" ({}, {})", target.name, target.driver);
  text += fmt::format(": {}\n", target.compiler);
  text += header_row();
  std::string problem;
  for (const auto& [choice, compiled, predicted] : outcomes) {
    if (choice.problem.key() != problem) {
      problem = choice.problem.key();
      text += problem + "\n";
    }
    text += fmt::format(" {}{}\n", choice.config.shown(),
                        predicted ? fmt::format("   predicted {:.2f}", *predicted) : "");
    if (!compiled) {
      text += fmt::format("  failed: {}\n", compiled.failure().message);
      continue;
    }
    for (std::size_t i = 0; i < compiled->kernels.size(); ++i) {
      const KernelSource& source = compiled->plan.sources[i];
      text += kernel_row(target, source.name, threads_of(source), compiled->kernels[i]);
    }
  }
  return text;
}

std::string code_object_text(const std::string& file, const CodeObjectKernels& contents) {
  std::string text = fmt::format("{}: {}\n{}", file, contents.target.architecture, header_row());
  for (const NamedKernel& kernel : contents.kernels) {
    text += kernel_row(contents.target, kernel.name, kernel.threads, kernel.compiled);
  }
  return text;
}

nlohmann::json code_object_json(const std::string& file, const CodeObjectKernels& contents) {
  std::vector<KernelFigures> figures;
  for (const NamedKernel& kernel : contents.kernels) {
    figures.push_back({kernel.name, kernel.compiled.statistics});
  }
  nlohmann::json list = to_json(figures);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const NamedKernel& kernel = contents.kernels[i];
    add_figures(contents.target, kernel.threads, kernel.compiled, list[i]);
  }
  return {
      {"file", file}, {"architecture", contents.target.architecture}, {"kernels", std::move(list)}};
}

}  // namespace greta::tuner
