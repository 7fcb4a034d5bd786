// The draw of a row's token: sections of the row sum what is kept, and the draw walks them in the order
// of columns.
#pragma once

#include "sample/search.glsl"

// The sums of runs of parts.
void add_part_runs() {
  for (uint run = thread_index(); run < PART_RUNS; run += THREADS) {
    uint64_t sum = 0;
    uint counts = 0;
    for (uint i = run * PARTS_OF_RUN; i < (run + 1) * PARTS_OF_RUN; ++i) {
      sum += joined(part_low[i], part_high[i]);
      counts += part_ties[i];
    }
    run_low[run] = uint(sum);
    run_high[run] = uint(sum >> 32);
    run_ties[run] = counts;
  }
  barrier();
}

// What is left of a draw in the order of columns.
struct Left {
  uint64_t mass;
  uint ties;
};

// Adds what is kept of the list to the sections.
void add_list(Border border) {
  for (uint i = thread_index(); i < list_length; i += THREADS) {
    const uint far = list_far[i], section = list_column[i] / section_columns;
    if (far < border.far) ADD_MASS(part_low, part_high, section, weight_of(far))
    if (far == border.far) atomicAdd(part_ties[section], 1);
  }
  barrier();
}

// Whether the draw ends in a part with this mass and number of ties; else it is passed by.
bool ends_in(uint64_t mass, uint ties, uint tie_weight, inout Left left) {
  const uint kept = min(ties, left.ties);
  const uint64_t all = mass + uint64_t(kept) * tie_weight;
  if (left.mass < all) return true;
  left.mass -= all;
  left.ties -= kept;
  return false;
}

#define PASS(NAME, i, first, end)                                                      \
  uint i = first;                                                                      \
  while (i < (end) - 1 &&                                                              \
         !ends_in(joined(NAME##_low[i], NAME##_high[i]), NAME##_ties[i], tie_weight, left)) ++i;

int draw_from(Border border, uint64_t random) {
  const uint tie_weight = weight_of(border.far);
  const uint section_count = (cols + section_columns - 1) / section_columns;
  uint64_t total = 0;
  uint tied = 0;
  for (uint i = 0; i < section_count; ++i) {
    total += joined(part_low[i], part_high[i]);
    tied += part_ties[i];
  }
  const uint kept = min(tied, border.ties);
  Left left = Left(multiply_high(random, total + uint64_t(kept) * tie_weight), kept);
  PASS(part, section, 0, section_count)
  barrier();

  const uint length = section_columns, each = (length + THREADS - 1) / THREADS;
  const uint first = min(section * length, cols), end = min(first + length, cols);
  uint64_t mass = 0;
  uint ties = 0;
  const uint from = first + thread_index() * each;
  for (uint column = from; column < from + each && column < end; ++column) {
    const uint far = distance_of(load_in(x + uint64_t(column) * IN_BYTES));
    if (far < border.far) mass += weight_of(far);
    if (far == border.far) ++ties;
  }
  part_low[thread_index()] = uint(mass);
  part_high[thread_index()] = uint(mass >> 32);
  part_ties[thread_index()] = ties;
  barrier();
  add_part_runs();
  PASS(run, run, 0, PART_RUNS)
  PASS(part, part, run * PARTS_OF_RUN, (run + 1) * PARTS_OF_RUN)
  uint column = first + part * each;
  for (; column < end - 1; ++column) {
    const uint far = distance_of(load_in(x + uint64_t(column) * IN_BYTES));
    const bool tie = far == border.far;
    const uint own = far < border.far ? weight_of(far) : 0;
    if (ends_in(own, tie ? 1 : 0, tie_weight, left)) break;
  }
  return int(column);
}

// The goal of a draw that filters: the first of top-k and top-p.
Goal first_goal() { return Goal(settings.top_k > 0 ? settings.top_k : no_count, no_mass); }

// The step with which the first search begins if it knows nothing; a draw that does not filter has
// nothing else to do.
Step first_step() {
  if (filters()) return step_of(Range(0, beyond));
  return Step(Range(greedy ? 0 : beyond, 1), TYING, 0, 0);
}

// Where what is kept ends. Leaves its masses and ties in the sections. `known`: of the first search, or
// of the draw itself if it does not filter.
Border border_of_kept(uint known, Step step) {
  Border border = Border(greedy ? 0 : beyond, greedy ? 1 : 0, no_mass);
  bool tied = known == PASSED && !filters();  // the sections have the border's ties
  // One call of find(), as functions are inlined: for top-k, top-p, and the sections.
  for (uint turn = 0; turn < 3; ++turn) {
    if (turn == 2) {
      if (listed || tied) break;
      known = STEP_ONLY;
      step = Step(Range(border.far, 1), TYING, 0, 0);
    } else if (!filters() || !(turn == 0 ? settings.top_k > 0 : settings.top_p < 1.0)) {
      continue;
    }
    const Border found =
        find(Goal(turn == 0 ? settings.top_k : turn == 1 ? no_count : 0, border.mass), known, step);
    if (turn == 2) break;
    border = found;
    known = STEP_ONLY;
    step = first_step();
    tied = border.far < beyond;
  }
  if (listed) add_list(border);
  return border;
}

int token_of(uint known, Step step, uint64_t seeds, uint row) {
  if (!any) return -1;
  const Border border = border_of_kept(known, step);
  return draw_from(border, random_of(seeds, row));
}
