#version 460
// out = silu(gate) * up. GAP: both are in one tensor, whose rows have so many elements of gate and then of
// up; 0: in two.

#define INPUTS 2

#include "common/elementwise.glsl"
#include "common/activation.glsl"

float compute(float x[INPUTS]) { return silu(x[0]) * x[1]; }

#include "common/map.glsl"
