#include "tuner/bench/memory_kernels.hpp"

#include <string_view>

#include "tuner/measure/ceiling_kernels.hpp"

namespace greta::tuner {
namespace {

constexpr std::string_view write_glsl = R"(#version 460
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 256) in;
layout(buffer_reference, std430, buffer_reference_align = 16) writeonly buffer Memory { uvec4 values[]; };
layout(push_constant) uniform Arguments { Memory memory; uint pieces; uint groups; };
void main() {
  for (uint piece = gl_WorkGroupID.x; piece < pieces; piece += groups) {
    const uint base = piece * (256 * 4) + gl_LocalInvocationIndex;
    const uvec4 value = uvec4(0x3F9D70A4, piece, base, groups);
    memory.values[base] = value; memory.values[base + 256] = value;
    memory.values[base + 512] = value; memory.values[base + 768] = value;
  }
}
)";

constexpr std::string_view write_hip = R"(
GRETA_KERNEL(256) greta_write(Words<16>* memory, u32 pieces, u32 groups) {
  for (u32 piece = block_x(); piece < pieces; piece += groups) {
    const u64 base = u64(piece) * (256 * 4) + thread_index();
    const Words<16> value = {{0x3F9D70A4U, piece, u32(base), groups}};
    GRETA_UNROLL
    for (int i = 0; i < 4; ++i) store_words<16>(memory + base + i * 256, value);
  }
}
)";

constexpr std::string_view triad_glsl = R"(#version 460
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 256) in;
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Memory { vec4 values[]; };
layout(push_constant) uniform Arguments { Memory memory; uint pieces; uint groups; };
void main() {
  const uint array = pieces * (256 * 4);
  for (uint piece = gl_WorkGroupID.x; piece < pieces; piece += groups) {
    const uint base = piece * (256 * 4) + gl_LocalInvocationIndex;
    vec4 b[4], c[4];
    for (int i = 0; i < 4; ++i) {
      b[i] = memory.values[base + array + 256 * i];
      c[i] = memory.values[base + 2 * array + 256 * i];
    }
    for (int i = 0; i < 4; ++i) memory.values[base + 256 * i] = b[i] + 0.4 * c[i];
  }
}
)";

constexpr std::string_view triad_hip = R"(
GRETA_KERNEL(256) greta_triad(Words<16>* memory, u32 pieces, u32 groups) {
  const u64 array = u64(pieces) * (256 * 4);
  for (u32 piece = block_x(); piece < pieces; piece += groups) {
    const u64 base = u64(piece) * (256 * 4) + thread_index();
    Words<16> b[4], c[4];
    GRETA_UNROLL
    for (int i = 0; i < 4; ++i) {
      b[i] = load_words<16>(memory + base + array + i * 256);
      c[i] = load_words<16>(memory + base + 2 * array + i * 256);
    }
    GRETA_UNROLL
    for (int i = 0; i < 4; ++i) {
      Words<16> a;
      GRETA_UNROLL
      for (int w = 0; w < 4; ++w)
        a.word[w] = bits_of(float_from_bits(b[i].word[w]) + 0.4f * float_from_bits(c[i].word[w]));
      store_words<16>(memory + base + i * 256, a);
    }
  }
}
)";

// Nothing else reads this memory, so a rare write of the sum there does no harm.
constexpr std::string_view walk_glsl = R"(#version 460
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 256) in;
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Memory { uvec4 values[]; };
layout(push_constant) uniform Arguments { Memory memory; uint pieces; uint steps; };
void main() {
  uvec4 sum = uvec4(0);
  uint piece = gl_WorkGroupID.x * steps % pieces;
  for (uint step = 0; step < steps; ++step) {
    const uint base = piece * (256 * 4) + gl_LocalInvocationIndex;
    sum += memory.values[base] ^ memory.values[base + 256] ^ memory.values[base + 512] ^
           memory.values[base + 768];
    piece = piece + 1 == pieces ? 0 : piece + 1;
  }
  if (sum == uvec4(0x2545F491, 0x4F6CDD1D, 1, 2)) memory.values[gl_LocalInvocationIndex] = sum;
}
)";

constexpr std::string_view walk_hip = R"(
GRETA_KERNEL(256) greta_walk(Words<16>* memory, u32 pieces, u32 steps) {
  Words<16> sum = {};
  u32 piece = block_x() * steps % pieces;
  for (u32 step = 0; step < steps; ++step) {
    const u64 base = u64(piece) * (256 * 4) + thread_index();
    GRETA_UNROLL
    for (int i = 0; i < 4; ++i) {
      const Words<16> some = load_words<16>(memory + base + i * 256);
      GRETA_UNROLL
      for (int w = 0; w < 4; ++w) sum.word[w] += some.word[w] ^ step;
    }
    piece = piece + 1 == pieces ? 0 : piece + 1;
  }
  if (sum.word[0] == 0x2545F491U && sum.word[1] == 0x4F6CDD1DU && sum.word[2] == 1) {
    store_words<16>(memory + thread_index(), sum);
  }
}
)";

}  // namespace

KernelSource write_kernel(const DeviceInfo& device) {
  return plain_kernel(device, "write", write_glsl, write_hip);
}

KernelSource triad_kernel(const DeviceInfo& device) {
  return plain_kernel(device, "triad", triad_glsl, triad_hip);
}

KernelSource walk_kernel(const DeviceInfo& device) {
  return plain_kernel(device, "walk", walk_glsl, walk_hip);
}

}  // namespace greta::tuner
