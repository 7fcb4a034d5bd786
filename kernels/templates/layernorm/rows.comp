#version 460
// out = (in - mean) / sqrt(variance + epsilon) * weight + bias of each row.
#include "common/moments.glsl"
