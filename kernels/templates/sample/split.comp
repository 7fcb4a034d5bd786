#version 460
// Few rows: SPLIT workgroups take a part of `part` columns of each, whose largest logits are known.
// Each makes the histogram of its part, and the last one to arrive adds them and draws.

#if !defined(SPLIT) || SPLIT < 2 || SPLIT > THREADS
#error "SPLIT must be defined, at least 2, and at most THREADS"
#endif

#include "sample/draw.glsl"
#include "common/arrival.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer Written { uint v; };

layout(push_constant, std430) uniform Arguments {
  uint64_t x, settings, seeds, token, most, histograms, counters;
  uint rows, cols, part;
} args;

void main() {
  const uint row = workgroup();
  if (row >= args.rows) return;
  const uint first = min(gl_WorkGroupID.z * args.part, args.cols);
  const uint end = min(first + args.part, args.cols);
  int value = below_all;
  for (uint i = 0; i < SPLIT; ++i)
    value = max(value, I32(args.most + (uint64_t(row) * SPLIT + i) * 4).v);
  begin(args.x + row_start(row, args.cols) * IN_BYTES, args.cols,
        settings_of(args.settings, args.seeds, row), value);
  const uint64_t mine = args.histograms + uint64_t(row) * SPLIT * (4 * BINS);
  if (filtered()) {
    measure(first, end);
    const uint64_t own = mine + gl_WorkGroupID.z * (4 * BINS);
    for (uint i = thread_index(); i < BINS; i += THREADS) Written(own + i * 4).v = bins_count[i];
  }
  if (!last_to_arrive(args.counters + uint64_t(row) * 4, SPLIT)) return;
  if (filtered()) {
    for (uint i = thread_index(); i < BINS; i += THREADS) {
      uint count = 0;
      for (uint j = 0; j < SPLIT; ++j) count += Written(mine + (j * BINS + i) * 4).v;
      bins_count[i] = count;
    }
    barrier();
  }
  const int drawn = token_of(true);
  if (gl_LocalInvocationIndex == 0) I32(args.token + uint64_t(row) * 4).v = drawn;
}
