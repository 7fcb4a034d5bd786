#version 460
// Few rows: SPLIT workgroups take a part of `part` columns of each, of which it is known where the
// border lies. They sum what is nearer and list what lies there; the last one to arrive draws.

#if !defined(SPLIT) || SPLIT < 2 || SPLIT > THREADS
#error "SPLIT must be defined, at least 2, and at most THREADS"
#endif

#include "sample/draw.glsl"
#include "common/arrival.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer Written { uint v; };

// `steps`: of sample_measure. `lengths`: of each row's list, 0 before and after. `parts`: for each part
// the masses of what is nearer and of all, and a number. `lists`: distances and columns.
layout(push_constant, std430) uniform Arguments {
  uint64_t x, settings, seeds, token, steps, lengths, counters, parts, lists;
  uint rows, cols, part;
} args;

shared uint list_start;

void gather_part(Step step, uint64_t sums, uint64_t length, uint64_t list) {
  const uint first = min(gl_WorkGroupID.z * args.part, args.cols);
  const uint end = min(first + args.part, args.cols);
  const Sums own = total_of(gather(step, first, end));
  if (gl_LocalInvocationIndex == 0) {
    const uint64_t at = sums + gl_WorkGroupID.z * 20;
    Written(at).v = uint(own.least);
    Written(at + 4).v = uint(own.least >> 32);
    Written(at + 8).v = uint(own.most);
    Written(at + 12).v = uint(own.most >> 32);
    Written(at + 16).v = own.count;
  }
  if (step.what != LISTING) return;
  if (gl_LocalInvocationIndex == 0) list_start = atomicAdd(Written(length).v, list_length);
  barrier();
  for (uint i = thread_index(); i < min(list_length, uint(LIST)) && list_start + i < LIST;
       i += THREADS) {
    Written(list + (list_start + i) * 8).v = list_far[i];
    Written(list + (list_start + i) * 8 + 4).v = list_column[i];
  }
}

void join_parts(Step step, uint64_t sums, uint64_t length, uint64_t list) {
  Sums own = Sums(0, 0, 0);
  const uint thread = thread_index();
  if (thread < SPLIT) {
    const uint64_t at = sums + thread * 20;
    part_low[thread] = Written(at).v;
    part_high[thread] = Written(at + 4).v;
    own = Sums(Written(at + 16).v, joined(part_low[thread], part_high[thread]),
               joined(Written(at + 8).v, Written(at + 12).v));
    part_ties[thread] = step.what == TYING ? own.count : 0;
  }
  if (step.what == LISTING) {
    const uint all = Written(length).v;
    for (uint i = thread; i < min(all, uint(LIST)); i += THREADS) {
      list_far[i] = Written(list + i * 8).v;
      list_column[i] = Written(list + i * 8 + 4).v;
    }
    barrier();
    if (gl_LocalInvocationIndex == 0) {
      list_length = all;
      Written(length).v = 0;
    }
  }
  section_columns = args.part;
  add_up(own);
}

void main() {
  const uint row = workgroup();
  if (row >= args.rows) return;
  begin(args.x + row_start(row, args.cols) * IN_BYTES, args.cols,
        settings_of(args.settings, row));
  const uint64_t step_at = args.steps + uint64_t(row) * 16;
  relate_to(I32(step_at).v);
  const Range range = Range(Written(step_at + 4).v, Written(step_at + 8).v);
  const Step step = Step(range, Written(step_at + 12).v, 0, 0);
  // What is to be counted is more than a list has: one workgroup makes the passes.
  const bool shared_pass = any && step.what != COUNTING;
  const uint64_t sums = args.parts + uint64_t(row) * SPLIT * 20;
  const uint64_t length = args.lengths + uint64_t(row) * 4;
  const uint64_t list = args.lists + uint64_t(row) * LIST * 8;
  if (shared_pass) gather_part(step, sums, length, list);
  if (!last_to_arrive(args.counters + uint64_t(row) * 4, SPLIT)) return;
  if (shared_pass) join_parts(step, sums, length, list);
  const int drawn = token_of(shared_pass ? PASSED : STEP_ONLY, step, args.seeds, row);
  if (gl_LocalInvocationIndex == 0) I32(args.token + uint64_t(row) * 4).v = drawn;
}
