// Workgroups that share a piece of work in one launch: the last of them to arrive finishes it.
#pragma once

layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer Counter { uint v; };

shared uint arrived_before;

// Counts this workgroup in; true for the last of `groups`, which then sees what the others wrote to
// coherent memory. The barriers order what the workgroup wrote with its first thread, whose own
// fences order that thread's count between them and what it reads of the others'. The counter is 0
// before the first of them arrives; the last one puts it back.
bool last_to_arrive(uint64_t counter, uint groups) {
  memoryBarrierBuffer();
  barrier();
  if (gl_LocalInvocationIndex == 0) {
    memoryBarrierBuffer();
    arrived_before = atomicAdd(Counter(counter).v, 1);
    memoryBarrierBuffer();
    if (arrived_before == groups - 1) Counter(counter).v = 0;
  }
  barrier();
  memoryBarrierBuffer();
  return arrived_before == groups - 1;
}
