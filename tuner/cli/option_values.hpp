#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/model/config.hpp"
#include "tuner/bench/preset.hpp"
#include "tuner/search/budget.hpp"

namespace greta::tuner::cli {

// Values of options, read before anything is opened or written. Each function throws CommandError
// with one line that names the option, the value and what is allowed: no number wraps around or is
// cut to what fits.

/// The value of --seed; random where it is empty.
std::uint64_t read_seed(const std::string& text);
/// The value of an option that counts something.
std::uint64_t read_count(const std::string& option, const std::string& text, std::uint64_t most);

/// Throws unless a word is a whole number between `least` and `most`.
void check_whole_number(const std::string& option, const std::string& text, std::uint64_t least,
                        std::uint64_t most);
/// Throws unless a word is a finite number.
void check_number(const std::string& option, const std::string& text);

/// Adds an option whose value is a whole number between `least` and `most`.
template <typename Number>
CLI::Option* add_whole_number(CLI::App& command, const std::string& option, Number& value,
                              const std::string& help, Number least, Number most) {
  const auto check = [option, least, most](const std::string& text) {
    check_whole_number(option, text, static_cast<std::uint64_t>(least),
                       static_cast<std::uint64_t>(most));
    return std::string();
  };
  return command.add_option(option, value, help)->check(check);
}

/// Adds --seed, where it has a default.
inline CLI::Option* add_seed(CLI::App& command, std::uint64_t& value, const std::string& help) {
  return add_whole_number<std::uint64_t>(command, "--seed", value, help, 0, UINT64_MAX)
      ->capture_default_str();
}

/// Adds an option whose value is a number.
inline CLI::Option* add_number(CLI::App& command, const std::string& option, double& value,
                               const std::string& help) {
  const auto check = [option](const std::string& text) {
    check_number(option, text);
    return std::string();
  };
  return command.add_option(option, value, help)->check(check);
}

Budget read_budget(const std::string& text);
/// MiB as bytes; 0 when the text is empty.
std::uint64_t read_flush(const std::string& text);
/// "local, random, …"
std::string names_of_strategies();

/// An existing file must be one of ours: rows are appended to it, never written over. `option`:
/// that names it.
void check_csv(const std::string& option, const std::filesystem::path& file);

/// Configurations that a user wants to be tried, as text in which any white space separates.
std::vector<Config> read_configs(const std::vector<std::string>& texts);

/// The preset of a file, or of a name: an installed one, or one of a source tree that is the
/// current folder.
Preset load_preset(const std::string& wanted);

}  // namespace greta::tuner::cli
