// NUMBER_OF: the name of a function that returns the number of the lowest byte, or of its lower half, in
// the format NUMBER_FORMAT. Each time that it is included, another function.
#if !defined(NUMBER_OF) || !defined(NUMBER_FORMAT)
#error "NUMBER_OF and NUMBER_FORMAT must be defined"
#endif

Number NUMBER_OF(uint byte) {
#if NUMBER_FORMAT == 4
  return bitfieldExtract(int(byte), 0, 8);
#elif NUMBER_FORMAT == 5
  const uint size = byte & 7u;
  const uint bits = size < 2u ? floatBitsToUint(0.5 * float(size)) : (size << 22) + (126u << 23);
  return uintBitsToFloat((byte & 8u) << 28 | bits);
#else
  const uint mantissa = NUMBER_FORMAT % 2 == 0 ? 3 : 2;
  const uint bias = (NUMBER_FORMAT % 2 == 0 ? 7 : 15) + NUMBER_FORMAT / 2;
  const uint magnitude = byte & 0x7fu, sign = (byte & 0x80u) << 24;
  const uint normal = (magnitude << (23 - mantissa)) + ((127u - bias) << 23);
  // 2^(1 - bias - mantissa), the smallest number
  const float least = uintBitsToFloat((128u - bias - mantissa) << 23);
  uint bits = magnitude < 1u << mantissa ? floatBitsToUint(float(magnitude) * least) : normal;
#if NUMBER_FORMAT == 0
  if (magnitude == 0x7fu) bits = 0x7fc00000u;
#elif NUMBER_FORMAT == 1
  if (magnitude >= 0x7cu) bits = magnitude == 0x7cu ? 0x7f800000u : 0x7fc00000u;
#else
  if ((byte & 0xffu) == 0x80u) bits = 0x7fc00000u;
#endif
  return uintBitsToFloat(sign | bits);
#endif
}
#undef NUMBER_OF
#undef NUMBER_FORMAT
