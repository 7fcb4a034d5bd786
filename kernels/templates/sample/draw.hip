// The draw of a row's token: sections of the row sum what is kept, and the draw walks them in the
// order of columns.
#pragma once

#include "sample/search.hip"

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

  // The mass of some tokens, of which `ties` of those at the border are kept.
  GRETA_DEVICE static u64 kept_mass(Mass sums, u32 ties, u32 tie_weight) {
    return sums.least + u64(smaller(sums.count, ties)) * tie_weight;
  }

  // Leaves the thread in whose part a draw ends, of which `left` is left, and what is left there.
  GRETA_DEVICE void find_part(const Scan<Mass>& scan, u64 left, u32 ties, u32 tie_weight) const {
    const auto ends = [&](Mass sums) { return left < kept_mass(sums, ties, tie_weight); };
    Mass before;
    if (!reaches(scan, ends, before)) return;
    *s.found = {thread_index(), ties - smaller(ties, before.count),
                left - kept_mass(before, ties, tie_weight)};
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
    const u32 tie_weight = weight(border.far), thread = thread_index();
    Mass own = {0, 0};
    if (thread < sections) {
      own = {s.part_ties[thread], joined(s.part_low[thread], s.part_high[thread])};
    }
    const Scan<Mass> of_sections = scan_threads(own, s.masses);
    const u32 kept = smaller(of_sections.all.count, border.ties);
    find_part(of_sections,
              multiply_high(settings.random, kept_mass(of_sections.all, kept, tie_weight)), kept,
              tie_weight);
    block_barrier();

    const Found section = *s.found;
    const u32 length = section_length(cols), each = (length + THREADS - 1) / THREADS;
    const u32 end = smaller((section.index + 1) * length, cols);
    const u32 from = smaller(section.index * length + thread * each, end);
    const u32 to = smaller(from + each, end);
    own = {0, 0};
    for (u32 column = from; column < to; ++column) {
      const u32 far = distance(to_float(x[column]));
      if (far < border.far) own.least += weight(far);
      if (far == border.far) ++own.count;
    }
    const Scan<Mass> of_parts = scan_threads(own, s.masses);
    find_part(of_parts, section.mass, section.count, tie_weight);
    block_barrier();

    Found left = *s.found;
    u32 column = smaller(section.index * length + left.index * each, end);
    const u32 last = smaller(column + each, end) - 1;
    for (; column < last; ++column) {
      const u32 far = distance(to_float(x[column]));
      const bool tie = far == border.far && left.count > 0;
      const u32 mass = far < border.far || tie ? weight(far) : 0;
      if (left.mass < mass) break;
      left.mass -= mass;
      if (tie) --left.count;
    }
    return int(column);
  }
};
