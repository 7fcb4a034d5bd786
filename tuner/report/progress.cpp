#include "tuner/report/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "tuner/measure/ceilings.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner {
namespace {

std::string time_left(const Budget& budget) {
  const double left_s = budget.remaining_s();
  if (std::isinf(left_s)) return fmt::format("{:.0f} s so far", budget.elapsed_s());
  return fmt::format("{:.0f} s left", std::max(0.0, left_s));
}

std::string best_text(const SessionResult& result, const Trial& best) {
  const Work& work = result.stand_in && best.problem_key == result.stand_in->problem.key()
                         ? result.stand_in->work
                         : result.work;
  const double us = best.measurement.median_us;
  const double roof_us = roofline_us(result.problem.dtype, work, result.ceilings);
  return fmt::format("best {}, {}", format_time(us), format_rate(work, us)) +
         (roof_us > 0 ? fmt::format(", {} of the roofline", format_share(roof_us / us)) : "");
}

// Returns the prefix of the text that fits the terminal's width. The text is mostly ASCII.
std::string fitted(const std::string& text) {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 10;
  return text.substr(0, known ? size.ws_col - 1U : 119U);
}

}  // namespace

// Write errors are ignored: a closed or full stream must not end the session.
void Progress::show_line(const std::string& line) {
  clear_line();
  print_text(stream_, one_line(line) + "\n");
  static_cast<void>(std::fflush(stream_));
}

void Progress::clear_line() {
  if (line_open_) tuner::clear_line(stream_);
  line_open_ = false;
}

void Progress::on_phase(const std::string& what) {
  show_line(what);
}

void Progress::on_trial(const SessionResult& result, const Budget& budget) {
  const std::string& key = result.trials.back().problem_key;
  const Trial* best = best_trial(result.trials, key);
  const int percent = static_cast<int>(100 * std::min(1.0, budget.used()));
  const std::string line = fmt::format(
      "{:3d} %, {}, {}; {}{}", percent, format_count(result.trials.size(), "trial"),
      time_left(budget), best != nullptr ? best_text(result, *best) : "no candidate has passed yet",
      key != result.problem.key() ? " (stand-in)" : "");
  if (live_) {
    tuner::clear_line(stream_);
    print_text(stream_, fitted(one_line(line)));
    static_cast<void>(std::fflush(stream_));
    line_open_ = true;
    return;
  }
  const double best_us = best != nullptr ? best->measurement.median_us : 0;
  const bool improved = best != nullptr && (best_key_ != key || best_us < best_us_);
  if (!improved && percent / 10 <= tenth_) return;
  tenth_ = std::max(tenth_, percent / 10);
  best_us_ = best_us;
  best_key_ = key;
  show_line(line + (improved ? "; " + best->config.text() : ""));
}

}  // namespace greta::tuner
