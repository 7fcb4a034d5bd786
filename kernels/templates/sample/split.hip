// Few rows: SPLIT blocks take a part of `part` columns of each, of which it is known where the
// border lies. They sum what is nearer and list what lies there; the last one to arrive draws.

#if !defined(SPLIT) || SPLIT < 2 || SPLIT > THREADS
#error "SPLIT must be defined, at least 2, and at most THREADS"
#endif

#include "common/arrival.hip"
#include "sample/draw.hip"

// `steps`: of sample_measure. `lengths`: of each row's list, 0 before and after. `parts`: for each
// part the masses of what is nearer and of the rest, and a number. `lists`: distances and columns.
GRETA_KERNEL(THREADS)
sample_split(const In* __restrict__ x, const float* __restrict__ settings,
             const int* __restrict__ seeds, int* __restrict__ token, const u32* __restrict__ steps,
             u32* lengths, u32* counters, u32* parts, u32* lists, u32 rows, u32 cols, u32 part) {
  GRETA_SAMPLE_SHARED;
  GRETA_SHARED(u32, before, 1);
  const u32 row = block_index<THREADS>(), thread = thread_index();
  if (row >= rows) return;
  Draw draw{{{shared, x + row_start(row, cols), cols, settings_of(settings, row)}}};
  draw.prepare();
  steps += u64(row) * 4;
  draw.relate_to(float_from_bits(steps[0]));
  const Step step = {{steps[1], steps[2]}, Pass(steps[3])};
  // What is to be counted is more than a list has: one block makes the passes.
  const bool share = draw.any && step.what != counting;
  parts += u64(row) * SPLIT * 5;
  lists += u64(row) * LIST * 2;
  if (share) {
    const u32 first = smaller(block_z() * part, cols), end = smaller(first + part, cols);
    const Sums own = reduce_threads<THREADS>(draw.gather(step, first, end), PlusSums{}, wave_sums);
    block_barrier();
    if (thread == 0) {
      const u32 words[5] = {u32(own.least), u32(own.least >> 32), u32(own.most),
                            u32(own.most >> 32), own.count};
      for (u32 i = 0; i < 5; ++i) parts[block_z() * 5 + i] = words[i];
    }
    if (step.what == listing) {
      if (thread == 0) *before = atomic_add(lengths + row, *listed);
      block_barrier();
      GRETA_NO_UNROLL
      for (u32 i = thread; i < smaller(*listed, LIST) && *before + i < LIST; i += THREADS) {
        lists[(*before + i) * 2] = list_far[i];
        lists[(*before + i) * 2 + 1] = list_column[i];
      }
      block_barrier();
    }
  }
  if (!last_to_arrive(counters + row, SPLIT, before)) return;
  if (share) {
    Sums own = {0, 0, 0};
    if (thread < SPLIT) {
      const u32* const of_part = parts + thread * 5;
      own = {of_part[4], joined(of_part[0], of_part[1]), joined(of_part[2], of_part[3])};
      part_low[thread] = of_part[0];
      part_high[thread] = of_part[1];
      part_ties[thread] = step.what == tying ? own.count : 0;
    }
    if (step.what == listing) {
      const u32 length = lengths[row];
      GRETA_NO_UNROLL
      for (u32 i = thread; i < smaller(length, LIST); i += THREADS) {
        list_far[i] = lists[i * 2];
        list_column[i] = lists[i * 2 + 1];
      }
      block_barrier();
      if (thread == 0) {
        *listed = length;
        lengths[row] = 0;
      }
    }
    draw.section_columns = part;
    draw.add_up(own);
  }
  const int drawn = draw.token(share ? passed : step_only, step, seeds, row);
  if (thread == 0) token[row] = drawn;
}
