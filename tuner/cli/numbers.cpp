#include "tuner/cli/numbers.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <random>

#include "tuner/cli/tool.hpp"

namespace greta {
namespace {

std::optional<std::uint64_t> whole_number(const std::string& text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

}  // namespace

std::uint64_t read_seed(const std::string& text) {
  if (text.empty()) return std::random_device{}();
  if (const auto seed = whole_number(text)) return *seed;
  throw CommandError(exit_usage, fmt::format("--seed {}: must be a whole number below 2^64", text));
}

std::uint64_t read_count(const std::string& option, const std::string& text, std::uint64_t most) {
  const auto count = whole_number(text);
  if (count && *count >= 1 && *count <= most) return *count;
  throw CommandError(exit_usage, fmt::format("{} {}: must be a whole number between 1 and {}",
                                             option, text, most));
}

}  // namespace greta
