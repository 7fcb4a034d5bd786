// Operands that are copied so that each line starts at a multiple of 16 bytes.

// Elements from one line to the next, of 16-bit operands.
uint aligned_stride(uint length) { return (length + 7) / 8 * 8; }

// Bytes of a copy, up to where the next one starts.
uint64_t aligned_bytes(uint lines, uint length) {
  return (uint64_t(lines) * aligned_stride(length) * 2 + 255) / 256 * 256;
}
