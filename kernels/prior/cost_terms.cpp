#include "kernels/prior/cost_terms.hpp"

#include <algorithm>
#include <cmath>

namespace greta::kernels {
namespace {

constexpr double most_workgroups_of_unit = 32;
constexpr double cycles_of_barrier = 30;
constexpr double cycles_of_start = 300;

double registers_of_thread(const LaunchWork& work, const UnitRates& rates) {
  return std::min(rates.thread_registers, rates.registers / work.threads);
}

/// The workgroups of the busiest compute unit.
struct Load {
  double resident = 1;    ///< that fit at once
  double workgroups = 0;  ///< in all
};

Load load_of(const LaunchWork& work, const UnitRates& rates) {
  Load load;
  const double registers = std::clamp(work.registers, 16.0, registers_of_thread(work, rates));
  const double fit =
      std::min({rates.threads / work.threads, rates.registers / (registers * work.threads),
                rates.shared_memory / std::max(work.shared_bytes, 1.0), most_workgroups_of_unit});
  load.resident = std::max(1.0, std::floor(fit));
  const double units = rates.units * work.usable_units;
  const double whole = std::floor(work.workgroups / (units * load.resident));
  const double rest = work.workgroups - whole * units * load.resident;
  const double last = std::ceil(rest / units);
  load.workgroups = whole * load.resident + last;
  return load;
}

}  // namespace

CostTerms cost_terms(const KernelWork& launches, const UnitRates& rates) {
  CostTerms terms{};
  const auto add = [&terms](Term term, double cycles) {
    terms[static_cast<std::size_t>(term)] += cycles;
  };
  double launch = rates.launch;
  for (const LaunchWork& work : launches) {
    const Load load = load_of(work, rates);
    const double n = load.workgroups + load.resident * work.imbalance;
    const double at_once =
        std::min(load.workgroups, load.resident);  // workgroups that share the unit
    // Fewer waves than a unit has schedulers leave some of it idle.
    const double busy = std::min(1.0, at_once * work.threads / rates.lanes);
    if (work.matrix_flops > 0) {
      add(work.warpgroups ? Term::warpgroups : Term::matrix,
          n * work.matrix_flops / std::max(rates.matrix_flops, 1.0) / busy);
    }
    add(Term::vector, n * work.vector_flops / rates.vector_flops / busy);
    add(Term::shared, n * work.shared_traffic * work.conflicts / rates.shared_bytes);
    add(Term::cache, n * (work.read_bytes + work.written_bytes) / rates.cache_bytes);
    add(Term::memory, work.unique_bytes / rates.units / rates.memory_bytes);
    add(Term::loads, n * work.loads / 32 / busy);
    const double rounds = work.ahead_bytes > 0 ? work.read_bytes / work.ahead_bytes : work.steps;
    add(work.overlapped ? Term::prefetched : Term::waiting, n / at_once * rounds * rates.latency);
    add(Term::barriers, n / at_once * work.barriers * cycles_of_barrier);
    add(Term::starts, n / at_once * cycles_of_start);
    const double lacking = std::max(0.0, work.registers - registers_of_thread(work, rates));
    constexpr double written_and_read = 8;  // bytes of a register
    add(Term::spills,
        n * work.threads * lacking * written_and_read * work.steps / rates.cache_bytes);
    add(Term::tails, n / at_once * work.tail_cycles);
    add(Term::launches, launch);
    launch = rates.launch * rates.next_launch;
  }
  return terms;
}

}  // namespace greta::kernels
