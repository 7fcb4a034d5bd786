#include "tuner/cli/program/known_operations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/device/backend.hpp"
#include "runtime/device/system/log.hpp"
#include "runtime/device/text/spelling.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/evaluate/reference_server.hpp"

namespace greta::tuner::cli {
namespace {

namespace fs = std::filesystem;

struct Known {
  Catalog catalog = Catalog::built_in();
  std::vector<Catalog> former;  // keep operations that were returned
  std::vector<KernelFile> files;
  std::vector<fs::path> folders;  // without the user's
  bool read_folders = false;
};

Known& known() {
  static Known all;
  return all;
}

/// Returns the folders with descriptions, the user's last.
std::vector<fs::path> folders() {
  std::vector<fs::path> all = known().folders;
  std::error_code error;
  if (fs::is_directory(folder_of_kernels(), error)) all.push_back(folder_of_kernels());
  return all;
}

/// Returns the descriptions in a folder, sorted by path.
std::vector<fs::path> descriptions_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const bool description = name.ends_with(".jsonc") || name.ends_with(".json");
    const bool other = name.ends_with(".reference.json") || name.ends_with(".schema.json");
    if (description && !other) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Returns the description of an operation, or null for GRETA's own.
const Description* description_of(const std::string& operation) {
  for (const KernelFile& file : known().files) {
    if (file.description.name == operation) return &file.description;
  }
  return nullptr;
}

/// Returns the number of a parameter's word, or the text.
std::string number_of(const Description& description, const std::string& parameter,
                      const std::string& text, const std::string& option) {
  for (const DescribedParameter& one : description.parameters) {
    if (one.name != parameter || one.values.front().word() == nullptr) continue;
    std::vector<std::string> words;
    for (const FormulaValue& value : one.values) words.push_back(*value.word());
    const auto found = std::find(words.begin(), words.end(), text);
    if (found != words.end()) return std::to_string(found - words.begin());
    const bool is_number = text.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number) {
      throw CommandError(exit_usage, fmt::format("{} {}={}: {}", option, parameter, text,
                                                 must_be_one_of(text, words)));
    }
  }
  return text;
}

void add(Operation operation, KernelFile file) {
  std::vector<Operation> all(known().catalog.begin(), known().catalog.end());
  all.push_back(std::move(operation));
  known().former.push_back(std::exchange(known().catalog, Catalog(std::move(all))));
  known().files.push_back(std::move(file));
}

bool is_added(const fs::path& description) {
  std::error_code error;
  return std::any_of(known().files.begin(), known().files.end(), [&](const KernelFile& file) {
    return fs::equivalent(file.path, description, error);
  });
}

}  // namespace

const Operation& add_described(const fs::path& description, const fs::path& reference) {
  std::optional<GivenReference> given;
  if (!reference.empty()) {
    auto asked = ask_reference(reference);
    if (!asked) throw CommandError(exit_failed, asked.failure().message);
    given = *std::move(asked);
  }
  const auto refuse = [](const Failure& failure) {
    throw CommandError(failure.status == Status::io ? exit_failed : exit_usage, failure.message);
  };
  auto file = read_kernel_file(description);
  // A file that is missing or can't be read is bad input, too.
  if (!file) throw CommandError(exit_usage, file.failure().message);
  auto operation = load_described(*file, reference_devices(default_cache_directory()), given);
  if (!operation) refuse(operation.failure());
  const std::string name = operation->name;
  if (known().catalog.find(name) != nullptr) {
    throw CommandError(exit_usage,
                       fmt::format("{}: there is an operation {}", description.string(), name));
  }
  add(*std::move(operation), *std::move(file));
  return known().catalog.at(name);
}

void add_kernel_folder(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw CommandError(exit_usage, fmt::format("--kernels {}: is not a folder", folder.string()));
  }
  auto& all = known().folders;
  if (std::find(all.begin(), all.end(), folder) == all.end()) all.push_back(folder);
}

void add_kernels_option(CLI::App& command) {
  command
      .add_option_function<std::vector<std::string>>(
          "--kernels",
          [](const std::vector<std::string>& given) {
            for (const std::string& folder : given) add_kernel_folder(folder);
          },
          "A folder with descriptions of kernels of your own (docs/your-kernel.md), beside "
          "~/.config/greta/kernels; may be repeated")
      ->type_name("DIR")
      ->allow_extra_args(false);
}

fs::path described_as(const std::string& name) {
  std::error_code error;
  for (const fs::path& folder : folders()) {
    for (const char* const ending : {".jsonc", ".json"}) {
      fs::path path = folder / (name + ending);
      if (fs::exists(path, error)) return path;
    }
  }
  return {};
}

Catalog operations_in_use() {
  return known().catalog;
}

Catalog known_operations() {
  if (std::exchange(known().read_folders, true)) return known().catalog;
  for (const fs::path& folder : folders()) {
    for (const fs::path& description : descriptions_in(folder)) {
      if (is_added(description)) continue;
      try {
        add_described(description);
      } catch (const CommandError& error) {
        log(LogLevel::warning, "{}; this kernel is omitted", error.what());
      }
    }
  }
  return known().catalog;
}

void add_carried(const TunedDb& db) {
  known_operations();  // those of folders come first
  for (const CarriedKernel& kernel : db.kernels()) {
    if (known().catalog.find(kernel.name) != nullptr) continue;
    auto file = read_kernel_file(kernel.description, kernel.files);
    auto operation =
        file ? load_described(*file, {}, no_reference()) : Result<Operation>(file.failure());
    if (!operation) {
      log(LogLevel::warning, "the database's {}; this kernel is omitted",
          operation.failure().message);
    } else if (operation->name != kernel.name) {
      log(LogLevel::warning, "the database's kernel {} is a description of {}; it is omitted",
          kernel.name, operation->name);
    } else {
      add(*std::move(operation), *std::move(file));
    }
  }
}

std::string in_numbers(const std::string& operation, const std::string& text,
                       const std::string& option) {
  const Description* const description = description_of(operation);
  if (description == nullptr) return text;
  std::string numbers;
  for (const std::string& part : CLI::detail::split(text, ' ')) {
    const auto equals = std::min(part.find('='), part.size());
    const std::string name = part.substr(0, equals);
    std::string values;
    for (const std::string& value : CLI::detail::split(part.substr(equals), ',')) {
      const bool first = values.empty();
      const std::string word = first && !value.empty() ? value.substr(1) : value;
      values += (first ? value.substr(0, 1) : ",") + number_of(*description, name, word, option);
    }
    numbers += (numbers.empty() ? "" : " ") + name + values;
  }
  return numbers;
}

std::string devices_for(const std::string& operation, const std::string& wanted) {
  const Description* const description = description_of(operation);
  if (description == nullptr || wanted != "auto") return wanted;
  const bool glsl = description->language == SourceLanguage::glsl;
  std::vector<Backend*> among;
  for (Backend* const backend : backends()) {
    if ((backend->api() == Api::vulkan) == glsl) among.push_back(backend);
  }
  const auto device = select_device(wanted, among);
  if (!device) {
    throw CommandError(exit_no_device, fmt::format("no device runs {}, the language of {}: {}",
                                                   to_string(description->language), operation,
                                                   device.failure().message));
  }
  return device->info.id();
}

std::string shown(const Problem& problem, const DeviceInfo& device, const Config& stored) {
  const auto usable = known_operations().usable(problem, device, stored);
  return usable && usable->changes.empty() ? usable->config.shown() : stored.text();
}

bool is_described(const std::string& operation) {
  const auto& files = known().files;
  return std::any_of(files.begin(), files.end(),
                     [&](const KernelFile& file) { return file.description.name == operation; });
}

const std::vector<KernelFile>& described_kernels() {
  return known().files;
}

std::vector<std::string> words_of_kernels() {
  std::vector<std::string> words;
  for (const KernelFile& file : known().files) {
    words.insert(words.end(), {"--kernel", fs::absolute(file.path).string()});
  }
  return words;
}

}  // namespace greta::tuner::cli
