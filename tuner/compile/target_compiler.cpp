#include "tuner/compile/target_compiler.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "runtime/device/compile/listing.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "runtime/device/hip/code_object.hpp"
#include "runtime/device/hip/compiler.hpp"
#include "runtime/device/hip/cubin.hpp"
#include "runtime/device/hip/disassembler.hpp"
#include "runtime/device/hip/entry_symbol.hpp"
#include "runtime/device/hip/host/host_compiler.hpp"
#include "runtime/device/hip/platform.hpp"
#include "runtime/device/vulkan/vulkan_backend.hpp"
#include "tuner/compile/kernel_loops.hpp"

namespace greta::tuner {
namespace {

class HipTarget final : public TargetCompiler {
 public:
  HipTarget(DeviceInfo info, std::unique_ptr<hip::Compiler> compiler, OpenOptions options)
      : info_(std::move(info)), compiler_(std::move(compiler)), options_(std::move(options)) {}

  const DeviceInfo& target() const override { return info_; }

  Result<CompiledKernel> compile(const KernelSource& source) override {
    auto compiled = compiler_->compile(source, info_.architecture);
    if (!compiled) return compiled.failure();
    CompiledKernel kernel{std::move(compiled->binary), {}, {}};
    kernel.warnings = performance_warnings(compiled->log);
    const auto statistics =
        read_statistics(kernel.code_object, hip::entry_symbol(kernel.code_object, source.entry));
    if (!statistics) return statistics.failure();
    kernel.statistics = *statistics;
    kernel.statistics.shared_memory_bytes += source.dynamic_shared_bytes;
    kernel.counted = info_.vendor == "NVIDIA";
    if (info_.vendor != "AMD") return kernel;
    if (auto listing = hip::disassemble(kernel.code_object, options_)) {
      kernel.statistics.matrix_instructions = count_matrix_instructions(*listing);
      kernel.listing = *std::move(listing);
      kernel.counted = true;
    }
    return kernel;
  }

 private:
  Result<KernelStatistics> read_statistics(std::span<const std::byte> code_object,
                                           const std::string& entry) const {
    if (info_.is_cpu()) return hip::host::read_statistics(code_object, entry);
    return info_.vendor == "NVIDIA" ? hip::read_cubin_statistics(code_object, entry)
                                    : hip::read_statistics(code_object, entry);
  }

  DeviceInfo info_;
  std::unique_ptr<hip::Compiler> compiler_;
  OpenOptions options_;
};

class GlslTarget final : public TargetCompiler {
 public:
  explicit GlslTarget(DeviceInfo info) : info_(std::move(info)) {}

  const DeviceInfo& target() const override { return info_; }

  Result<CompiledKernel> compile(const KernelSource& source) override {
    const auto spirv = vulkan::translate(info_.index, source);
    if (!spirv) return spirv.failure();
    const auto bytes = std::as_bytes(std::span(*spirv));
    KernelStatistics statistics;
    statistics.code_bytes = static_cast<std::uint32_t>(bytes.size());
    return CompiledKernel{{bytes.begin(), bytes.end()}, statistics, {}};
  }

 private:
  DeviceInfo info_;
};

class DeviceTarget final : public TargetCompiler {
 public:
  explicit DeviceTarget(std::unique_ptr<Device> device) : device_(std::move(device)) {}

  const DeviceInfo& target() const override { return device_->info(); }

  Result<CompiledKernel> compile(const KernelSource& source) override {
    const auto compiled = device_->compile(source);
    if (!compiled) return compiled.failure();
    CompiledKernel kernel{{}, (*compiled)->statistics(), {}};
    if (auto listing = (*compiled)->listing()) {
      kernel.listing = *std::move(listing);
      kernel.counted = true;
    }
    return kernel;
  }

 private:
  std::unique_ptr<Device> device_;
};

/// Returns the hip-host device that emulates an architecture.
std::optional<DeviceInfo> host_info(const std::string& architecture) {
  const auto platform = hip::host_platform();
  for (int i = 0; platform && i < platform->device_count; ++i) {
    if (auto info = platform->describe(i).info; info.architecture == architecture) return info;
  }
  return std::nullopt;
}

Result<std::unique_ptr<hip::Compiler>> create_compiler(const DeviceInfo& info,
                                                       const OpenOptions& options) {
  if (info.is_cpu()) return hip::host::create_compiler(options);
  return info.vendor == "NVIDIA" ? hip::create_nvidia_compiler(options)
                                 : hip::create_amd_compiler(options);
}

Result<std::unique_ptr<TargetCompiler>> create_hip_target(DeviceInfo info,
                                                          const OpenOptions& options) {
  auto compiler = create_compiler(info, options);
  if (!compiler) return compiler.failure();
  auto version = (*compiler)->used_for(info.architecture);
  if (!version) return version.failure();
  info.compiler = *version;
  return std::unique_ptr<TargetCompiler>(
      std::make_unique<HipTarget>(std::move(info), *std::move(compiler), options));
}

}  // namespace

std::vector<std::string> performance_warnings(std::string_view log) {
  constexpr std::string_view code = "(C75";
  std::vector<std::string> warnings;
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(line.size() + 1, log.size()));
    const std::size_t start = line.find(code);
    if (start == std::string_view::npos) continue;
    std::string warning(line.substr(start));
    if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end()) {
      warnings.push_back(std::move(warning));
    }
  }
  return warnings;
}

Result<std::unique_ptr<TargetCompiler>> create_hip_target(const std::string& architecture,
                                                          const OpenOptions& options) {
  const bool host = architecture.starts_with("host-");
  auto info = host ? host_info(architecture) : architecture_info(architecture);
  if (!info) {
    return Failure{Status::invalid_argument,
                   fmt::format("must be one of {}", fmt::join(known_architectures(), ", ")),
                   {}};
  }
  return create_hip_target(*std::move(info), options);
}

Result<std::unique_ptr<TargetCompiler>> create_probed_target(const DeviceInfo& device,
                                                             const OpenOptions& options) {
  if (device.language == Language::hip) return create_hip_target(device, options);
  return std::unique_ptr<TargetCompiler>(std::make_unique<GlslTarget>(device));
}

std::unique_ptr<TargetCompiler> create_device_target(std::unique_ptr<Device> device) {
  return std::make_unique<DeviceTarget>(std::move(device));
}

Result<CompiledChoice> compile_plan(TargetCompiler& compiler, const Operation& operation,
                                    const Candidate& choice) {
  auto plan = operation.plan(choice.problem, compiler.target(), choice.config);
  if (!plan) return plan.failure();
  CompiledChoice compiled{choice, compiler.target().architecture, *std::move(plan), {}};
  for (KernelSource& source : compiled.plan.sources) {
    auto kernel = compiler.compile(source);
    if (!kernel) return kernel.failure();
    if (source.language == Language::hip) {
      source.entry = hip::entry_symbol(kernel->code_object, source.entry);
    }
    compiled.kernels.push_back(*std::move(kernel));
  }
  return compiled;
}

std::vector<CompileOutcome> compile_plans(TargetCompiler& compiler, const Operation& operation,
                                          const std::vector<Candidate>& choices) {
  std::vector<CompileOutcome> outcomes;
  for (const Candidate& choice : choices) {
    outcomes.push_back({choice, Failure{Status::compile, "not compiled", {}}});
  }
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < outcomes.size(); i = next++) {
      outcomes[i].compiled = compile_plan(compiler, operation, choices[i]);
      if (outcomes[i].compiled) examine_main_loops(compiler.target(), *outcomes[i].compiled);
    }
  };
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::jthread> workers;
  for (std::size_t i = 1; i < std::min(cores, choices.size()); ++i) workers.emplace_back(work);
  work();
  workers.clear();  // joins
  return outcomes;
}

}  // namespace greta::tuner
