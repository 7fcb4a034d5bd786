#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float v[]; };

layout(push_constant) uniform Arguments {
  Floats a, b, c;
  int m, n, k;
};

#if ENTRY_IS_tiles

shared float a_tile[TILE][TILE], b_tile[TILE][TILE];

void tiles() {
  const int x = int(gl_LocalInvocationID.x), y = int(gl_LocalInvocationID.y);
  const int row = int(gl_WorkGroupID.y) * TILE + y, col = int(gl_WorkGroupID.x) * TILE + x;
  float sum = 0;
  for (int k0 = 0; k0 < k; k0 += TILE) {
    a_tile[y][x] = row < m && k0 + x < k ? a.v[row * k + k0 + x] : 0;
    b_tile[y][x] = k0 + y < k && col < n ? b.v[(k0 + y) * n + col] : 0;
    barrier();
    for (int i = 0; i < TILE; ++i) sum += a_tile[y][i] * b_tile[i][x];
    barrier();
  }
  if (row < m && col < n) c.v[row * n + col] = sum;
}

#else

void naive() {
  const int row = int(gl_WorkGroupID.y), col = int(gl_WorkGroupID.x);
  double sum = 0;
  for (int i = 0; i < k; ++i) sum += double(a.v[row * k + i]) * b.v[i * n + col];
  c.v[row * n + col] = float(sum);
}

#endif
