#version 460
// x times the share of a normal distribution below x; EXACT 0: by its approximation with tanh.

#if !defined(EXACT)
#error "EXACT must be defined"
#endif

#define INPUTS 1
#define GAP 0

#include "common/elementwise.glsl"
#include "common/activation.glsl"

float compute(float x[INPUTS]) { return EXACT != 0 ? gelu_erf(x[0]) : gelu_tanh(x[0]); }

#include "common/map.glsl"
