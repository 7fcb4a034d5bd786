#include "tuner/cli/program/machine_names.hpp"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/catalog.hpp"
#include "runtime/device/backend.hpp"
#include "tuner/cli/program/paths.hpp"

namespace greta::tuner::cli {
namespace {

std::vector<std::string> user_names() {
  std::vector<std::string> names{user_name()};
  for (const char* variable : {"USER", "LOGNAME", "SUDO_USER"}) {
    if (const char* value = std::getenv(variable); value != nullptr) names.emplace_back(value);
  }
  return names;
}

/// Returns the machine's name with and without its domain.
std::vector<std::string> host_names() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  const std::string whole = name.data();
  return {whole, whole.substr(0, whole.find('.'))};
}

/// Returns words of GRETA's output, so that a user with such a name is not found everywhere.
std::vector<std::string> own_words(std::string_view text_of_output) {
  std::vector<std::string> words = words_of(text_of_output);
  const auto add = [&](std::string_view text) {
    const auto more = words_of(text);
    words.insert(words.end(), more.begin(), more.end());
  };
  for (const Operation& kernel : Catalog::built_in()) {
    add(kernel.name);
    for (const auto& variant : kernel.variants) add(variant.name);
    for (const auto& dimension : kernel.dimensions) add(dimension.name);
    for (const auto& attribute : kernel.attributes) {
      add(attribute.name);
      for (const auto& value : attribute.allowed) add(value);
    }
  }
  for (const Backend* const backend : backends()) add(to_string(backend->api()));
  add("an as at be by do go he if in is it me my no of on or so to up us we");
  add("amd nvidia intel mesa lavapipe llvmpipe radv radeon rocm cuda clang linux debian gpu cpu");
  return words;
}

}  // namespace

PrivateNames names_of_machine(std::string_view text_of_output) {
  return {home_directories(), user_names(), host_names(), own_words(text_of_output)};
}

}  // namespace greta::tuner::cli
