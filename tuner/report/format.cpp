#include "tuner/report/format.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace greta {
namespace {

// Three significant digits, so that columns of figures read alike.
std::string three_digits(double value) {
  return fmt::format("{:.{}f}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

}  // namespace

std::string format_time(double us) {
  if (us < 1) return fmt::format("{:.0f} ns", us * 1e3);
  if (us < 1e3) return three_digits(us) + " µs";
  if (us < 1e6) return three_digits(us / 1e3) + " ms";
  return three_digits(us / 1e6) + " s";
}

std::string format_rate(double flops, double us) {
  const double gflops = us > 0 ? flops / us / 1e3 : 0;
  return gflops < 1e3 ? three_digits(gflops) + " GFLOPS" : three_digits(gflops / 1e3) + " TFLOPS";
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

std::string format_share(double share) {
  return fmt::format("{:.{}f} %", 100 * share, share < 0.0095 ? 1 : 0);
}

}  // namespace greta
