#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_8bit_storage : require

layout(buffer_reference, std430, buffer_reference_align = 1) buffer I8 { int8_t v[]; };
layout(buffer_reference, std430, buffer_reference_align = 1) buffer U8 { uint8_t v[]; };
layout(buffer_reference, std430, buffer_reference_align = 2) buffer F16 { float16_t v[]; };
layout(buffer_reference, std430, buffer_reference_align = 2) buffer BF16 { uint16_t v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer I32 { int v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer U32 { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer F32 { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer I64 { int64_t v[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer F64 { double v[]; };

// bf16 are the upper halves of f32.
double wide(uint16_t bf16) { return double(uintBitsToFloat(uint(bf16) << 16)); }

#if ENTRY_IS_first

layout(push_constant) uniform Arguments {
  I8 a;
  U8 b;
  F16 c;
  BF16 d;
  I32 e;
  int n;
  int64_t big;
  F64 sums;
  double factor;
};

void first() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= n) return;
  sums.v[i] = double(a.v[i]) + double(b.v[i]) + double(c.v[i]) + wide(d.v[i]) + double(e.v[i]) +
              double(big) * factor;
}

#elif ENTRY_IS_second

layout(push_constant) uniform Arguments {
  U32 f;
  F32 g;
  I64 h;
  F64 sums, y;
  int n;
};

void second() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < n) y.v[i] = sums.v[i] + double(f.v[i]) + double(g.v[i]) + double(h.v[i]);
}

#else

layout(push_constant) uniform Arguments {
  I8 a;
  U8 b;
  F16 c;
  BF16 d;
  I32 e;
  U32 f;
  F32 g;
  I64 h;
  F64 y;
};

void naive() {
  const uint i = gl_GlobalInvocationID.x;
  y.v[i] = double(a.v[i]) + double(b.v[i]) + double(c.v[i]) + wide(d.v[i]) + double(e.v[i]) +
           2.5e9LF + double(f.v[i]) + double(g.v[i]) + double(h.v[i]);
}

#endif
