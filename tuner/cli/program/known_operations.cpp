#include "tuner/cli/program/known_operations.hpp"

#include <fmt/format.h>

#include "kernels/described/kernel_file.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/evaluate/reference_server.hpp"

namespace greta::tuner::cli {
namespace {

struct Known {
  Catalog catalog = Catalog::built_in();
  std::vector<std::filesystem::path> files;
};

Known& known() {
  static Known all;
  return all;
}

}  // namespace

const Operation& add_described(const std::filesystem::path& description,
                               const std::filesystem::path& reference) {
  std::optional<GivenReference> given;
  if (!reference.empty()) {
    auto asked = ask_reference(reference);
    if (!asked) throw CommandError(exit_failed, asked.failure().message);
    given = *std::move(asked);
  }
  auto operation = load_described(description, reference_devices(), given);
  if (!operation) {
    const bool file = operation.failure().status == Status::io;
    throw CommandError(file ? exit_failed : exit_usage, operation.failure().message);
  }
  const std::string name = operation->name;
  if (known().catalog.find(name) != nullptr) {
    throw CommandError(exit_usage,
                       fmt::format("{}: there is an operation {}", description.string(), name));
  }
  std::vector<Operation> all(known().catalog.begin(), known().catalog.end());
  all.push_back(*std::move(operation));
  known().catalog = Catalog(std::move(all));
  known().files.push_back(description);
  return known().catalog.at(name);
}

Catalog known_operations() {
  return known().catalog;
}

const std::vector<std::filesystem::path>& description_files() {
  return known().files;
}

}  // namespace greta::tuner::cli
