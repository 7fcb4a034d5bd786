#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "tuner/measure/measured_result.hpp"

// How a field of each type is written in a CSV file, and read into an empty result. Reading throws
// Error for text of another form.

namespace greta::tuner::csv {

using Blocks = std::vector<std::vector<double>>;

/// Returns the number that the text is. Throws Error.
template <typename Number>
Number read_number(std::string_view text) {
  Number value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) {
    throw Error(fmt::format("{} is not a number", text));
  }
  return value;
}

/// Returns a text in quotes, on one line.
std::string quoted(const std::string& text);

std::string to_field(const std::string& word);
void read_field(const std::string& text, std::string& word);
std::string to_field(double value);
void read_field(const std::string& text, double& value);
std::string to_field(std::size_t count);
void read_field(const std::string& text, std::size_t& count);
std::string to_field(const Blocks& blocks);
void read_field(std::string_view text, Blocks& blocks);
std::string to_field(const std::vector<double>& numbers);
void read_field(const std::string& text, std::vector<double>& numbers);
/// Throw Error unless all are times: finite and not negative.
void check_times(double us);
void check_times(const std::vector<double>& us);
void check_times(const Blocks& blocks);
std::string to_field(const std::optional<Config>& config);
void read_field(const std::string& text, std::optional<Config>& config);
std::string to_field(const std::optional<Failure>& failure);
void read_field(const std::string& text, std::optional<Failure>& failure);
std::string to_field(ResultOrigin origin);
void read_field(const std::string& text, ResultOrigin& origin);
std::string to_field(CacheState cache);
void read_field(const std::string& text, CacheState& cache);

/// Divides a line at commas outside quotes. Rows are single lines. Throws Error for a quote that is
/// not closed.
std::vector<std::string> split(const std::string& line);

}  // namespace greta::tuner::csv
