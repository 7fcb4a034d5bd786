#include "tuner/cli/tune/remote_words.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "kernels/catalog.hpp"
#include "tuner/bench/preset.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/cli/program/tool.hpp"

namespace greta::tuner::cli {
namespace {

namespace fs = std::filesystem;
using Word = RemoteCommand::Word;

constexpr std::array outputs{"--csv",    "--csv-wide", "--report",
                             "--export", "--trace",    "--benchmark_out"};
/// Options that write folders, or files beside those that they name.
constexpr std::array refused{"--keep-failed", "--record",  "--output",
                             "--emit-case",   "--kernels", "--templates"};

template <typename List>
bool has(const List& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

[[noreturn]] void refuse_missing_file(const std::string& option) {
  throw CommandError(exit_usage, option + ": needs a FILE with remote");
}

bool is_file(const std::string& text) {
  std::error_code ignored;
  return !text.empty() && fs::is_regular_file(text, ignored);
}

/// Returns the baselines that the gates of a preset name, relative to its folder; none if the file
/// is not a preset, which the command there says if it must be one.
std::vector<fs::path> baselines_of(const fs::path& file) {
  std::vector<fs::path> list;
  if (file.extension() != ".json") return list;
  const auto preset = read_preset(file, known_operations());
  if (!preset) return list;
  for (const PresetProblem& each : preset->problems) {
    for (const Gate& gate : each.expect) {
      if (gate.reference != Gate::Reference::file) continue;
      const fs::path relative = gate.file.lexically_relative(file.parent_path());
      if (gate.text.find(" /") != std::string::npos || gate.text.find(":/") != std::string::npos) {
        throw CommandError(exit_usage,
                           fmt::format("{}: \"{}\" names a file by its absolute path; remote "
                                       "takes files along that are named from the preset's folder",
                                       file.string(), gate.text));
      }
      list.push_back(relative);
    }
  }
  return list;
}

/// Converts the value of an option, or a word without one. `before` is what is joined to it.
Word value_word(const std::string& option, const std::string& before, const std::string& value,
                bool is_model) {
  if (has(outputs, option)) {
    if (value.empty()) refuse_missing_file(option);
    check_folder(option, value);
    return {before, fs::absolute(value), true};
  }
  if (is_file(value)) {
    const fs::path file = fs::absolute(value).lexically_normal();
    return {before, file, false, baselines_of(file)};
  }
  std::error_code ignored;
  // A word without / may be the name of a preset or a type, unless it is that of weights.
  const bool is_path = value.find('/') != std::string::npos || is_model;
  if (is_path && fs::is_directory(value, ignored)) {
    throw CommandError(exit_usage, value + ": is a folder; remote takes only files along");
  }
  return {before + value, {}, false};
}

void check_command(const std::string& name) {
  static constexpr std::array others{"preset", "from-capture", "model", "bench"};
  if (has(others, name) || Catalog::built_in().find(name) != nullptr) return;
  throw CommandError(exit_usage,
                     fmt::format("remote: runs operations, {} and bench, not {}",
                                 "preset, from-capture, model", name.empty() ? "nothing" : name));
}

}  // namespace

std::vector<std::string> words_of(const std::string& line) {
  return CLI::detail::split_up(line);
}

RemoteCommand remote_command(const std::vector<std::string>& words, fs::path& database) {
  check_command(words.empty() ? "" : words.front());
  RemoteCommand command;
  if (words.front() == "bench") {
    command.program = "greta-bench";
  } else {
    command.words.push_back({words.front()});
  }
  command.needs_gpu = true;
  std::string option;  // whose value comes next
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool is_option = word.starts_with("--");
    const auto equals = is_option ? word.find('=') : std::string::npos;
    const std::string name = is_option ? word.substr(0, equals) : option;
    if (name == "--device" || name == "--devices") command.needs_gpu = false;
    if (is_option && has(outputs, option)) refuse_missing_file(option);
    if (has(refused, name)) {
      throw CommandError(exit_usage, fmt::format("{}: is not available with remote", name));
    }
    if (equals != std::string::npos) {
      const std::string value = word.substr(equals + 1);
      if (name == "--db") {
        database = value;
      } else {
        command.words.push_back(value_word(name, name + "=", value, false));
      }
      option.clear();
    } else if (is_option) {
      option = word;
      if (word != "--db") command.words.push_back({word});
    } else {
      if (option == "--db") {
        database = word;
      } else {
        command.words.push_back(
            value_word(option, "", word, words.front() == "model" && option.empty()));
      }
      option.clear();
    }
  }
  if (has(outputs, option)) refuse_missing_file(option);
  return command;
}

}  // namespace greta::tuner::cli
