// Operands that are copied so that each line starts at a multiple of 16 bytes.
#pragma once

#include "gemm/operands.hip"

// Elements from one line to the next.
GRETA_DEVICE u32 aligned_stride(u32 length) {
  constexpr u32 count = 16 / sizeof(In);
  return (length + count - 1) / count * count;
}

// Of an operand, up to where the next one starts.
GRETA_DEVICE u64 aligned_bytes(u32 lines, u32 length) {
  return (u64(lines) * aligned_stride(length) * sizeof(In) + 255) / 256 * 256;
}
