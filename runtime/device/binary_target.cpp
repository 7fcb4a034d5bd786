#include "runtime/device/binary_target.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "runtime/device/hip/compiler.hpp"
#include "runtime/device/hip/host/host_compiler.hpp"
#include "runtime/device/vulkan/cooperative_matrix.hpp"
#include "runtime/device/vulkan/glsl_compiler.hpp"
#include "runtime/device/vulkan/vulkan_backend.hpp"

namespace greta::device {
namespace {

using vulkan::CooperativeMatrix;

constexpr std::array<std::pair<std::string_view, CooperativeMatrix>, 2> flavours{
    {{"spirv khr", CooperativeMatrix::khr}, {"spirv nv", CooperativeMatrix::nv}}};

std::string option_of(CooperativeMatrix extension) {
  return "-D" + vulkan::matrix_macro(extension);
}

std::vector<std::string> targets_of_glsl(const DeviceInfo& device) {
  std::vector<std::string> targets;
  const auto options = vulkan::device_options(device.index);
  for (const auto& [name, extension] : flavours) {
    if (!options) break;
    const bool used =
        std::find(options->begin(), options->end(), option_of(extension)) != options->end();
    if (used) targets.emplace_back(name);
  }
  targets.emplace_back("spirv");
  return targets;
}

std::string target_of_hip(const DeviceInfo& device) {
  if (!device.is_cpu()) return device.architecture;
  return device.architecture + " " + hip::host::library_interface();
}

class GlslBinaries final : public BinaryCompiler {
 public:
  Result<std::vector<TargetBinary>> compile(const KernelSource& source) override {
    if (source.text.find("GRETA_MATRIX") == std::string::npos) {
      auto spirv = compiled(source, {});
      if (!spirv) return spirv.failure();
      return std::vector{binary("spirv", *spirv)};
    }
    std::vector<TargetBinary> binaries;
    std::optional<Failure> failure;
    for (const auto& [name, extension] : flavours) {
      const auto spirv = compiled(source, option_of(extension));
      if (spirv) binaries.push_back(binary(std::string(name), *spirv));
      if (!spirv) failure = spirv.failure();
    }
    if (binaries.empty()) return *failure;
    const bool same =
        binaries.size() == flavours.size() && binaries[0].binary == binaries[1].binary;
    if (same) binaries.pop_back();
    if (same) binaries.front().target = "spirv";
    return binaries;
  }

 private:
  static Result<vulkan::Spirv> compiled(KernelSource source, const std::string& option) {
    if (!option.empty()) source.options.push_back(option);
    return vulkan::compile_glsl(source);
  }
  static TargetBinary binary(std::string target, const vulkan::Spirv& spirv) {
    const auto bytes = std::as_bytes(std::span(spirv));
    return {std::move(target), vulkan::glsl_compiler_version(), {bytes.begin(), bytes.end()}};
  }
};

class HipBinaries final : public BinaryCompiler {
 public:
  HipBinaries(const DeviceInfo& device, std::unique_ptr<hip::Compiler> compiler, std::string used)
      : architecture_(device.architecture),
        target_(target_of_hip(device)),
        compiler_(std::move(compiler)),
        used_(std::move(used)) {}

  Result<std::vector<TargetBinary>> compile(const KernelSource& source) override {
    auto compiled = compiler_->compile(source, architecture_);
    if (!compiled) return compiled.failure();
    return std::vector{TargetBinary{target_, used_, std::move(compiled->binary)}};
  }

 private:
  std::string architecture_, target_;
  std::unique_ptr<hip::Compiler> compiler_;
  std::string used_;
};

}  // namespace

std::vector<std::string> binary_targets(const DeviceInfo& device) {
  if (device.language == Language::glsl) return targets_of_glsl(device);
  return {target_of_hip(device)};
}

Result<std::unique_ptr<BinaryCompiler>> create_binary_compiler(const DeviceInfo& device,
                                                               const OpenOptions& options) {
  if (device.language == Language::glsl)
    return std::unique_ptr<BinaryCompiler>(std::make_unique<GlslBinaries>());
  auto compiler = device.is_cpu()             ? hip::host::create_compiler(options)
                  : device.vendor == "NVIDIA" ? hip::create_nvidia_compiler(options)
                                              : hip::create_amd_compiler(options);
  if (!compiler) return compiler.failure();
  auto used = (*compiler)->used_for(device.architecture);
  if (!used) return used.failure();
  return std::unique_ptr<BinaryCompiler>(
      std::make_unique<HipBinaries>(device, *std::move(compiler), *std::move(used)));
}

}  // namespace greta::device
