#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/model/config.hpp"
#include "tuner/bench/preset.hpp"
#include "tuner/search/budget.hpp"
#include "tuner/search/limits.hpp"

namespace greta::tuner::cli {

// Values of options, validated before anything is opened or written. Each function throws
// CommandError with one line that names the option, the value and the allowed values. Numbers never
// wrap around and are never truncated.

/// Reads the value of --seed; random if it is empty.
std::uint64_t read_seed(const std::string& text);
/// Reads the value of an option that is a count.
std::uint64_t read_count(const std::string& option, const std::string& text, std::uint64_t most);

/// Throws unless the text is an integer between `least` and `most`.
void check_whole_number(const std::string& option, const std::string& text, std::uint64_t least,
                        std::uint64_t most);
/// The values that an option accepts.
struct NumberRange {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool exclusive = false;  ///< values must be above `least`
};

/// Throws unless the text is a finite number in this range.
void check_number(const std::string& option, const std::string& text, const NumberRange& range);

/// Adds an option whose value is an integer between `least` and `most`.
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

/// Adds --allow, whose words permit what is not used by default.
CLI::Option* add_allow(CLI::App& command, std::vector<std::string>& allowed,
                       const std::vector<std::string>& words = {"vendor"});
/// Whether the words of --allow include one.
bool allows(const std::vector<std::string>& allowed, std::string_view word);

/// Adds --seed with a default.
inline CLI::Option* add_seed(CLI::App& command, std::uint64_t& value, const std::string& help) {
  return add_whole_number<std::uint64_t>(command, "--seed", value, help, 0, UINT64_MAX)
      ->capture_default_str();
}

/// Adds an option whose value is a number in a range.
inline CLI::Option* add_number(CLI::App& command, const std::string& option, double& value,
                               const std::string& help, const NumberRange& range) {
  const auto check = [option, range](const std::string& text) {
    check_number(option, text, range);
    return std::string();
  };
  return command.add_option(option, value, help)->check(check);
}

/// Adds an option whose value is one of some names.
CLI::Option* add_choice(CLI::App& command, const std::string& option, std::string& value,
                        const std::string& help, const std::vector<std::string>& names);

Budget read_budget(const std::string& text);
/// Converts MiB to bytes; 0 if the text is empty.
std::uint64_t read_flush(const std::string& text);
/// Returns "local, random, …".
std::string names_of_strategies();

/// Throws unless the file or folder exists.
void check_exists(const std::string& option, const std::filesystem::path& file);
/// Checks that an existing file is a CSV file of GRETA, since rows are appended to it, and that its
/// folder exists. `option` is the option that names it.
void check_csv(const std::string& option, const std::filesystem::path& file);

/// Reads the configurations that a user wants to try first; any white space separates parameters.
std::vector<Config> read_configs(const std::vector<std::string>& texts);

/// Reads the limits of a search: variants as "tiled" or "tiled,matrix"; parameters as "BM=128" with
/// --fix and "BK=16,32" with --range.
SearchLimits read_limits(const std::string& variants, const std::vector<std::string>& fixed,
                         const std::vector<std::string>& ranges);

/// Reads a preset from a file or by name: an installed one, or one of a source tree that is the
/// current folder.
Preset load_preset(const std::string& wanted);

}  // namespace greta::tuner::cli
