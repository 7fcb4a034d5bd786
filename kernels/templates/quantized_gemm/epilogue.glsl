// What becomes of the sums of quantised products.
//
// EPILOGUE: 0 nothing is added; 1 args.added is a bias [n]; 2 it is a residual [m, n]; 3 C = silu(gate)
// up, where the first n rows of B are gates and the last n ups; 4 gelu in its tanh form in place of silu.
// With gates the product has 2 n columns, of which gates and ups alternate, so that those of one column of C
// are neighbours.
#pragma once

#if !defined(EPILOGUE)
#error "EPILOGUE must be defined"
#endif

#define GATED (EPILOGUE >= 3)
#if GATED
#include "common/activation.glsl"
#endif
#include "common/load_out.glsl"

uint product_columns() { return GATED ? 2 * args.n : args.n; }

// The row of B that a column of the product is multiplied by.
uint line_of_column(uint col) { return GATED ? col / 2 + col % 2 * args.n : col; }

// An element of C, which is at `c`.
void put(uint64_t c, uint row, uint col, float sum) {
  const uint64_t place = uint64_t(row) * args.n + col;
#if EPILOGUE == 1
  sum += load_out(args.added + uint64_t(col) * OUT_BYTES);
#elif EPILOGUE == 2
  sum += load_out(args.added + place * OUT_BYTES);
#endif
  store_out(c + place * OUT_BYTES, sum);
}
#if GATED
void put_gated(uint64_t c, uint row, uint col, float gate, float up) {
  const float activated = EPILOGUE == 3 ? silu(gate) : gelu_tanh(gate);
  store_out(c + (uint64_t(row) * args.n + col) * OUT_BYTES, activated * up);
}
#endif

// Four neighbours of a row of the product; `col` is a multiple of 4 and may lie past the edge.
void put4(uint64_t c, uint row, uint col, vec4 sum) {
#if GATED
  if (col / 2 < args.n) put_gated(c, row, col / 2, sum.x, sum.y);
  if (col / 2 + 1 < args.n) put_gated(c, row, col / 2 + 1, sum.z, sum.w);
#else
  if (args.n % 4 != 0) {
    [[unroll]] for (uint i = 0; i < 4; ++i) {
      if (col + i < args.n) put(c, row, col + i, sum[i]);
    }
  } else if (col < args.n) {
    const uint64_t place = uint64_t(row) * args.n + col;
#if EPILOGUE == 1
    sum += load_out4(args.added + uint64_t(col) * OUT_BYTES);
#elif EPILOGUE == 2
    sum += load_out4(args.added + place * OUT_BYTES);
#endif
    store_out4(c + place * OUT_BYTES, sum);
  }
#endif
}
