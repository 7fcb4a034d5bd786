#include "kernels/described/compiler_options.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "kernels/described/names.hpp"

namespace greta::kernels::described {
namespace {

enum class Meaning { macro, optimisation, standard, fast_math, fma, registers, lines };

struct Known {
  Meaning meaning;
  std::string_view value;  // what follows the option's name
};

std::optional<Known> known_option(std::string_view option) {
  struct Spelling {
    std::string_view text;
    Meaning meaning;
    bool has_value;
  };
  constexpr std::array spellings{
      Spelling{"-std=", Meaning::standard, true},
      Spelling{"--std=", Meaning::standard, true},
      Spelling{"-use_fast_math", Meaning::fast_math, false},
      Spelling{"--use_fast_math", Meaning::fast_math, false},
      Spelling{"-ffast-math", Meaning::fast_math, false},
      Spelling{"-fmad=", Meaning::fma, true},
      Spelling{"--fmad=", Meaning::fma, true},
      Spelling{"-maxrregcount=", Meaning::registers, true},
      Spelling{"--maxrregcount=", Meaning::registers, true},
      Spelling{"-lineinfo", Meaning::lines, false},
      Spelling{"--generate-line-info", Meaning::lines, false},
      Spelling{"-O", Meaning::optimisation, true},
      Spelling{"-D", Meaning::macro, true},
      Spelling{"-U", Meaning::macro, true},
  };
  for (const Spelling& one : spellings) {
    if (!option.starts_with(one.text)) continue;
    const std::string_view value = option.substr(one.text.size());
    if (one.has_value ? !value.empty() : value.empty()) return Known{one.meaning, value};
  }
  return std::nullopt;
}

bool is_number(std::string_view text, std::size_t most_digits) {
  return !text.empty() && text.size() <= most_digits &&
         std::all_of(text.begin(), text.end(), is_digit);
}

}  // namespace

bool is_allowed_option(const std::string& option) {
  const auto known = known_option(option);
  if (!known) return false;
  constexpr std::array<std::string_view, 4> standards{"c++11", "c++14", "c++17", "c++20"};
  switch (known->meaning) {
    case Meaning::macro:
      return is_name(known->value.substr(0, known->value.find('=')));
    case Meaning::optimisation:
      return known->value.size() == 1 && known->value[0] >= '0' && known->value[0] <= '3';
    case Meaning::standard:
      return std::find(standards.begin(), standards.end(), known->value) != standards.end();
    case Meaning::fma:
      return known->value == "true" || known->value == "false";
    case Meaning::registers:
      return is_number(known->value, 3);
    case Meaning::fast_math:
    case Meaning::lines:
      return true;
  }
  return false;
}

std::string allowed_options() {
  return "-DNAME=VALUE, -UNAME, -O0 to -O3, -std=c++11 to c++20, --use_fast_math, -ffast-math, "
         "--fmad=true or false, --maxrregcount=N, -lineinfo";
}

std::vector<std::string> options_for(const DeviceInfo& device,
                                     const std::vector<std::string>& options) {
  const bool nvidia = !device.is_cpu() && device.vendor == "NVIDIA";
  std::vector<std::string> words;
  const auto add = [&](bool fits, std::string word) {
    if (fits) words.push_back(std::move(word));
  };
  for (const std::string& option : options) {
    const auto known = known_option(option);
    if (!known) continue;
    const std::string value(known->value);
    if (device.language == Language::glsl) {
      add(option.starts_with("-D"), option);
      continue;
    }
    switch (known->meaning) {
      case Meaning::macro:
        add(true, option);
        break;
      case Meaning::optimisation:
        add(!nvidia, option);
        break;
      case Meaning::standard:  // C++17 is the least that GRETA compiles
        add(value == "c++20", (nvidia ? "--std=" : "-std=") + value);
        break;
      case Meaning::fast_math:
        add(true, nvidia ? "--use_fast_math" : "-ffast-math");
        break;
      case Meaning::fma:
        add(true, nvidia            ? "--fmad=" + value
                  : value == "true" ? "-ffp-contract=fast"
                                    : "-ffp-contract=off");
        break;
      case Meaning::registers:
        add(nvidia, "--maxrregcount=" + value);
        break;
      case Meaning::lines:
        add(nvidia, "--generate-line-info");
        break;
    }
  }
  return words;
}

}  // namespace greta::kernels::described
