#version 460
// out = in / sqrt(mean of in^2 + epsilon) * weight of each row.
#define RESIDUAL 0

#include "common/rms.glsl"
