#include "kernels/model/problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>

namespace greta::kernels {
namespace {

/// Parses an integer in canonical form, as std::to_string() prints it.
std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (std::to_string(number) != text) return std::nullopt;  // "007", "-0"
  return number;
}

bool looks_like_integer(std::string_view text) {
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  return !digits.empty() &&
         std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view next_word(std::string_view& rest) {
  const std::size_t space = rest.find(' ');
  const std::string_view word = rest.substr(0, space);
  rest = space == std::string_view::npos ? std::string_view() : rest.substr(space + 1);
  return word;
}

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool is_plain(std::string_view value) {
  return std::all_of(value.begin(), value.end(),
                     [](char c) { return c > ' ' && c < 127 && c != '"'; });
}

/// Reads the first three words. Returns an error message, or an empty string.
std::string name_and_type(Problem& problem, std::string_view& rest) {
  problem.op = next_word(rest);
  if (!is_name(problem.op)) return "it must begin with an operation's name";
  for (const std::string_view name : {"dtype", "out"}) {
    const std::string_view word = next_word(rest);
    const auto type = word.starts_with(std::string(name) + "=")
                          ? dtype_from_string(word.substr(name.size() + 1))
                          : std::nullopt;
    if (!type) {
      return fmt::format("\"{}\" must be {}= and {}", word, name, converted_types_text());
    }
    (name == "dtype" ? problem.dtype : problem.out_dtype) = *type;
  }
  return {};
}

/// Reads one of the later words. Returns an error message, or an empty string.
std::string attribute_or_dimension(Problem& problem, std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) return fmt::format("\"{}\" is not name=value", word);
  const std::string name(word.substr(0, equals));
  std::string_view value = word.substr(equals + 1);
  const auto same_name = [&](const auto& pair) { return pair.first == name; };
  if (!is_name(name) || value.empty()) return fmt::format("\"{}\" is not name=value", word);
  if (std::any_of(problem.attributes.begin(), problem.attributes.end(), same_name) ||
      std::any_of(problem.dims.begin(), problem.dims.end(), same_name)) {
    return fmt::format("{} is given twice", name);
  }
  if (const auto number = integer(value)) {
    problem.dims.emplace_back(name, *number);
    return {};
  }
  const bool quoted = value.size() > 2 && value.front() == '"' && value.back() == '"';
  if (quoted) value = value.substr(1, value.size() - 2);
  if (quoted != looks_like_integer(value) || !is_plain(value)) {
    return fmt::format("\"{}\" has no readable value", word);
  }
  if (!problem.dims.empty()) return fmt::format("attribute {} stands after a dimension", name);
  problem.attributes.emplace_back(name, value);
  return {};
}

template <typename AnyProblem>
auto& extent_of(AnyProblem& problem, std::string_view name) {
  for (auto& [dimension, value] : problem.dims) {
    if (dimension == name) return value;
  }
  throw Error(fmt::format("problem \"{}\" has no dimension {}", problem.key(), name));
}

}  // namespace

std::int64_t Problem::dim(std::string_view name) const {
  return extent_of(*this, name);
}

std::int64_t& Problem::extent(std::string_view name) {
  return extent_of(*this, name);
}

std::int64_t Problem::dim(std::string_view name, std::int64_t fallback) const {
  for (const auto& [dimension, value] : dims) {
    if (dimension == name) return value;
  }
  return fallback;
}

std::string Problem::attribute(std::string_view name, std::string_view fallback) const {
  for (const auto& [attribute, value] : attributes) {
    if (attribute == name) return value;
  }
  return std::string(fallback);
}

std::int64_t Problem::stride(std::string_view name, std::int64_t packed) const {
  const std::int64_t said = integer(attribute(name, "0")).value_or(0);
  return said == packed ? 0 : said;
}

std::string Problem::key() const {
  std::string out = fmt::format("{} dtype={} out={}", op, to_string(dtype), to_string(out_dtype));
  for (const auto& [name, value] : attributes) {
    const std::string_view quote = looks_like_integer(value) ? "\"" : "";
    out += fmt::format(" {}={}{}{}", name, quote, value, quote);
  }
  return dims.empty() ? out : out + " " + dims_text();
}

std::string Problem::dims_text() const {
  std::string out;
  for (const auto& [name, value] : dims) {
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", name, value);
  }
  return out;
}

Result<Problem> Problem::parse(std::string_view key) {
  Problem problem;
  std::string_view rest = key;
  std::string trouble = name_and_type(problem, rest);
  while (trouble.empty() && !rest.empty()) {
    trouble = attribute_or_dimension(problem, next_word(rest));
  }
  if (trouble.empty() && key.ends_with(' ')) trouble = "it ends with a space";
  if (trouble.empty()) return problem;
  std::string message = fmt::format("problem \"{}\": {}", key, trouble);
  std::replace_if(
      message.begin(), message.end(), [](char c) { return c >= 0 && c < ' '; }, '?');
  return Failure{Status::invalid_argument, message, {}};
}

std::size_t ProblemHash::operator()(const Problem& problem) const {
  std::uint64_t state = problem.op.size() + problem.attributes.size();
  const auto add = [&state](std::uint64_t word) {
    state = (state ^ word) * 0x9e3779b97f4a7c15ULL;
    state ^= state >> 32;
  };
  add(static_cast<std::uint64_t>(problem.dtype) << 8 |
      static_cast<std::uint64_t>(problem.out_dtype));
  add(std::hash<std::string_view>()(problem.op));
  for (const auto& attribute : problem.attributes) {
    add(std::hash<std::string_view>()(attribute.second));
  }
  for (const auto& dimension : problem.dims) add(static_cast<std::uint64_t>(dimension.second));
  return state;
}

}  // namespace greta::kernels
