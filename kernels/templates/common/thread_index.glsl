// The number of an invocation in its workgroup of THREADS. SUBGROUP is the size that subgroups must
// have, so that runs of threads are subgroups, or parts of one; 0: they may have any.
#pragma once

#if !defined(THREADS) || !defined(SUBGROUP)
#error "THREADS and SUBGROUP must be defined"
#endif

#if SUBGROUP > 0
#if THREADS % SUBGROUP != 0
#error "SUBGROUP divides THREADS"
#endif
uint thread_index() { return gl_SubgroupID * SUBGROUP + gl_SubgroupInvocationID; }
#else
uint thread_index() { return gl_LocalInvocationIndex; }
#endif
