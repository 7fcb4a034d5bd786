// Products of lines of a matrix with a vector, bound by reading the matrix once: `lanes` threads share
// a line. With QUANTIZED, matrices are in a format of quantized_gemm, with SCALED in one of scaled_gemm.
// The file that includes this has LANES, the threads that share an element in the end, LINES, STEP and
//   void load_vector(uint64_t vector, uint at, out float x[STEP])   neighbours from `at` on

#if !defined(THREADS) || !defined(UNROLL) || !defined(QUANTIZED) || !defined(SCALED) || \
    !defined(LINES)
#error "THREADS, UNROLL, QUANTIZED, SCALED and LINES must be defined"
#endif
#if UNROLL < 1
#error "UNROLL is at least 1"
#endif

#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require

#define REDUCED float
float merge(float x, float y) { return x + y; }
float across(float value, uint mask) { return subgroupShuffleXor(value, mask); }
#include "common/reduce.glsl"

layout(local_size_x = THREADS) in;

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Id { int v; };

float sum[LINES];
uint line[LINES];  // numbers of lines

#if QUANTIZED
#include "experts/quantized_columns.glsl"
#elif SCALED
#include "experts/scaled_columns.glsl"
#else
#include "experts/dense_columns.glsl"
#endif

// Whether an expert takes part in a token's sum: ids of no expert and weights of 0 add nothing, and
// nothing is read for them. A NaN is no 0.
bool takes_part(uint expert, uint experts, float weight) { return expert < experts && !(weight == 0.0); }
