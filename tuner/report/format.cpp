#include "tuner/report/format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "runtime/device/text/printable.hpp"
#include "tuner/report/terminal_size.hpp"

namespace greta::tuner {
namespace {

// Formats three significant digits, for uniform columns.
std::string three_digits(double value) {
  return fmt::format("{:.{}f}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

constexpr std::size_t fewest_columns = 40;
constexpr std::size_t most_columns = 100;
constexpr std::size_t label_columns = 13;
// A relative half-width of an interval above this makes a time noisy.
constexpr double noisy_from = 0.1;

// Returns the first words of a text that fit a line, at least one, and removes them from `rest`.
std::string_view next_line(std::string_view& rest, std::size_t most) {
  std::size_t end = rest.find(' ', rest.find_first_not_of(' '));
  while (end != std::string_view::npos) {
    const std::size_t next = rest.find(' ', end + 1);
    if (text_columns(rest.substr(0, next)) > most) break;
    end = next;
  }
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(line.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

}  // namespace

std::string format_time(double us) {
  if (us < 1) return fmt::format("{:.0f} ns", us * 1e3);
  if (us < 1e3) return three_digits(us) + " µs";
  if (us < 1e6) return three_digits(us / 1e3) + " ms";
  return three_digits(us / 1e6) + " s";
}

std::string format_time(double median_us, double low_us, double high_us) {
  const bool one_sample = low_us == high_us;
  if (!(median_us > 0) || !(high_us > 0) || one_sample) return format_time(median_us);
  const double half = (high_us - low_us) / 2 / median_us;
  return fmt::format("{} ± {}{}", format_time(median_us), format_share(half),
                     half > noisy_from ? " (noisy)" : "");
}

std::string format_time(const Measurement& measurement) {
  return format_time(measurement.median_us, measurement.low_us, measurement.high_us);
}

std::string format_rate(double flops, double us) {
  const double gflops = us > 0 ? flops / us / 1e3 : 0;
  return gflops < 1e3 ? three_digits(gflops) + " GFLOPS" : three_digits(gflops / 1e3) + " TFLOPS";
}

std::string format_rate(const Work& work, double us) {
  constexpr double few_flops_for_a_byte = 4;
  if (work.flops == 0 && work.bytes == 0) return "–";  // of an operation that is not known here
  if (work.flops >= few_flops_for_a_byte * work.bytes) return format_rate(work.flops, us);
  return three_digits(us > 0 ? work.bytes / us / 1e3 : 0) + " GB/s";
}

std::string format_bytes(double bytes) {
  constexpr std::array<std::string_view, 5> units{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", bytes, unit == 0 || bytes >= 100 ? 0 : 1, units[unit]);
}

std::string format_count(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// Counts all bytes except UTF-8 continuation bytes.
std::size_t text_columns(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::size_t report_columns() {
  const std::size_t columns = terminal_size(stdout).columns;
  return columns > 0 ? std::clamp(columns, fewest_columns, most_columns) : most_columns;
}

std::string format_row(std::string_view name, std::string_view value, std::size_t indent,
                       std::size_t columns) {
  const std::string label = one_line(name), words = one_line(value);
  std::string_view text = words;
  const std::size_t start = indent + label_columns;
  std::string rows;
  do {
    const std::string_view line = next_line(text, columns - start);
    rows += fmt::format("{:{}}{:<{}}{}\n", "", indent, rows.empty() ? label : std::string(),
                        label_columns, line);
  } while (!text.empty());
  return rows;
}

std::string format_share(double share) {
  return fmt::format("{:.{}f} %", 100 * share, share < 0.0095 ? 1 : 0);
}

}  // namespace greta::tuner
