#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::tuner::cli {

/// A description on the command line: the word that names it, and its file. Both are empty where
/// there is none.
struct DescribedFile {
  std::string word, file;
};

/// The file of a command such as `kernel FILE` or `verify FILE`, whose options are those that the
/// file describes. The names of operations have neither dots nor slashes.
struct DescribedCommand {
  std::string command;
  DescribedFile description;

  /// Looks for one of these commands as the first word of a command line, after the program. Adds
  /// the folders of --kernels, as a name is looked for there before options are parsed.
  DescribedCommand(std::span<char*> words, std::initializer_list<std::string_view> commands);
  DescribedFile of(std::string_view word) const {
    return command == word ? description : DescribedFile();
  }

 private:
  void set(std::string_view word, const std::string& name);
};

}  // namespace greta::tuner::cli
