#version 460
// out = silu(gate) * up. PACKED: both are in one tensor, gate in the first half of each row.

#if !defined(PACKED)
#error "PACKED must be defined"
#endif

#define INPUTS 2
#define GAPS PACKED

#include "common/elementwise.glsl"
#include "common/activation.glsl"

float compute(float x[INPUTS]) { return silu(x[0]) * x[1]; }

#include "common/map.glsl"
