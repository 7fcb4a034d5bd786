// The draw of a row's token: sections of the row sum what is kept, and the draw walks them in the
// order of columns.
#pragma once

#include "sample/search.hip"

// Of numbers with two words, and counts beside them: the sums of runs.
GRETA_DEVICE void add_part_runs(const Shared& s) {
  for (u32 run = thread_index(); run < part_runs; run += THREADS) {
    u64 sum = 0;
    u32 counts = 0;
    for (u32 i = run * parts_of_run; i < (run + 1) * parts_of_run; ++i) {
      sum += u64(s.part_high[i]) << 32 | s.part_low[i];
      counts += s.part_ties[i];
    }
    s.run_low[run] = u32(sum);
    s.run_high[run] = u32(sum >> 32);
    s.run_ties[run] = counts;
  }
  block_barrier();
}

struct Draw : Search {
  // Adds what is kept of the list to the sections.
  GRETA_DEVICE void add_list(Border border) const {
    const u32 length = section_length(cols);
    for (u32 i = thread_index(); i < *s.listed; i += THREADS) {
      const u32 far = s.list_far[i], section = s.list_column[i] / length;
      if (far < border.far) add_mass(s.part_low + section, s.part_high + section, weight_at(far));
      if (far == border.far) add_shared(s.part_ties + section, 1);
    }
    block_barrier();
  }

  // What is left of a draw in the order of columns.
  struct Left {
    u64 mass;
    u32 ties;
  };

  // Passes by parts with their masses and numbers of ties, from `first` to `end`; returns the one
  // in which the draw ends.
  GRETA_DEVICE static u32 pass_by(const u32* low, const u32* high, const u32* ties, u32 first,
                                  u32 end, u32 tie_weight, Left& left) {
    u32 i = first;
    for (; i < end - 1; ++i) {
      const u32 kept = smaller(ties[i], left.ties);
      const u64 mass = (u64(high[i]) << 32 | low[i]) + u64(kept) * tie_weight;
      if (left.mass < mass) break;
      left.mass -= mass;
      left.ties -= kept;
    }
    return i;
  }

  // `measured`: the bins have the histogram of the row.
  GRETA_DEVICE int token(bool measured) {
    if (!any) return -1;
    Border border = {greedy ? 0 : beyond, greedy ? 1U : 0U, no_mass};
    bool tied = false;  // the sections have the border's ties
    GRETA_NO_UNROLL
    for (u32 turn = 0; turn < 2; ++turn) {
      const bool by_count = turn == 0;
      if (!filtered() || !(by_count ? settings.top_k > 0 : settings.top_p < 1)) continue;
      border = find(by_count ? settings.top_k : no_count, border.mass, measured);
      measured = false;
      tied = border.far < beyond;
    }
    if (listed) {
      add_list(border);
    } else if (!tied) {
      pass({border.far, 1}, 0, tying);
    }
    return draw_from(border);
  }

  GRETA_DEVICE int draw_from(Border border) const {
    const u32 tie_weight = weight(border.far);
    u64 total = 0;
    u32 tied = 0;
    for (u32 i = 0; i < sections; ++i) {
      total += u64(s.part_high[i]) << 32 | s.part_low[i];
      tied += s.part_ties[i];
    }
    const u32 kept = smaller(tied, border.ties);
    Left left = {multiply_high(settings.random, total + u64(kept) * tie_weight), kept};
    const u32 section =
        pass_by(s.part_low, s.part_high, s.part_ties, 0, sections, tie_weight, left);
    block_barrier();

    const u32 length = section_length(cols), each = (length + THREADS - 1) / THREADS;
    const u32 first = smaller(section * length, cols), end = smaller(first + length, cols);
    u64 mass = 0;
    u32 ties = 0;
    const u32 from = first + thread_index() * each;
    for (u32 column = from; column < from + each && column < end; ++column) {
      const u32 far = distance(to_float(x[column]));
      if (far < border.far) mass += weight(far);
      if (far == border.far) ++ties;
    }
    s.part_low[thread_index()] = u32(mass);
    s.part_high[thread_index()] = u32(mass >> 32);
    s.part_ties[thread_index()] = ties;
    block_barrier();
    add_part_runs(s);
    const u32 run = pass_by(s.run_low, s.run_high, s.run_ties, 0, part_runs, tie_weight, left);
    const u32 part = pass_by(s.part_low, s.part_high, s.part_ties, run * parts_of_run,
                             (run + 1) * parts_of_run, tie_weight, left);
    u32 column = first + part * each;
    for (; column < end - 1; ++column) {
      const u32 far = distance(to_float(x[column]));
      const bool tie = far == border.far && left.ties > 0;
      const u32 own = far < border.far || tie ? weight(far) : 0;
      if (left.mass < own) break;
      left.mass -= own;
      if (tie) --left.ties;
    }
    return int(column);
  }
};
