#include "tuner/report/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tuner/report/format.hpp"

namespace greta::tuner {
namespace {

constexpr std::size_t plot_rows = 6;
constexpr std::size_t plot_label_columns = 12;
constexpr double most_ratio = 8;

std::string utf8(char32_t code) {  // of the Basic Multilingual Plane, from U+0800
  return {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3f)),
          static_cast<char>(0x80 | (code & 0x3f))};
}

/// Dots, two by four in a character.
class Dots {
 public:
  Dots(std::size_t columns, std::size_t rows)
      : columns_(columns), rows_(rows), cells_(columns * rows, 0) {}

  std::size_t width() const { return columns_ * 2; }
  std::size_t height() const { return rows_ * 4; }
  void set(std::size_t x, std::size_t y) {
    constexpr unsigned char bits[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    cells_[y / 4 * columns_ + x / 2] |= bits[y % 4][x % 2];
  }
  std::string row(std::size_t r) const {
    std::string text;
    for (std::size_t c = 0; c < columns_; ++c)
      text += utf8(0x2800 + static_cast<char32_t>(cells_[r * columns_ + c]));
    return text;
  }

 private:
  std::size_t columns_, rows_;
  std::vector<unsigned char> cells_;
};

}  // namespace

std::string plot_text(const std::vector<double>& times_us, std::size_t columns) {
  double best = std::numeric_limits<double>::infinity(), worst = 0;
  std::size_t known = 0;
  for (const double us : times_us) {
    if (!(us > 0) || !std::isfinite(us)) continue;
    ++known;
    best = std::min(best, us);
    worst = std::max(worst, us);
  }
  if (known < 3 || columns < plot_label_columns + 10) return {};
  const double top = std::clamp(worst / best, 1.1, most_ratio);
  Dots dots(columns - plot_label_columns - 1, plot_rows);
  const auto x_of = [&](std::size_t i) {
    return i * (dots.width() - 1) / std::max<std::size_t>(1, times_us.size() - 1);
  };
  const auto y_of = [&](double us) {
    const double up = std::log(std::min(us / best, top)) / std::log(top);
    return static_cast<std::size_t>(std::lround((1 - up) * static_cast<double>(dots.height() - 1)));
  };
  double so_far = std::numeric_limits<double>::infinity();
  std::size_t x = 0;
  for (std::size_t i = 0; i < times_us.size(); ++i) {
    for (; x < x_of(i); ++x)
      if (std::isfinite(so_far)) dots.set(x, y_of(so_far));
    const double us = times_us[i];
    if (!(us > 0) || !std::isfinite(us)) continue;
    dots.set(x_of(i), y_of(us));
    so_far = std::min(so_far, us);
  }
  dots.set(dots.width() - 1, y_of(so_far));
  std::string text;
  for (std::size_t r = 0; r < plot_rows; ++r) {
    const std::string label = r == 0               ? format_time(best * top)
                              : r == plot_rows - 1 ? format_time(best)
                                                   : "";
    // "µ" takes two bytes.
    const std::size_t pad = plot_label_columns - std::min(plot_label_columns, text_columns(label));
    text += std::string(pad, ' ') + label + " " + dots.row(r) + "\n";
  }
  return text;
}

std::string plot_text(const std::vector<Trial>& trials, const std::string& problem_key,
                      std::size_t columns) {
  std::vector<double> times;
  for (const Trial& trial : trials) {
    if (trial.problem_key != problem_key) continue;
    times.push_back(trial.ok() ? trial.measurement.median_us
                               : std::numeric_limits<double>::quiet_NaN());
  }
  return plot_text(times, columns);
}

std::string bar_text(double share, std::size_t columns) {
  const auto eighths = std::lround(std::clamp(share, 0.0, 1.0) * 8 * static_cast<double>(columns));
  std::string text;
  for (std::size_t c = 0; c < columns; ++c) {
    const long here = std::clamp(eighths - 8 * static_cast<long>(c), 0L, 8L);
    text += here == 0 ? utf8(0x2591) : utf8(0x2590 - static_cast<char32_t>(here));
  }
  return text;
}

}  // namespace greta::tuner
