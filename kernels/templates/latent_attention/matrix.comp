#version 460
#include "latent_attention/rows_matrix.glsl"
