// Typed views of device memory. Operands are 64-bit addresses, so that element counts beyond 2^31
// need no special care: bases are computed in 64 bits.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_control_flow_attributes : require

layout(buffer_reference, std430, buffer_reference_align = 4) buffer F32 { float v; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer F32x2 { vec2 v; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer F32x4 { vec4 v; };

#if IN_F16 || OUT_F16
layout(buffer_reference, std430, buffer_reference_align = 2) buffer F16 { float16_t v; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer F16x4 { f16vec4 v; };
#endif
#if IN_BF16 || OUT_BF16
// Bits of bf16, which are the upper half of those of f32.
layout(buffer_reference, std430, buffer_reference_align = 2) buffer BF16 { uint16_t v; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer BF16x4 { u16vec4 v; };
#endif
#if IN_F16 || IN_BF16 || OUT_F16 || OUT_BF16
// Vectors of 16-bit elements are loaded as words: 16 bytes in one instruction on every driver.
layout(buffer_reference, std430, buffer_reference_align = 2) buffer U16 { uint16_t v; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer U32 { uint v; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer U32x2 { uvec2 v; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer U32x4 { uvec4 v; };
#endif

vec4 float_from_bf16(uvec4 bits) { return uintBitsToFloat(bits << 16); }

// To nearest even; NaN stays NaN.
uvec4 bf16_from_float(vec4 x) {
  const uvec4 bits = floatBitsToUint(x);
  const uvec4 rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  return mix(rounded, bits | 0x400000u, greaterThan(bits & 0x7fffffffu, uvec4(0x7f800000u))) >> 16;
}

// The elements of a word.
vec2 halves(uint word) {
#if IN_BF16
  return uintBitsToFloat(uvec2(word << 16, word & 0xffff0000u));
#else
  return unpackHalf2x16(word);
#endif
}

// The elements of what one load returned.
void unpack(float raw, out float e[1]) { e[0] = raw; }
void unpack(vec2 raw, out float e[2]) { e = float[2](raw.x, raw.y); }
void unpack(vec4 raw, out float e[4]) { e = float[4](raw.x, raw.y, raw.z, raw.w); }
void unpack(uint raw, out float e[1]) { e[0] = float_from_bf16(uvec4(raw)).x; }
void unpack(uint raw, out float e[2]) { unpack(halves(raw), e); }
void unpack(uvec2 raw, out float e[4]) { unpack(vec4(halves(raw.x), halves(raw.y)), e); }
void unpack(uvec4 raw, out float e[8]) {
  const vec2 a = halves(raw.x), b = halves(raw.y), c = halves(raw.z), d = halves(raw.w);
  e = float[8](a.x, a.y, b.x, b.y, c.x, c.y, d.x, d.y);
}
