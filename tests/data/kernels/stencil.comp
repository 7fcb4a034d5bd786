#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_GOOGLE_include_directive : require
#include "grid.glsl"

// The arguments, in the order of the description: operands are addresses.
layout(push_constant) uniform Arguments {
  Grid x, y;
  int height, width;
  float rate;
};

float loaded(int row, int col) {
  return x.v[clamp(row, 0, height - 1) * width + clamp(col, 0, width - 1)];
}

// A step of the heat equation at a place whose value and four neighbours are known.
float stepped(float here, float left, float right, float above, float below) {
  return here + rate * (left + right + above + below - 4 * here);
}

#if ENTRY_IS_tiled

#if STAGED
shared float tile[TILE_Y + 2][TILE_X + 2];
#endif

void tiled() {
  const int col = int(gl_GlobalInvocationID.x), row = int(gl_GlobalInvocationID.y);
#if STAGED
  const int first_row = int(gl_WorkGroupID.y) * TILE_Y - 1;
  const int first_col = int(gl_WorkGroupID.x) * TILE_X - 1;
  for (int i = int(gl_LocalInvocationIndex); i < (TILE_Y + 2) * (TILE_X + 2); i += TILE_X * TILE_Y) {
    const int r = i / (TILE_X + 2), c = i % (TILE_X + 2);
    tile[r][c] = loaded(first_row + r, first_col + c);
  }
  barrier();
  const int r = row - first_row, c = col - first_col;
  const float next =
      stepped(tile[r][c], tile[r][c - 1], tile[r][c + 1], tile[r - 1][c], tile[r + 1][c]);
#else
  const float next = stepped(loaded(row, col), loaded(row, col - 1), loaded(row, col + 1),
                             loaded(row - 1, col), loaded(row + 1, col));
#endif
  if (row < height && col < width) y.v[row * width + col] = next;
}

#else

void naive() {
  const int col = int(gl_WorkGroupID.x), row = int(gl_WorkGroupID.y);
  y.v[row * width + col] = stepped(loaded(row, col), loaded(row, col - 1), loaded(row, col + 1),
                                   loaded(row - 1, col), loaded(row + 1, col));
}

#endif
