#include "tuner/cli/numbers.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <random>

#include "tuner/cli/tool.hpp"

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

}  // namespace

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

void check_number(const std::string& option, const std::string& text) {
  const auto number = parsed<double>(text);
  if (!number || !std::isfinite(*number)) refuse(option, text, "a number");
}

}  // namespace greta::tuner::cli
