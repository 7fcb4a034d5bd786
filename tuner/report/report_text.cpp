#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "kernels/catalog.hpp"
#include "tuner/measure/ceilings.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/report.hpp"

namespace greta {
namespace {

std::string row(std::string_view label, const std::string& text) {
  return fmt::format("  {:<12} {}\n", label, text);
}

std::string device_text(const DeviceInfo& device) {
  return fmt::format("{} {}{}", device.id(), device.name,
                     device.is_cpu() ? " (a CPU device, not a GPU)" : "");
}

std::string winner_rows(const SessionResult& result) {
  const Winner& winner = *result.winner;
  std::string text =
      row("winner", winner.config.text() + (winner.is_default ? "  (the default)" : ""));
  text += row("time", fmt::format("{}  (95 % interval {} to {}, {} rounds, {})",
                                  format_time(winner.median_us), format_time(winner.low_us),
                                  format_time(winner.high_us), winner.rounds,
                                  winner.cold ? "cold" : "warm"));
  text += row("rate", fmt::format("{}, {} of the roofline ({} FP32, {:.0f} GB/s copy)",
                                  format_rate(result.work.flops, winner.median_us),
                                  format_share(winner.roofline),
                                  format_rate(ceiling(result.ceilings, ceiling_fma_f32), 1e-3),
                                  ceiling(result.ceilings, ceiling_copy)));
  if (winner.is_default) {
    text += row("vs default", "nothing was faster than the default for sure: the default stands");
  } else if (winner.default_us > 0) {
    text +=
        row("vs default", fmt::format("{:.3f}× faster, median of the rounds  ({:.0f} % interval "
                                      "{:.3f} to {:.3f}; default {})",
                                      winner.speedup, 100 * winner.confidence, winner.speedup_low,
                                      winner.speedup_high, format_time(winner.default_us)));
  }
  if (!winner.ties.empty()) {
    text += row("ties", fmt::format("{} can't be told apart from it:", winner.ties.size()));
    for (const auto& tie : winner.ties) text += row("", tie.config.text());
  }
  text += row("error", fmt::format("{:.2e} where {:.2e} is allowed ({} of the bound), checked {}",
                                   winner.verdict.error, winner.verdict.bound,
                                   format_share(winner.verdict.ratio()), winner.verdict.method));
  return text;
}

// The naive kernel is timed where the search runs, so its time is set against one of that place.
std::string naive_row(const SessionResult& result) {
  const Trial& naive = *result.naive;
  if (!naive.ok()) return row("vs naive", "the naive kernel failed: " + naive.message);
  const Trial* best = best_trial(result.trials, naive.problem_key);
  if (best == nullptr) return {};
  const double us =
      result.winner && !result.stand_in ? result.winner->median_us : best->measurement.median_us;
  const double ratio = naive.measurement.median_us / us;
  return row(
      "vs naive",
      fmt::format("{:.1f}× {} than one thread per output ({}){}", ratio >= 1 ? ratio : 1 / ratio,
                  ratio >= 1 ? "faster" : "slower", format_time(naive.measurement.median_us),
                  result.stand_in ? ", on the stand-in" : ""));
}

std::string trials_rows(const SessionResult& result) {
  std::map<std::string, int> by_status;
  std::map<std::string, int> messages;
  int ok = 0;
  for (const auto& trial : result.trials) {
    if (trial.ok()) {
      ++ok;
    } else {
      ++by_status[std::string(to_string(*trial.failure))];
      ++messages[fmt::format("{}: {}", to_string(*trial.failure), trial.message)];
    }
  }
  std::string counts = fmt::format("{}: {} right", result.trials.size(), ok);
  for (const auto& [status, count] : by_status) counts += fmt::format(", {} {}", count, status);
  std::string text = row("trials", counts);
  constexpr std::size_t most = 5;
  std::size_t shown = 0;
  for (const auto& [message, count] : messages) {
    if (shown++ == most) {
      text += row("", fmt::format("and {} other reasons", messages.size() - most));
      break;
    }
    text += row("", fmt::format("{} × {}", count, message));
  }
  return text;
}

std::string space_rows(const SessionResult& result) {
  std::string text = row("space", fmt::format("{} valid of {:.3g} combinations", result.space_count,
                                              static_cast<double>(result.cartesian_size)));
  const Space space = find_template(result.problem.op)->space(result.problem, result.device);
  std::string reasons;
  for (const auto& [name, share] : space.rejection_rates(1, 2000)) {
    if (share > 0)
      reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", name, format_share(share));
  }
  if (!reasons.empty()) text += row("rejected by", reasons);
  return text;
}

std::string time_row(const TimeSpent& time) {
  const double wall = std::max(time.wall, 1e-9);
  return row("wall time",
             fmt::format("{:.1f} s: compiling {}, verifying {}, running {}, everything else {}",
                         time.wall, format_share(time.compile / wall),
                         format_share(time.verify / wall), format_share(time.measure / wall),
                         format_share(std::max(0.0, time.other()) / wall)));
}

}  // namespace

std::string report_text(const SessionResult& result, const std::string& database) {
  std::string text = fmt::format("{} on {}\n", result.problem.key(), device_text(result.device));
  if (result.winner) {
    text += winner_rows(result);
  } else if (const Trial* best =
                 best_trial(result.trials,
                            (result.stand_in ? result.stand_in->problem : result.problem).key())) {
    text += row("best so far", fmt::format("{}  {} (not certified)", best->config.text(),
                                           format_time(best->measurement.median_us)) +
                                   (result.stand_in ? " on the stand-in" : ""));
  }
  if (result.naive) text += naive_row(result);
  text += trials_rows(result);
  text += space_rows(result);
  for (const auto& note : result.notes) text += row("note", note);
  text += time_row(result.time);
  if (result.interrupted) {
    text += row("interrupted", fmt::format("{} trials are kept in {}; no winner was stored",
                                           result.trials.size(), database));
  } else if (result.winner) {
    text += row("stored in", database);
  } else {
    text +=
        row("no winner", fmt::format("no configuration was right; the trials are in {}", database));
  }
  return text;
}

}  // namespace greta
