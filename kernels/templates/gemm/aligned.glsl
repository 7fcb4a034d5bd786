// Operands that are copied so that each line starts at a multiple of 16 bytes.

// Elements from one line to the next, of 16-bit operands.
uint stride_of(uint length, bool aligned) { return aligned ? (length + 7) / 8 * 8 : length; }

// Bytes of a copy, up to where the next one starts.
uint64_t aligned_bytes(uint lines, uint length) {
  return (uint64_t(lines) * stride_of(length, true) * 2 + 255) / 256 * 256;
}
