#include "tuner/report/live_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tuner/measure/ceilings.hpp"
#include "tuner/report/format.hpp"

namespace greta::tuner {
namespace {

/// Returns ", 1.23× the default (1.18 to 1.30, not certified)".
std::string speedup_so_far(const SessionResult& result, const Trial& best) {
  const Trial* const fallback = find_trial(result.trials, result.default_config, best.problem_key);
  if (best.config == result.default_config) return ", the default";
  if (fallback == nullptr || !fallback->ok()) return {};
  const Measurement &from = fallback->measurement, &to = best.measurement;
  if (!(to.median_us > 0) || !(to.low_us > 0) || !(to.high_us > 0)) return {};
  if (to.low_us == to.high_us || from.low_us == from.high_us) {  // of one sample
    return fmt::format(", {:.2f}× the default (not certified)", from.median_us / to.median_us);
  }
  // The extreme quotients of both intervals; certification uses paired rounds instead.
  return fmt::format(", {:.2f}× the default ({:.2f} to {:.2f}, not certified)",
                     from.median_us / to.median_us, from.low_us / to.high_us,
                     from.high_us / to.low_us);
}

/// Returns the budget as it was given, but a time with many digits rounded.
std::string shown_budget(const Budget& budget) {
  constexpr std::size_t most_characters = 8;
  if (budget.text().size() <= most_characters) return budget.text();
  return fmt::format("{:.1f}s", budget.amount());
}

}  // namespace

std::string counts_text(const std::vector<Trial>& trials) {
  std::map<std::string, std::size_t> failed;
  std::size_t passed = 0;
  for (const Trial& trial : trials) {
    if (trial.ok()) {
      ++passed;
    } else {
      ++failed[std::string(to_string(*trial.failure))];
    }
  }
  std::string text = fmt::format("{} of {} passed", passed, trials.size());
  for (const auto& [reason, count] : failed) text += fmt::format(", {} {}", count, reason);
  return text;
}

std::string best_so_far(const SessionResult& result, const Trial& best) {
  const bool smaller = result.stand_in && best.problem_key == result.stand_in->problem.key();
  const Work& work = smaller ? result.stand_in->work : result.work;
  const double us = best.measurement.median_us;
  const double roof_us = roofline_us(result.problem.dtype, work, result.ceilings);
  return fmt::format(
      "{}, {}{}{}{}", format_time(best.measurement), format_rate(work, us),
      speedup_so_far(result, best),
      roof_us > 0 ? fmt::format(", {} of the roofline", format_share(roof_us / us)) : "",
      smaller ? " (on the proxy problem)" : "");
}

std::string budget_text(const Budget& budget) {
  const int percent = static_cast<int>(100 * std::min(1.0, budget.used()));
  if (budget.kind() == Budget::Kind::seconds) {
    return fmt::format("{} %, {:.0f} s left of {}, with certification", percent,
                       std::max(0.0, budget.remaining_s()), shown_budget(budget));
  }
  const double elapsed_s = budget.elapsed_s();
  const auto left = static_cast<double>(budget.remaining_trials());
  const auto trials = static_cast<double>(std::max<std::uint64_t>(budget.trials(), 1));
  return fmt::format("{} %, {:.0f} s so far, about {:.0f} s left and certification", percent,
                     elapsed_s, elapsed_s / trials * left);
}

void update(LiveView& view, const SessionResult& result, const Budget& budget) {
  view.time = budget_text(budget);
  view.trials = counts_text(result.trials);
  const Trial* const best = best_trial(result.trials, result.trials.back().problem_key);
  view.best = best != nullptr ? best_so_far(result, *best) : "no candidate has passed yet";
  view.config = best != nullptr ? best->config.shown() : "";
}

std::vector<std::string> live_lines(const LiveView& view, std::size_t columns) {
  std::string text;
  const auto add = [&](const char* label, const std::string& value) {
    if (!value.empty()) text += format_row(label, value, 0, columns);
  };
  add("problem", view.problem);
  add("device", view.device);
  add("phase", view.phase);
  add("time", view.time);
  add("trials", view.trials);
  add("best", view.best);
  add("config", view.config);
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace greta::tuner
