#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tuner/measure/ceilings.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/live_view.hpp"
#include "tuner/report/report.hpp"
#include "tuner/session/vendor_rounds.hpp"

namespace greta::tuner {
namespace {

std::string row(std::string_view label, std::string_view text) {
  return format_row(label, text);
}

std::string device_text(const DeviceInfo& device) {
  return fmt::format("{} {}{}", device.id(), device.name,
                     device.is_cpu() ? " (a CPU device, not a GPU)" : "");
}

// Returns what the fraction of the roofline refers to.
std::string roofline_text(const SessionResult& result) {
  const double gflops = arithmetic_gflops(result.problem.dtype, result.work, result.ceilings);
  const bool matrix = gflops > ceiling(result.ceilings, ceiling_fma_f32);
  return fmt::format("{} {}, {:.0f} GB/s copy", format_rate(gflops, 1e-3),
                     matrix ? "on matrix cores" : "FP32", ceiling(result.ceilings, ceiling_copy));
}

std::string winner_rows(const SessionResult& result) {
  const Winner& winner = *result.winner;
  std::string text =
      row("winner", winner.config.shown() + (winner.is_default ? "  (the default)" : ""));
  text += row(
      "time",
      fmt::format("{}  (95 % interval {} to {}, {}, {})", format_time(winner.measurement.median_us),
                  format_time(winner.measurement.low_us), format_time(winner.measurement.high_us),
                  format_count(static_cast<std::size_t>(winner.rounds), "round"),
                  winner.cold ? "cold" : "warm"));
  std::string rate = format_rate(result.work, winner.measurement.median_us);
  if (winner.roofline > 0) {  // otherwise no peaks were measured
    rate += fmt::format(", {} of the roofline ({})", format_share(winner.roofline),
                        roofline_text(result));
  }
  text += row("rate", rate);
  if (winner.is_default || !has_ratio(winner)) {
    text += row("vs default", speedup_text(winner));
  } else {
    text += row("vs default", fmt::format("{}; default {}", speedup_text(winner),
                                          format_time(winner.default_us)));
  }
  if (!winner.ties.empty()) {
    text += row("ties", fmt::format("{} not significantly slower:",
                                    format_count(winner.ties.size(), "other")));
    for (const auto& tie : winner.ties) text += row("", tie.config.shown());
  }
  if (const auto kernels = kernels_text(winner.kernels); !kernels.empty()) {
    text += row("kernels", kernels);
  }
  text += row("error", fmt::format("{:.2e} where {:.2e} is allowed ({} of the bound), checked {}",
                                   winner.verdict.error, winner.verdict.bound,
                                   format_share(winner.verdict.ratio()), winner.verdict.method));
  return text;
}

// The naive kernel is timed on the searched problem, so it is compared with a time on that problem.
std::string naive_row(const SessionResult& result) {
  const Trial& naive = *result.naive;
  if (!naive.ok()) return row("vs naive", "the naive kernel failed: " + naive.message);
  const Trial* best = best_trial(result.trials, naive.problem_key);
  if (best == nullptr) return {};
  const double us = result.winner && !result.stand_in ? result.winner->measurement.median_us
                                                      : best->measurement.median_us;
  const double ratio = naive.measurement.median_us / us;
  return row(
      "vs naive",
      fmt::format("{:.1f}× {} than one thread per output ({}){}", ratio >= 1 ? ratio : 1 / ratio,
                  ratio >= 1 ? "faster" : "slower", format_time(naive.measurement.median_us),
                  result.stand_in ? ", on the proxy problem" : ""));
}

std::string trials_rows(const SessionResult& result) {
  std::map<std::string, int> messages;
  for (const auto& trial : result.trials) {
    if (!trial.ok()) ++messages[fmt::format("{}: {}", to_string(*trial.failure), trial.message)];
  }
  std::string text = row("trials", counts_text(result.trials));
  if (!result.not_tried.empty()) {
    text += row("not tried", fmt::format("{} that hung or crashed before with this driver; "
                                         "--retry-failed tries them",
                                         format_count(result.not_tried.size(), "candidate")));
  }
  constexpr std::size_t most = 5;
  std::size_t shown = 0;
  for (const auto& [message, count] : messages) {
    if (shown++ == most) {
      text += row("", "and " + format_count(messages.size() - most, "other reason"));
      break;
    }
    text += row("", fmt::format("{} × {}", count, message));
  }
  return text;
}

/// Names why the card limited its clocks, and in how many trials.
std::string throttling_row(const SessionResult& result) {
  std::map<std::string, std::size_t> counts;
  for (const auto& trial : result.trials) {
    const std::string& why = trial.measurement.card_state.throttled;
    if (!why.empty()) ++counts[why];
  }
  std::string text;
  for (const auto& [why, count] : counts)
    text += fmt::format("{}{} in {}", text.empty() ? "" : "; ", why, format_count(count, "trial"));
  if (result.winner && !result.winner->measurement.card_state.throttled.empty()) {
    text += fmt::format("{}{} while the winner was certified", text.empty() ? "" : "; ",
                        result.winner->measurement.card_state.throttled);
  }
  return text.empty() ? "" : row("throttled", text);
}

/// Returns "1.23 mJ (1.2 to 1.3)".
std::string energy_text(const Energy& energy) {
  return fmt::format("{:.3g} mJ ({:.3g} to {:.3g})", 1e3 * energy.joules, 1e3 * energy.low,
                     1e3 * energy.high);
}

std::string energy_rows(const EnergyWinner& winner) {
  std::string text =
      row("energy", winner.config.shown() + (winner.is_default ? "  (the default)" : ""));
  text +=
      row("", fmt::format("{} for a launch, warm and back to back, {:.0f} W; by the {}",
                          energy_text(winner.energy), winner.energy.watts, winner.energy.source));
  text += row("", winner.is_default ? "no finalist takes significantly less than the default"
                                    : "default " + energy_text(winner.default_energy));
  return text;
}

/// Returns "vs cuBLASLt  1.07× (1.05 to 1.09)  15.2 µs, RANK=1 WORKSPACE_MIB=32".
std::string vendor_rows(const SessionResult& result) {
  const VendorResult& vendor = *result.vendor;
  const auto name = vendor.library.substr(0, vendor.library.find(' '));
  std::string text =
      row("vs " + name, fmt::format("{:.3f}× as fast ({:.3f} to {:.3f}); {} takes {} with {}",
                                    vendor.ratio.estimate, vendor.ratio.low, vendor.ratio.high,
                                    vendor.library, format_time(vendor.us), vendor.config.text()));
  const Trial* const trial = find_trial(result.trials, vendor.config, result.problem.key());
  if (trial != nullptr) {
    const auto algorithm = algorithm_text(trial->kernels);
    if (!algorithm.empty()) text += row("", algorithm);
  }
  if (vendor.stored) {
    text += row("", "stored beside the winner, for runtimes that allow the vendor");
  } else if (vendor.ratio.high < 1) {
    text += row("", "with --allow vendor, look-ups can use it");
  }
  return text;
}

std::string space_rows(const SessionResult& result) {
  std::string text = row("space", fmt::format("{} valid of {:.3g} combinations", result.space_count,
                                              static_cast<double>(result.cartesian_size)));
  for (const Rejection& one : result.rejections) {
    text += row(&one == result.rejections.data() ? "rejected by" : "",
                fmt::format("{:>4} {}: {}", format_share(one.share), one.constraint, one.reason));
  }
  return text;
}

/// Returns which winner the database has after an interrupted session.
std::string kept_winner(const SessionResult& result) {
  return result.known_winners.empty()
             ? "no winner was stored"
             : "the winner of an earlier run stays: " + result.known_winners.front().text();
}

std::string time_row(const TimeSpent& time) {
  const double wall = std::max(time.wall, 1e-9);
  return row("wall time",
             fmt::format("{:.1f} s: compiling {}, verifying {}, running {}, {}everything else {}",
                         time.wall, format_share(time.compile / wall),
                         format_share(time.verify / wall), format_share(time.measure / wall),
                         time.waiting >= 0.01 * wall
                             ? "waiting for compilers " + format_share(time.waiting / wall) + ", "
                             : "",
                         format_share(std::max(0.0, time.other()) / wall))) +
         (time.peaks >= 0.05
              ? row("peaks",
                    fmt::format("measured in {:.1f} s of it, once for this driver", time.peaks))
              : "");
}

}  // namespace

std::string kernels_text(const std::vector<KernelFigures>& kernels) {
  std::string text;
  for (const auto& [name, statistics] : kernels) {
    std::string figures;
    const auto add = [&](std::uint32_t value, const std::string& what) {
      if (value > 0) figures += (figures.empty() ? "" : ", ") + what;
    };
    const KernelStatistics& s = statistics;
    add(s.registers, fmt::format("{} registers", s.registers));
    add(s.accumulator_registers, fmt::format("{} accumulators", s.accumulator_registers));
    add(s.scalar_registers, fmt::format("{} scalar registers", s.scalar_registers));
    add(s.shared_memory_bytes, format_bytes(s.shared_memory_bytes) + " shared memory");
    add(s.spilled_registers, fmt::format("{} registers spilled", s.spilled_registers));
    add(s.scratch_bytes, format_bytes(s.scratch_bytes) + " scratch memory per thread");
    add(s.matrix_instructions, format_count(s.matrix_instructions, "matrix instruction"));
    add(s.code_bytes, format_bytes(s.code_bytes) + " code");
    if (!figures.empty()) {
      text += (text.empty() ? "" : "; ") + name + ": " + figures;
    } else if (name.ends_with(')')) {  // the algorithm of a vendor's library
      text += (text.empty() ? "" : "; ") + name;
    }
  }
  return text;
}

std::string speedup_text(const Winner& winner) {
  if (winner.is_default) return "no candidate is significantly faster than the default";
  if (!has_ratio(winner)) return "ratio to the default not known";
  return fmt::format("{:.3f}× {}, median of paired rounds ({:.0f} % interval {:.3f} to {:.3f})",
                     winner.speedup, winner.speedup < 1 ? "as fast" : "faster",
                     100 * winner.confidence, winner.speedup_low, winner.speedup_high);
}

std::string comparison_row(const std::string& faster, const std::string& slower,
                           const Comparison& comparison, std::size_t indent) {
  const auto figures = fmt::format(
      "{:.3f}×  ({:.0f} % interval {:.3f} to {:.3f}, {})", comparison.ratio,
      100 * comparison.confidence, comparison.low, comparison.high,
      comparison.measured() ? format_count(comparison.faster_us.size(), "alternating run")
                            : "from the sessions' own rounds");
  return comparison.sure()
             ? format_row("faster", fmt::format("{} than {}: {}", faster, slower, figures), indent)
             : format_row("inconclusive", fmt::format("{} and {}: {}", faster, slower, figures),
                          indent);
}

/// Returns the device of an entrant, and the packing of its problem's weights where problems differ
/// by it.
std::string entrant_name(const std::vector<const SessionResult*>& sessions,
                         const SessionResult& entrant) {
  const auto differs = [&](const auto& of) {
    return std::any_of(sessions.begin(), sessions.end(),
                       [&](const SessionResult* other) { return !(of(*other) == of(entrant)); });
  };
  const std::string packing = "packing " + entrant.problem.attribute("packing", "rows");
  if (!differs([](const SessionResult& one) { return one.problem; })) return entrant.device.id();
  const bool devices = differs([](const SessionResult& one) { return one.device.id(); });
  return devices ? fmt::format("{} on {}", packing, entrant.device.id()) : packing;
}

std::string contest_text(const std::vector<const SessionResult*>& sessions,
                         const ContestResult& contest) {
  const SessionResult& best = *sessions[contest.fastest];
  std::string text = sessions.front()->problem.key() + "\n";
  for (const auto& [entrant, comparison] : contest.others) {
    const SessionResult& other = *sessions[entrant];
    text +=
        comparison_row(entrant_name(sessions, best), entrant_name(sessions, other), comparison, 2);
    const bool apis = best.device.id() != other.device.id();
    if (apis && same_card(best.device, other.device))
      text += row("", "both are one card: " + best.device.name);
  }
  for (const auto& note : contest.notes) text += row("note", note);
  return text;
}

std::string report_text(const SessionResult& result, const std::string& database) {
  std::string text = result.problem.key() + "\n" + row("device", device_text(result.device));
  if (result.interrupted && result.trials.empty()) {
    return text + row("interrupted", "before the first trial; " + kept_winner(result));
  }
  if (result.winner) {
    text += winner_rows(result);
  } else if (const Trial* best =
                 best_trial(result.trials,
                            (result.stand_in ? result.stand_in->problem : result.problem).key())) {
    text += row("best so far", fmt::format("{}  {} (not certified)", best->config.shown(),
                                           format_time(best->measurement)) +
                                   (result.stand_in ? " on the proxy problem" : ""));
  }
  if (result.energy_winner) text += energy_rows(*result.energy_winner);
  if (result.vendor) text += vendor_rows(result);
  if (result.naive) text += naive_row(result);
  text += trials_rows(result);
  text += throttling_row(result);
  text += space_rows(result);
  for (const auto& note : result.notes) text += row("note", note);
  text += time_row(result.time);
  if (!result.not_stored.empty()) {
    text += row("NOT STORED", result.not_stored);
  } else if (result.interrupted) {
    text += row("interrupted",
                fmt::format("{} kept in {}; {}", format_count(result.trials.size(), "trial"),
                            database, kept_winner(result)));
  } else if (result.pinned) {
    text += row("pinned", fmt::format("the answer in {} stays {}; greta-db unpin releases it",
                                      database, result.pinned->text()));
  } else if (result.finished_before) {
    text += row("stored in", database + ", before the run was resumed");
  } else if (result.keeps_earlier) {
    text += row("kept", fmt::format("the earlier result with its certificate, in {}", database));
  } else if (result.winner) {
    text += row("stored in", database);
  } else {
    text +=
        row("no winner", fmt::format("no configuration passed; the trials are in {}", database));
  }
  return text;
}

}  // namespace greta::tuner
