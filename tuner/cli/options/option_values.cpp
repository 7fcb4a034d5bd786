#include "tuner/cli/options/option_values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <sstream>
#include <system_error>

#include "db/enum_text.hpp"
#include "kernels/catalog.hpp"
#include "runtime/device/system/input_file.hpp"
#include "runtime/device/text/spelling.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/terminal.hpp"
#include "tuner/report/csv.hpp"
#include "tuner/search/strategy.hpp"

namespace greta::tuner::cli {
namespace {

template <typename Number>
std::optional<Number> parsed(const std::string& text) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

[[noreturn]] void refuse(const std::string& option, const std::string& text,
                         const std::string& allowed) {
  throw CommandError(exit_usage, fmt::format("{} {}: must be {}", option, text, allowed));
}

std::filesystem::path find_preset(const std::string& wanted) {
  // A folder may happen to have a preset's name.
  std::error_code ignored;
  const auto there = std::filesystem::status(wanted, ignored);
  if (std::filesystem::exists(there) && !std::filesystem::is_directory(there)) return wanted;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const auto installed = program.parent_path().parent_path() / "share/greta/presets";
  for (const auto& folder : {installed, std::filesystem::path("presets")}) {
    const auto file = folder / (wanted + ".json");
    if (std::filesystem::is_regular_file(file)) return file;
  }
  if (std::filesystem::is_directory(there)) {
    throw CommandError(exit_usage, fmt::format("preset {}: is a folder", wanted));
  }
  throw CommandError(exit_usage, fmt::format("preset {}: no such file, and no preset of that name "
                                             "in {} or presets/",
                                             wanted, installed.string()));
}

/// Returns the operations that have a vendor_variant.
std::string names_of_vendors() {
  std::vector<std::string> names;
  for (const Operation& operation : Catalog::built_in()) {
    if (has_vendor(operation)) names.push_back(operation.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

CLI::Option* add_allow(CLI::App& command, std::vector<std::string>& allowed,
                       const std::vector<std::string>& words) {
  std::string help = "What is not used by default: ";
  const auto explain = [&](const char* word, const char* meaning) {
    if (allows(words, word)) help += fmt::format("{}, {}; ", word, meaning);
  };
  explain("vendor", "what hipBLASLt or cuBLASLt compute faster (docs/vendor.md)");
  explain("tf32x3", "f32 by three products of TF32 (docs/gemm.md)");
  explain("rounded_weights", "quantised weights rounded to 16 bits (docs/quantized-gemm.md)");
  const auto check = [words](const std::string& word) {
    if (allows(words, word)) return std::string();
    const std::string told = word == "vendor" ? "only " + names_of_vendors() + " have that variant"
                             : words.empty()  ? "there is nothing to allow"
                                              : must_be_one_of(word, words);
    throw CommandError(exit_usage, fmt::format("--allow {}: {}", word, told));
  };
  return command.add_option("--allow", allowed, help + "may be repeated")
      ->type_name("WORD")
      ->check(check);
}

bool allows(const std::vector<std::string>& allowed, std::string_view word) {
  return std::find(allowed.begin(), allowed.end(), word) != allowed.end();
}

std::uint64_t read_seed(const std::string& text) {
  if (text.empty()) return std::random_device{}();
  check_whole_number("--seed", text, 0, std::numeric_limits<std::uint64_t>::max());
  return *parsed<std::uint64_t>(text);
}

std::uint64_t read_count(const std::string& option, const std::string& text, std::uint64_t most) {
  check_whole_number(option, text, 1, most);
  return *parsed<std::uint64_t>(text);
}

void check_whole_number(const std::string& option, const std::string& text, std::uint64_t least,
                        std::uint64_t most) {
  const auto number = parsed<std::uint64_t>(text);
  if (number && *number >= least && *number <= most) return;
  constexpr std::uint64_t largest = std::numeric_limits<std::int64_t>::max();
  refuse(option, text,
         most < largest ? fmt::format("a whole number between {} and {}", least, most)
         : least > 0    ? fmt::format("a whole number, at least {}", least)
                        : fmt::format("a whole number below 2^{}", most > largest ? 64 : 63));
}

void check_number(const std::string& option, const std::string& text, const NumberRange& range) {
  const auto number = parsed<double>(text);
  const bool finite = number && std::isfinite(*number);
  const bool above = finite && (range.exclusive ? *number > range.least : *number >= range.least);
  if (above && *number <= range.most) return;
  const std::string least =
      std::isfinite(range.least)
          ? fmt::format(" {} {}", range.exclusive ? "above" : "of at least", range.least)
          : std::string();
  const std::string most =
      std::isfinite(range.most)
          ? fmt::format("{} at most {}", least.empty() ? "" : " and", range.most)
          : std::string();
  refuse(option, text, "a number" + least + most);
}

CLI::Option* add_choice(CLI::App& command, const std::string& option, std::string& value,
                        const std::string& help, const std::vector<std::string>& names) {
  const auto check = [option, names](const std::string& text) {
    if (std::find(names.begin(), names.end(), text) != names.end()) return std::string();
    throw CommandError(exit_usage,
                       fmt::format("{} {}: {}", option, text, must_be_one_of(text, names)));
  };
  return command.add_option(option, value, help)->check(check)->capture_default_str();
}

Budget read_budget(const std::string& text) {
  auto budget = Budget::parse(text);
  if (!budget) throw command_error(budget.failure());
  return *std::move(budget);
}

std::uint64_t read_flush(const std::string& text) {
  if (text.empty()) return 0;
  std::size_t end = 0;
  double mebibytes = 0;
  try {
    mebibytes = std::stod(text, &end);
  } catch (const std::exception&) {
    end = 0;
  }
  if (end != text.size() || !(mebibytes >= 1) || mebibytes > 65536) {
    throw CommandError(exit_usage,
                       fmt::format("--flush {}: must be MiB between 1 and 65536", text));
  }
  return static_cast<std::uint64_t>(mebibytes * 1024 * 1024);
}

std::string names_of_strategies() {
  std::string names;
  for (const auto& entry : strategies())
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  return names;
}

void check_exists(const std::string& option, const std::filesystem::path& file) {
  if (std::filesystem::exists(file)) return;
  throw CommandError(exit_usage,
                     fmt::format("{} {}: there is no such file or folder", option, file.string()));
}

void check_csv(const std::string& option, const std::filesystem::path& file) {
  if (file.empty()) return;
  const auto refuse = [&](std::string_view why) {
    throw CommandError(exit_usage, fmt::format("{} {}: {}", option, file.string(), why));
  };
  if (std::filesystem::exists(file)) {
    const auto text = read_file(file, most_csv_bytes);
    if (!text) throw CommandError(exit_usage, fmt::format("{} {}", option, text.failure().message));
    if (!text->empty() && !text->starts_with(csv_header())) refuse("exists and has other columns");
    if (access(file.c_str(), W_OK) != 0) refuse("can't be written");
    return;
  }
  check_folder(option, file);
}

std::vector<Config> read_configs(const std::vector<std::string>& texts) {
  std::vector<Config> configs;
  for (const auto& text : texts) {
    std::istringstream words(text);  // a report may have wrapped it
    std::string joined;
    for (std::string word; words >> word;) joined += (joined.empty() ? "" : " ") + word;
    try {
      configs.push_back(config_from_text(joined));
    } catch (const Error& error) {
      throw CommandError(exit_usage, std::string("--try: ") + error.what());
    }
  }
  return configs;
}

SearchLimits read_limits(const std::string& variants, const std::vector<std::string>& fixed,
                         const std::vector<std::string>& ranges) {
  SearchLimits limits;
  if (!variants.empty()) limits.variants = CLI::detail::split(variants, ',');
  if (std::find(limits.variants.begin(), limits.variants.end(), "") != limits.variants.end())
    throw CommandError(exit_usage, fmt::format("--variant {}: a name is empty", variants));
  const auto read = [&](const std::string& option, const std::string& text, bool several) {
    const auto equals = text.find('=');
    const auto refuse = [&] {
      throw CommandError(exit_usage, fmt::format("{} {}: must be {}", option, text,
                                                 several ? "a parameter and values, as BK=16,32"
                                                         : "a parameter and a value, as BM=128"));
    };
    if (equals == 0 || equals == std::string::npos) refuse();
    const std::string name = text.substr(0, equals);
    if (limits.values.contains(name)) {
      throw CommandError(exit_usage, fmt::format("{} {}: {} is limited twice", option, text, name));
    }
    auto& values = limits.values[name];
    if (several) limits.ranges.insert(name);
    for (const auto& word : CLI::detail::split(text.substr(equals + 1), ',')) {
      const auto value = parsed<int>(word);
      if (!value) refuse();
      if (std::find(values.begin(), values.end(), *value) == values.end()) values.push_back(*value);
    }
    if (!several && values.size() != 1) refuse();
  };
  for (const auto& text : fixed) read("--fix", text, false);
  for (const auto& text : ranges) read("--range", text, true);
  return limits;
}

Preset load_preset(const std::string& wanted) {
  auto preset = read_preset(find_preset(wanted), known_operations());
  if (!preset) throw CommandError(exit_usage, preset.failure().message);
  return *std::move(preset);
}

}  // namespace greta::tuner::cli
