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

// An element of what is added.
float load_out(uint64_t at) {
#if OUT_F16
  return float(F16(at).v);
#elif OUT_BF16
  return float_from_bf16(uvec4(BF16(at).v)).x;
#else
  return F32(at).v;
#endif
}

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
