#version 460
// sum = in + residual, and out = sum / sqrt(mean of sum^2 + epsilon) * weight of each row.
#define RESIDUAL 1

#include "common/rms.glsl"
