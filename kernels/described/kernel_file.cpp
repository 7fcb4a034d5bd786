#include "kernels/described/kernel_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "kernels/described/source_text.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/device/system/input_file.hpp"

namespace greta::kernels {
namespace {

/// The names of a description's files that are no sources.
std::vector<std::string> data_files(const Description& d) {
  std::vector<std::string> names;
  names.insert(names.end(), d.reference.golden.begin(), d.reference.golden.end());
  for (const DescribedOperand& operand : d.operands) {
    if (operand.fill.kind == OperandFill::Kind::file) names.push_back(operand.fill.file);
  }
  return names;
}

/// Reads a file within a folder. A link that leads out of it is refused.
Result<std::string> read_within(const std::filesystem::path& folder, const std::string& name) {
  std::error_code error;
  const auto inside = std::filesystem::canonical(folder, error);
  const auto file = std::filesystem::canonical(folder / name, error);
  if (error) return Failure{Status::io, fmt::format("{}: {}", name, error.message()), {}};
  const auto relative = file.lexically_relative(inside);
  if (relative.empty() || *relative.begin() == "..") {
    return Failure{Status::io, fmt::format("{} is not within the description's folder", name), {}};
  }
  return read_file(file, most_file_bytes);
}

bool is_named(const Description& d, const std::string& name) {
  const auto has = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return has(d.sources) || has(d.reference.sources);
}

/// Reads all files of a description, those that its sources include too.
Result<DescribedFiles> read_files(const Description& d, const std::filesystem::path& folder) {
  DescribedFiles files;
  for (const std::string& name : data_files(d)) {
    auto content = read_within(folder, name);
    if (!content) return content.failure();
    files[name] = *std::move(content);
  }
  std::optional<Failure> failed;
  const described::FindSource find = [&](const std::string& name) -> const std::string* {
    const auto known = files.find(name);
    if (known != files.end()) return &known->second;
    std::error_code error;
    if (!std::filesystem::exists(folder / name, error) && !is_named(d, name)) return nullptr;
    auto content = read_within(folder, name);
    if (content) return &(files[name] = *std::move(content));
    if (!failed) failed = content.failure();
    return nullptr;
  };
  for (const auto* const sources : {&d.sources, &d.reference.sources}) {
    const auto text = described::whole_text(*sources, d.include_folders, find, true);
    if (failed) return *failed;
    if (!text) return text.failure();
  }
  return files;
}

/// Returns a failure with the description's path in front.
Failure at(const std::filesystem::path& path, Failure failure) {
  failure.message = fmt::format("{}: {}", path.string(), failure.message);
  return failure;
}

}  // namespace

Result<KernelFile> read_kernel_file(const std::filesystem::path& path) {
  const auto text = read_file(path, PlacedJson::most_bytes);
  if (!text) return text.failure();
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  const std::string beside = path.stem().string() + ".reference.json";
  Result<std::string> reference = std::string();
  std::error_code error;
  if (std::filesystem::exists(folder / beside, error)) reference = read_within(folder, beside);
  if (!reference) return at(path, reference.failure());
  auto description = read_description(*text, *reference);
  if (!description) return at(reference->empty() ? path : folder / beside, description.failure());
  auto files = read_files(*description, folder);
  if (!files) return at(path, files.failure());
  return KernelFile{path, *std::move(description), *std::move(files)};
}

Result<Operation> load_described(const KernelFile& file, const ReferenceDevice& device,
                                 const std::optional<GivenReference>& given) {
  auto operation = make_verified(file.description, file.files, device, given);
  if (!operation) return at(file.path, operation.failure());
  return operation;
}

Result<Operation> load_described(const std::filesystem::path& path, const ReferenceDevice& device,
                                 const std::optional<GivenReference>& given) {
  const auto file = read_kernel_file(path);
  if (!file) return file.failure();
  return load_described(*file, device, given);
}

GivenReference no_reference() {
  return {.outputs = [](const Problem& problem, const auto&,
                        const auto&) -> Result<std::vector<std::vector<double>>> {
    return invalid_argument(problem.op + " was loaded to run, without its reference");
  }};
}

ReferenceDevice reference_devices() {
  struct Opened {
    std::mutex mutex;
    std::map<std::string, std::unique_ptr<Device>> devices;
  };
  return [opened = std::make_shared<Opened>()](SourceLanguage language) -> Result<Device*> {
    const std::string id = language == SourceLanguage::glsl ? "vulkan:0" : "hip-host:0";
    const std::lock_guard lock(opened->mutex);
    std::unique_ptr<Device>& device = opened->devices[id];
    if (!device) {
      auto result = open_device(id, {});
      if (!result) return result.failure();
      device = *std::move(result);
    }
    return device.get();
  };
}

}  // namespace greta::kernels
