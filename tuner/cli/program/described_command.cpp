#include "tuner/cli/program/described_command.hpp"

#include <algorithm>

#include "kernels/catalog.hpp"
#include "tuner/cli/program/known_operations.hpp"

namespace greta::tuner::cli {

DescribedCommand::DescribedCommand(std::span<char*> words,
                                   std::initializer_list<std::string_view> commands) {
  if (words.size() < 2) return;
  const std::string_view word = words[1];
  if (std::find(commands.begin(), commands.end(), word) == commands.end()) return;
  std::string name;
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::string_view option = words[i];
    constexpr std::string_view kernels = "--kernels";
    if (option == kernels && i + 1 < words.size()) {
      add_kernel_folder(words[++i]);
    } else if (option.starts_with("--kernels=")) {
      add_kernel_folder(option.substr(kernels.size() + 1));
    } else if (name.empty()) {
      if (option.starts_with('-')) return;
      name = option;
    }
  }
  set(word, name);
}

void DescribedCommand::set(std::string_view word, const std::string& name) {
  const bool is_file = name.find_first_of("./") != std::string::npos;
  const bool is_own = Catalog::built_in().find(name) != nullptr;
  std::string file = is_file ? name : is_own ? "" : described_as(name).string();
  if (file.empty() && word == "kernel") file = name;
  if (file.empty()) return;
  command = word;
  description = {name, file};
}

}  // namespace greta::tuner::cli
