#version 460
// C = A + B.

#define INPUTS 2
#define GAP 0

#include "common/elementwise.glsl"

float compute(float x[INPUTS]) { return x[0] + x[1]; }

#include "common/map.glsl"
