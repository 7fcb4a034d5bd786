#include "kernels/described/kernel_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
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

/// Returns the contents of a file by its name, or nothing if there is none.
using FindFile = std::function<Result<std::optional<std::string>>(const std::string& name)>;

/// Finds files within a folder. A link that leads out of it is refused.
FindFile files_within(const std::filesystem::path& folder) {
  return [folder](const std::string& name) -> Result<std::optional<std::string>> {
    std::error_code error;
    if (!std::filesystem::exists(folder / name, error)) return std::optional<std::string>();
    const auto inside = std::filesystem::canonical(folder, error);
    const auto file = std::filesystem::canonical(folder / name, error);
    if (error) return Failure{Status::io, fmt::format("{}: {}", name, error.message()), {}};
    const auto relative = file.lexically_relative(inside);
    if (relative.empty() || *relative.begin() == "..") {
      return Failure{
          Status::io, fmt::format("{} is not within the description's folder", name), {}};
    }
    auto content = read_file(file, most_file_bytes);
    if (!content) return content.failure();
    return std::optional(*std::move(content));
  };
}

Failure missing(const std::string& name) {
  return {Status::io, fmt::format("{}: {}", name, std::strerror(ENOENT)), {}};
}

/// Returns "line 3, column 5, source: " of the first string with this text; empty: there is none.
std::string place_of(const PlacedJson& value, const std::string& text) {
  if (value.text() != nullptr && *value.text() == text) return value.place() + ": ";
  std::string place;
  if (value.items() != nullptr) {
    for (const PlacedJson& item : *value.items()) {
      if (place.empty()) place = place_of(item, text);
    }
  }
  if (value.members() != nullptr) {
    for (const auto& [key, member] : *value.members()) {
      if (place.empty()) place = place_of(member, text);
    }
  }
  return place;
}

/// Puts the place of a name in a document in front of what is wrong with the file.
Failure placed(const std::string& document, const std::string& name, Failure failure) {
  const auto read = PlacedJson::parse(document);
  if (read) failure.message = place_of(*read, name) + failure.message;
  return failure;
}

bool is_named(const Description& d, const std::string& name) {
  const auto has = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return has(d.sources) || has(d.reference.sources);
}

/// Reads all files of a description, those that its sources include too.
Result<DescribedFiles> read_files(const Description& d, const std::string& document,
                                  const FindFile& find_file) {
  DescribedFiles files;
  for (const std::string& name : data_files(d)) {
    auto content = find_file(name);
    if (!content) return placed(document, name, content.failure());
    if (!*content) return placed(document, name, missing(name));
    files[name] = **std::move(content);
  }
  std::optional<Failure> failed;
  const described::FindSource find = [&](const std::string& name) -> const std::string* {
    const auto known = files.find(name);
    if (known != files.end()) return &known->second;
    auto content = find_file(name);
    if (content && *content) return &(files[name] = **std::move(content));
    if (!failed && !content) failed = placed(document, name, content.failure());
    if (!failed && is_named(d, name)) failed = placed(document, name, missing(name));
    return nullptr;
  };
  for (const auto& [sources, language] :
       {std::pair{&d.sources, d.language}, std::pair{&d.reference.sources, d.reference.language}}) {
    const auto text = described::whole_text(*sources, d.include_folders, find, language);
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

/// Reads what describes a kernel, where its text is known, and its files.
Result<KernelFile> read_described(const std::filesystem::path& path, std::string text,
                                  const FindFile& find) {
  const std::string beside = path.stem().string() + ".reference.json";
  auto reference = find(beside);
  if (!reference) return at(path, reference.failure());
  auto description = read_description(text, reference->value_or(""));
  if (!description) {
    return at(*reference ? path.parent_path() / beside : path, description.failure());
  }
  description->path = path.string();
  auto files = read_files(*description, text, find);
  if (!files) return at(path, files.failure());
  KernelFile kernel{path, *std::move(description), *std::move(files), {}};
  kernel.own[path.filename().string()] = std::move(text);
  if (*reference) kernel.own[beside] = **std::move(reference);
  return kernel;
}

}  // namespace

Result<KernelFile> read_kernel_file(const std::filesystem::path& path) {
  auto text = read_file(path, PlacedJson::most_bytes);
  if (!text) return text.failure();
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  auto kernel = read_described(path, *text, files_within(folder));
  if (!kernel) return kernel;
  for (const std::string& name : kernel->description.include_folders) {
    std::error_code error;
    if (std::filesystem::is_directory(folder / name, error)) continue;
    return at(path,
              placed(*text, name, invalid_argument(fmt::format("there is no folder {}", name))));
  }
  return kernel;
}

Result<KernelFile> read_kernel_file(const std::string& name, const DescribedFiles& files) {
  const FindFile find = [&](const std::string& wanted) -> Result<std::optional<std::string>> {
    const auto found = files.find(wanted);
    return found != files.end() ? std::optional(found->second) : std::nullopt;
  };
  const auto text = files.find(name);
  if (text == files.end()) return missing(name);
  return read_described(name, text->second, find);
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

ReferenceDevice reference_devices(const std::filesystem::path& cache_directory) {
  struct Opened {
    std::mutex mutex;
    std::map<std::string, std::unique_ptr<Device>> devices;
  };
  return [opened = std::make_shared<Opened>(),
          cache_directory](SourceLanguage language) -> Result<Device*> {
    const std::string id = language == SourceLanguage::glsl ? "vulkan:0" : "hip-host:0";
    const std::lock_guard lock(opened->mutex);
    std::unique_ptr<Device>& device = opened->devices[id];
    if (!device) {
      OpenOptions options;
      options.cache_directory = cache_directory;
      auto result = open_device(id, options);
      if (!result) return result.failure();
      device = *std::move(result);
    }
    return device.get();
  };
}

}  // namespace greta::kernels
