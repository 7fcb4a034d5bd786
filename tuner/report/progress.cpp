#include "tuner/report/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"
#include "tuner/report/terminal_size.hpp"

namespace greta::tuner {
namespace {

constexpr std::size_t narrowest = 40;

std::string trial_text(const Trial& trial) {
  return trial.ok() ? format_time(trial.measurement)
                    : fmt::format("{}: {}", to_string(*trial.failure), trial.message);
}

}  // namespace

Progress::Progress(std::FILE* stream, Verbosity verbosity, bool live)
    : stream_(stream), verbosity_(verbosity), live_(live && isatty(fileno(stream)) != 0) {}

Progress::~Progress() {
  show_below(stream_, {});
}

// Write errors are ignored: a closed or full stream must not end the session.
void Progress::show_line(const std::string& line) const {
  print_text(stream_, one_line(line) + "\n");
  static_cast<void>(std::fflush(stream_));
}

bool Progress::show_live() const {
  if (verbosity_ != Verbosity::normal || !live_) return false;
  const TerminalSize size = terminal_size(stream_);
  if (size.columns < narrowest) return false;
  const auto lines = live_lines(view_, size.columns - 1);
  if (lines.size() >= size.rows) return false;
  show_below(stream_, lines);
  return true;
}

void Progress::on_session(const Problem& problem, const DeviceInfo& device, std::size_t devices) {
  view_.problem = problem.key();
  view_.device = device.id() + " " + device.name;
  if (devices > 1) on_phase(view_.device);
}

void Progress::on_phase(const std::string& what) {
  view_.phase = what;
  if (verbosity_ != Verbosity::quiet && !show_live()) show_line(what);
}

void Progress::on_trial(const SessionResult& result, const Budget& budget) {
  if (verbosity_ == Verbosity::quiet) return;
  const Trial& trial = result.trials.back();
  update(view_, result, budget);
  if (verbosity_ == Verbosity::verbose) {
    show_line(fmt::format("trial {}, {}: {}", result.trials.size(), trial.config.shown(),
                          trial_text(trial)));
  } else if (!show_live()) {
    show_improvement(result, budget);
  }
}

void Progress::show_improvement(const SessionResult& result, const Budget& budget) {
  const std::string& key = result.trials.back().problem_key;
  const Trial* const best = best_trial(result.trials, key);
  const int percent = static_cast<int>(100 * std::min(1.0, budget.used()));
  const double best_us = best != nullptr ? best->measurement.median_us : 0;
  const bool improved = best != nullptr && (best_key_ != key || best_us < best_us_);
  if (!improved && percent / 10 <= tenth_) return;
  tenth_ = std::max(tenth_, percent / 10);
  if (best != nullptr) {
    best_us_ = best_us;
    best_key_ = key;
  }
  show_line(fmt::format("{}; {}; {}{}", view_.time, view_.trials,
                        best != nullptr ? "best " + view_.best : view_.best,
                        improved ? "; " + view_.config : ""));
}

}  // namespace greta::tuner
