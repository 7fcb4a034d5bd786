// What becomes of the sums of quantised products.
//
// EPILOGUE: 0 nothing is added; 1 `added` is a bias [n]; 2 it is a residual [m, n]; 3 C = silu(gate) up,
// where the first n rows of B are gates and the last n ups; 4 gelu in its tanh form in place of silu. With
// gates the product has 2 n columns, of which gates and ups alternate, so that those of one column of C are
// neighbours.
#pragma once

#if !defined(EPILOGUE)
#error "EPILOGUE must be defined"
#endif

#include "common/in_out.hip"

#define GATED (EPILOGUE >= 3)
#if GATED
#include "common/activation.hip"
#endif

GRETA_DEVICE u32 product_columns(u32 n) { return GATED ? 2 * n : n; }

// The row of B that a column of the product is multiplied by.
GRETA_DEVICE u32 line_of_column(u32 col, u32 n) { return GATED ? col / 2 + col % 2 * n : col; }

// What is added to an element of C.
GRETA_DEVICE float added_to(const Out* added, u32 row, u32 col, u32 n) {
#if EPILOGUE == 1
  return to_float(added[col]);
#elif EPILOGUE == 2
  return to_float(added[u64(row) * n + col]);
#else
  return 0.0f;
#endif
}

// An element of C.
GRETA_DEVICE void put(Out* c, const Out* added, u32 row, u32 col, u32 n, float sum) {
  c[u64(row) * n + col] = narrow<Out>(EPILOGUE == 0 ? sum : sum + added_to(added, row, col, n));
}
#if GATED
GRETA_DEVICE float gated_value(float gate, float up) {
  return (EPILOGUE == 3 ? silu(gate) : gelu_tanh(gate)) * up;
}
GRETA_DEVICE void put_gated(Out* c, u32 row, u32 col, u32 n, float gate, float up) {
  c[u64(row) * n + col] = narrow<Out>(gated_value(gate, up));
}
#endif
