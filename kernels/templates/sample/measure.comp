#version 460
// Few rows: SPLIT workgroups each measure a part of `part` columns of a row and add its histogram to
// the row's. The last one to arrive finds the largest logit, and the range that a pass is to look at.

#if !defined(SPLIT) || SPLIT < 2 || SPLIT > THREADS
#error "SPLIT must be defined, at least 2, and at most THREADS"
#endif

#include "sample/draw.glsl"
#include "common/arrival.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer Written { uint v; };
layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer Largest { int v; };

// `bins`: BINS for each row, 0 before and after. `steps`: for each row its largest logit in its order,
// the range and what to do with it.
layout(push_constant, std430) uniform Arguments {
  uint64_t x, settings, bins, counters, most, steps;
  uint rows, cols, part;
} args;

void main() {
  const uint row = workgroup();
  if (row >= args.rows) return;
  const uint first = min(gl_WorkGroupID.z * args.part, args.cols);
  const uint end = min(first + args.part, args.cols);
  begin(args.x + row_start(row, args.cols) * IN_BYTES, args.cols,
        settings_of(args.settings, row));
  int value = measure(first, end);
  const uint64_t largest_of = args.most + uint64_t(row) * SPLIT * 4;
  if (gl_LocalInvocationIndex == 0) Largest(largest_of + gl_WorkGroupID.z * 4).v = value;
  const uint64_t bins = args.bins + uint64_t(row) * BINS * 4;
  for (uint i = thread_index(); filters() && i < BINS; i += THREADS) {
    if (bins_count[i] > 0) atomicAdd(Written(bins + i * 4).v, bins_count[i]);
  }
  if (!last_to_arrive(args.counters + uint64_t(row) * 4, SPLIT)) return;
  for (uint i = 0; i < SPLIT; ++i) value = max(value, Largest(largest_of + i * 4).v);
  for (uint i = thread_index(); filters() && i < BINS; i += THREADS) {
    bins_count[i] = Written(bins + i * 4).v;
    Written(bins + i * 4).v = 0;
  }
  barrier();
  relate_to(value);
  Step step = first_step();
  const Bins measured = first_bins();
  if (any && filters() && measured.slack > 0) {
    const Found found = narrow(step, measured, first_goal(), 0, false);
    if (found.index == BINS) step = first_step();
  }
  if (gl_LocalInvocationIndex == 0) {
    const uint64_t at = args.steps + uint64_t(row) * 16;
    Written(at).v = uint(value);
    Written(at + 4).v = step.range.from;
    Written(at + 8).v = step.range.span;
    Written(at + 12).v = step.what;
  }
}
