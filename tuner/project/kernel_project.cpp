#include "tuner/project/kernel_project.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "runtime/device/vulkan/spirv_info.hpp"
#include "runtime/device/vulkan/vulkan_backend.hpp"
#include "tuner/compile/case_files.hpp"
#include "tuner/compile/target_compiler.hpp"
#include "tuner/project/project_files.hpp"
#include "tuner/project/project_text.hpp"
#include "tuner/tuning/device_selection.hpp"

namespace greta::tuner {
namespace {

namespace fs = std::filesystem;

constexpr auto marker_file = "launches.hpp";
constexpr std::uint64_t input_seed = 1;
constexpr std::size_t most_checked = std::size_t{1} << 20;  // elements of an output

/// Returns the device of this machine that is of the winner's model.
std::optional<DeviceInfo> present_model(const DeviceInfo& device) {
  for (ProbedDevice& probed : present_devices()) {
    if (probed.info.fingerprint() == device.fingerprint()) return std::move(probed.info);
  }
  return std::nullopt;
}

Result<std::unique_ptr<TargetCompiler>> open_target(const StoredWinner& winner,
                                                    const OpenOptions& options) {
  DeviceInfo device = winner.device;
  if (auto present = present_model(device)) {
    device = *std::move(present);
  } else if (device.language == Language::glsl) {
    return Failure{
        Status::unavailable,
        fmt::format("{} {} is not on this machine, and its driver determines how GLSL is "
                    "compiled",
                    winner.device_id, device.name),
        {}};
  }
  return create_probed_target(device, options);
}

std::string extension_of(ProjectPlatform platform, bool binary) {
  switch (platform) {
    case ProjectPlatform::amd:
      return binary ? "co" : "hip";
    case ProjectPlatform::hip_host:
      return binary ? "so" : "hip";
    case ProjectPlatform::nvidia:
      return binary ? "cubin" : "cu";
    case ProjectPlatform::vulkan:
      break;
  }
  return binary ? "spv" : "comp";
}

/// Names the files of the plan's kernels: "kernels/gemm_tiled.cu".
std::vector<ProjectKernel> named_kernels(const std::vector<KernelSource>& sources,
                                         ProjectPlatform platform) {
  std::vector<ProjectKernel> kernels;
  std::set<std::string> taken;
  for (const KernelSource& source : sources) {
    std::string name = source.name;
    std::replace(name.begin(), name.end(), '/', '_');
    std::string unique = name;
    for (int i = 2; !taken.insert(unique).second; ++i) unique = fmt::format("{}_{}", name, i);
    kernels.push_back({source, fmt::format("kernels/{}.{}", unique, extension_of(platform, false)),
                       fmt::format("kernels/{}.{}", unique, extension_of(platform, true))});
  }
  return kernels;
}

/// Returns the macros that tell the program which features the kernels need.
std::vector<std::string> feature_definitions(const std::vector<std::vector<std::byte>>& modules) {
  using vulkan::SpirvCapability;
  std::set<std::string> names;
  for (const auto& module : modules) {
    std::vector<std::uint32_t> words(module.size() / 4);
    std::memcpy(words.data(), module.data(), words.size() * 4);
    const auto has = [&](SpirvCapability one) { return vulkan::declares(words, one); };
    if (has(SpirvCapability::cooperative_matrix_nv)) names.insert("KERNEL_USES_NV_MATRICES");
    if (has(SpirvCapability::cooperative_matrix_khr)) names.insert("KERNEL_USES_KHR_MATRICES");
    if (has(SpirvCapability::bf16_cooperative_matrix)) names.insert("KERNEL_USES_BF16_MATRICES");
  }
  return {names.begin(), names.end()};
}

/// An element of the files *.expected.
struct CheckedElement {
  std::uint64_t index = 0;  ///< in memory, i.e. with the gaps between rows
  double value = 0;
  double bound = 0;
};

std::vector<CheckedElement> in_memory(const TensorSpec& spec,
                                      const std::vector<ExpectedElement>& elements) {
  const auto cols = static_cast<std::uint64_t>(spec.cols);
  std::vector<CheckedElement> checked;
  checked.reserve(elements.size());
  for (const auto& [index, expected] : elements) {
    const std::int64_t row = spec.row_start(static_cast<std::int64_t>(index / cols));
    checked.push_back(
        {static_cast<std::uint64_t>(row) + index % cols, expected.value, expected.bound});
  }
  return checked;
}

/// Writes files and counts their bytes.
class Writer {
 public:
  explicit Writer(fs::path folder) : folder_(std::move(folder)) {}

  void write(const std::string& name, const void* data, std::size_t bytes) {
    write_bytes(folder_ / name, data, bytes);
    bytes_ += bytes;
  }
  void write(const std::string& name, std::string_view text) {
    write(name, text.data(), text.size());
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  fs::path folder_;
  std::uint64_t bytes_ = 0;
};

/// Draws the operands, computes the reference, and writes the files of the data.
void write_data(const Operation& operation, const CompiledChoice& compiled, KernelProject& project,
                Writer& writer) {
  const Problem& problem = compiled.choice.problem;
  auto inputs = operation.inputs(problem, input_seed);
  const auto specs = operation.tensors(problem);
  const auto samples = operation.reference(problem, inputs, input_seed)->sample(most_checked);
  project.run = make_unchecked_case(operation, compiled, std::move(inputs));
  auto& buffers = project.run.buffers;
  project.checked.assign(buffers.size(), 0);
  auto sample = samples.begin();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (!buffers[i].data.empty()) {
      writer.write(input_file_name(buffers[i]), buffers[i].data.data(), buffers[i].data.size());
    }
    if (specs[i].role == Role::input) continue;
    const auto checked = in_memory(specs[i], *sample++);
    writer.write(expected_file_name(buffers[i]), checked.data(),
                 checked.size() * sizeof(CheckedElement));
    project.checked[i] = checked.size();
  }
}

/// A new folder beside another one, which is removed with all its files unless it is put in place.
class NewFolder {
 public:
  explicit NewFolder(fs::path place) : place_(std::move(place)), path_(place_) {
    path_ += ".partial";
    fs::remove_all(path_);
    fs::create_directories(path_ / "kernels");
    fs::create_directories(path_ / "data");
  }
  ~NewFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  const fs::path& path() const { return path_; }

  /// Moves the files to their place. Of a project that is there, its own files are removed; others,
  /// such as a build folder, stay.
  void put_in_place() {
    fs::create_directories(place_);
    fs::remove(place_ / marker_file);
    for (const EmbeddedFile& file : project_files()) fs::remove(place_ / file.path);
    std::vector<fs::path> entries;
    for (const auto& entry : fs::directory_iterator(path_)) entries.push_back(entry.path());
    // The marker comes last.
    std::stable_partition(entries.begin(), entries.end(),
                          [](const fs::path& entry) { return entry.filename() != marker_file; });
    for (const fs::path& entry : entries) {
      fs::remove_all(place_ / entry.filename());
      fs::rename(entry, place_ / entry.filename());
    }
  }

 private:
  fs::path place_, path_;
};

Result<WrittenProject> write_project(const Operation& operation, const CompiledChoice& compiled,
                                     KernelProject project, const fs::path& folder) {
  project.described = !operation.sources_key.empty();
  NewFolder made(folder);
  Writer writer(made.path());
  write_data(operation, compiled, project, writer);
  if (project.platform == ProjectPlatform::vulkan) {
    project.definitions = feature_definitions(project.run.code_objects);
  }
  WrittenProject written;
  for (std::size_t i = 0; i < project.kernels.size(); ++i) {
    const ProjectKernel& kernel = project.kernels[i];
    writer.write(kernel.source_file, kernel_text(project, kernel));
    const auto& binary = project.run.code_objects[i];
    writer.write(kernel.binary_file, binary.data(), binary.size());
    written.kernels.push_back(kernel.source_file);
  }
  for (const EmbeddedFile& file : project_files()) {
    if (belongs_to(project.platform, file.path)) writer.write(std::string(file.path), file.text);
  }
  writer.write("CMakeLists.txt", cmake_text(project));
  writer.write("README.md", readme_text(project));
  writer.write(marker_file, launches_text(project));
  made.put_in_place();
  written.bytes = writer.bytes();
  return written;
}

}  // namespace

Result<void> check_project_folder(const fs::path& folder, bool replace) {
  const auto refuse = [&](const char* why) {
    return Failure{Status::invalid_argument, fmt::format("{}: {}", folder.string(), why), {}};
  };
  std::error_code error;
  if (!fs::exists(folder, error)) return {};
  if (!fs::is_directory(folder, error)) return refuse("is not a folder");
  if (fs::is_empty(folder, error)) return {};
  if (!fs::exists(folder / marker_file, error)) {
    return refuse("holds something other than a kernel project");
  }
  if (!replace) return refuse("holds a kernel project; --force replaces it");
  return {};
}

Result<WrittenProject> write_kernel_project(const Catalog& catalog, const StoredWinner& winner,
                                            const OpenOptions& options, const fs::path& folder) {
  try {
    const Operation& operation = catalog.at(winner.problem.op);
    auto fits = check_fits(operation, winner.problem, winner.device, ResultsFor::a_case);
    if (!fits) return fits.failure();
    auto target = open_target(winner, options);
    if (!target) return target.failure();
    const auto usable = catalog.usable(winner.problem, winner.device, winner.winner.config);
    if (!usable) return usable.failure();
    const auto plan = operation.plan(winner.problem, winner.device, usable->config);
    if (!plan) return plan.failure();
    if (auto possible = check_plan_of_case(*plan); !possible) return possible.failure();
    auto compiled = compile_plan(**target, operation, {winner.problem, usable->config});
    if (!compiled) return compiled.failure();

    KernelProject project;
    project.winner = winner;
    project.winner.winner.config = usable->config;
    project.target = (*target)->target();
    project.platform = platform_of(project.target);
    auto sources = compiled->plan.sources;
    if (project.platform == ProjectPlatform::vulkan) {
      const auto more = vulkan::device_options(project.target.index);
      if (!more) return more.failure();
      for (KernelSource& source : sources) {
        source.options.insert(source.options.end(), more->begin(), more->end());
      }
    }
    project.kernels = named_kernels(sources, project.platform);
    return write_project(operation, *compiled, std::move(project), folder);
  } catch (const Error& error) {
    return Failure{error.status(), error.what(), {}};
  } catch (const fs::filesystem_error& error) {
    return Failure{Status::io, fmt::format("{}: can't be written", folder.string()), {}};
  }
}

}  // namespace greta::tuner
