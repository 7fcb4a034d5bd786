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
  const uint length = section_length(cols);
  for (uint i = thread_index(); i < list_length; i += THREADS) {
    const uint far = list_far[i], section = list_column[i] / length;
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

int draw_from(Border border) {
  const uint tie_weight = weight_of(border.far);
  uint64_t total = 0;
  uint tied = 0;
  for (uint i = 0; i < SECTIONS; ++i) {
    total += joined(part_low[i], part_high[i]);
    tied += part_ties[i];
  }
  const uint kept = min(tied, border.ties);
  Left left = Left(multiply_high(settings.random, total + uint64_t(kept) * tie_weight), kept);
  PASS(part, section, 0, SECTIONS)
  barrier();

  const uint length = section_length(cols), each = (length + THREADS - 1) / THREADS;
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

// `measured`: the bins have the histogram of the row.
int token_of(bool measured) {
  if (!any) return -1;
  Border border = Border(greedy ? 0 : beyond, greedy ? 1 : 0, no_mass);
  bool tied = false;  // the sections have the border's ties
  // One call of find(), as functions are inlined.
  for (uint turn = 0; turn < 2; ++turn) {
    const bool by_count = turn == 0;
    if (!filtered() || !(by_count ? settings.top_k > 0 : settings.top_p < 1.0)) continue;
    border = find(by_count ? settings.top_k : no_count, border.mass, measured);
    measured = false;
    tied = border.far < beyond;
  }
  if (listed) {
    add_list(border);
  } else if (!tied) {
    pass_row(Range(border.far, 1), 0, TYING);
  }
  return draw_from(border);
}
