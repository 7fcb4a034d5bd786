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
// Vectors of f16 are loaded as words: 16 bytes in one instruction on every driver.
layout(buffer_reference, std430, buffer_reference_align = 4) buffer U32 { uint v; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer U32x2 { uvec2 v; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer U32x4 { uvec4 v; };
#endif

// The elements of what one load returned; words hold two f16 each.
void unpack(float raw, out float e[1]) { e[0] = raw; }
void unpack(vec2 raw, out float e[2]) { e = float[2](raw.x, raw.y); }
void unpack(vec4 raw, out float e[4]) { e = float[4](raw.x, raw.y, raw.z, raw.w); }
void unpack(uint raw, out float e[2]) { unpack(unpackHalf2x16(raw), e); }
void unpack(uvec2 raw, out float e[4]) {
  unpack(vec4(unpackHalf2x16(raw.x), unpackHalf2x16(raw.y)), e);
}
void unpack(uvec4 raw, out float e[8]) {
  const vec2 a = unpackHalf2x16(raw.x), b = unpackHalf2x16(raw.y);
  const vec2 c = unpackHalf2x16(raw.z), d = unpackHalf2x16(raw.w);
  e = float[8](a.x, a.y, b.x, b.y, c.x, c.y, d.x, d.y);
}
