// Numbers that a thread holds of a row: ITEMS vectors of VEC neighbours.
#pragma once

// Eight running sums, then these.
float sum_of(float x[ITEMS][VEC]) {
  float part[8] = float[8](0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
  [[unroll]] for (uint i = 0; i < ITEMS; ++i)
    [[unroll]] for (uint j = 0; j < VEC; ++j) part[(i * VEC + j) % 8] += x[i][j];
  return ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
}

float sum_of_squares(float x[ITEMS][VEC]) {
  [[unroll]] for (uint i = 0; i < ITEMS; ++i)
    [[unroll]] for (uint j = 0; j < VEC; ++j) x[i][j] *= x[i][j];
  return sum_of(x);
}
