#include "tuner/profile/figures.hpp"

#include <algorithm>

#include "tuner/profile/formulas.hpp"

namespace greta::tuner {

const std::vector<Figure>& figures() {
  using enum FigureUnit;
  static const std::vector<Figure> all{
      {"memory_read_bytes", "read from memory", bytes, "Bytes that came from the GPU's memory."},
      {"memory_write_bytes", "written to memory", bytes,
       "Bytes that went to the GPU's memory during the run; what stays in the last cache is not "
       "among them."},
      {"l2_bytes", "through L2", bytes, "Bytes that were looked up in the L2 cache."},
      {"l2_hit_share", "hits in L2", share, "Share of the look-ups that L2 had."},
      {"l2_share", "L2 busy", share, "Share of the peak rate of the L2 cache."},
      {"l2_to_l1_bytes", "from L2 to L1", bytes,
       "Bytes from L2 to the compute units, into L1 or shared memory."},
      {"l1_to_l2_bytes", "from L1 to L2", bytes, "Bytes from the compute units to L2."},
      {"l1_bytes", "through L1", bytes,
       "Bytes that loads and stores looked up in the L1 cache; bulk copies to shared memory are "
       "not among them."},
      {"l1_hit_share", "hits in L1", share, "Share of the look-ups that L1 had."},
      {"l1_share", "L1 data path busy", share,
       "Share of the peak rate of the path that L1 and shared memory have in common."},
      {"shared_bytes", "shared memory", bytes,
       "Capacity of shared memory that was taken: the width of its path for each access, with "
       "those that bank conflicts add."},
      {"shared_bytes_per_clock", "shared memory a clock", bytes_per_clock,
       "The same for each clock of one compute unit."},
      {"shared_peak_bytes_per_clock", "peak of it", bytes_per_clock,
       "The width of the path to shared memory."},
      {"shared_conflict_share", "bank conflicts", share,
       "Share of the accesses to shared memory that bank conflicts add."},
      {"matrix_share", "matrix units busy", share, "Share of the clocks of the matrix units."},
      {"fma_share", "FMA units busy", share, "Share of the clocks of the FMA units, or of VALU."},
      {"alu_share", "integer units busy", share,
       "Share of the clocks of the integer and logic units."},
      {"memory_unit_share", "load/store unit busy", share,
       "Share of the clocks of the units that execute loads and stores."},
      {"issue_share", "issue slots used", share,
       "Share of the clocks in which an instruction was issued."},
      {"instructions", "instructions", number, "Instructions of subgroups that were executed."},
      {"occupancy_share", "occupancy reached", share,
       "Resident subgroups, as a share of the most that a compute unit holds, while it had any."},
      {"balance_share", "balance", share,
       "Mean busy time of the compute units as a share of the longest."},
      {"counted_us", "counted time", number,
       "µs of the counted run, with the time around the launch; the measured time has none."},
  };
  return all;
}

const std::vector<StallReason>& stall_reasons() {
  static const std::vector<StallReason> all{
      {"long_scoreboard", "loads from memory, L2 or L1"},
      {"short_scoreboard", "shared memory or special functions"},
      {"barrier", "other warps at barriers"},
      {"membar", "memory fences"},
      {"mio_throttle", "the queue of shared-memory instructions"},
      {"lg_throttle", "the queue of load and store instructions"},
      {"tex_throttle", "the queue of texture instructions"},
      {"math_pipe_throttle", "a busy arithmetic unit"},
      {"gmma", "warpgroup matrix operations"},
      {"wait", "the fixed latency of the instruction before"},
      {"dispatch_stall", "the dispatcher"},
      {"no_instruction", "instructions to be fetched"},
      {"branch_resolving", "branches"},
      {"imc_miss", "the constant cache"},
      {"drain", "stores at the end"},
      {"sleeping", "a sleep"},
      {"misc", "other reasons"},
      {"waitcnt", "results of memory, caches or LDS (s_waitcnt)"},
      {"issue", "a turn to issue an instruction"},
      {"not_selected", "nothing: another warp was selected"},
      {"selected", "nothing: it issued"},
  };
  return all;
}

std::string stall_figure(std::string_view reason) {
  return "stall_" + std::string(reason) + "_share";
}

std::vector<Stall> stalls(const Counters& counters) {
  std::vector<Stall> found;
  for (const StallReason& reason : stall_reasons()) {
    if (reason.name == "not_selected" || reason.name == "selected") continue;
    const auto share = counters.figure(stall_figure(reason.name));
    if (share && *share > 0) found.push_back({&reason, *share});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Stall& a, const Stall& b) { return a.share > b.share; });
  return found;
}

std::vector<std::string> counter_names() {
  std::vector<std::string> names;
  const auto add_one = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  const auto add = [&](const std::vector<Term>& terms) {
    for (const Term& term : terms) add_one(term.counter);
  };
  for (const FormulaSet& set : formula_sets()) {
    for (const Formula& formula : set.formulas) {
      add(formula.above);
      add(formula.below);
      for (const std::string& number : formula.per) add_one(number);
    }
  }
  return names;
}

Counters figures_of(const CounterReading& reading, bool cold) {
  Counters counters;
  counters.source = reading.source.name;
  if (!reading.source.chip.empty()) counters.source += ", " + reading.source.chip;
  counters.passes = reading.passes;
  counters.cold = cold;
  for (const FormulaSet& set : formula_sets()) {
    if (!set.fits(reading.source)) continue;
    for (const Formula& formula : set.formulas) {
      if (counters.figures.count(formula.figure) > 0) continue;
      if (const auto value = formula.value(reading)) counters.figures[formula.figure] = *value;
    }
  }
  return counters;
}

Result<Counters> figures_of(const Result<CounterReading>& reading, bool cold) {
  if (!reading) return reading.failure();
  Counters counters = figures_of(*reading, cold);
  if (!counters.figures.empty()) return counters;
  return Failure{Status::unavailable, counters.source + ": no counter of it gives a figure", {}};
}

}  // namespace greta::tuner
