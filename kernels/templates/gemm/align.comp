#version 460
// Copies operands whose lines do not start at multiples of 16 bytes into the workspace, where they
// do: ALIGN_A and ALIGN_B say which. The workgroup's z picks the operand where it is both. A thread
// writes 16 bytes; what they hold behind a line's end is 0.

#if !defined(ALIGN_A) || !defined(ALIGN_B) || !defined(A_ALONG_K) || !defined(B_ALONG_K)
#error "ALIGN_{A,B} and {A,B}_ALONG_K must be defined"
#endif

#include "common/in_out.glsl"
#include "gemm/operands.glsl"
#include "gemm/aligned.glsl"

layout(local_size_x = 256) in;

// The 8 elements at `from`, of which `left` are of this line. Elements one by one.
uvec4 load_elements(uint64_t from, uint left) {
  uvec4 words = uvec4(0);
  [[unroll]] for (uint e = 0; e < 8; ++e) {
    if (e < left) words[e / 2] |= uint(U16(from + e * 2).v) << e % 2 * 16;
  }
  return words;
}

// The same by the two chunks of 16 bytes that they lie in, which are shifted together.
uvec4 load_chunks(uint64_t chunk, uint shift, uint left) {
  const uvec4 low = U32x4(chunk).v, high = U32x4(chunk + 16).v;
  uint word[8];
  [[unroll]] for (uint i = 0; i < 8; ++i) word[i] = i < 4 ? low[i] : high[i - 4];
  [[unroll]] for (uint i = 0; i < 6; ++i) word[i] = (shift & 8) != 0 ? word[i + 2] : word[i];
  [[unroll]] for (uint i = 0; i < 5; ++i) word[i] = (shift & 4) != 0 ? word[i + 1] : word[i];
  uvec4 words;
  [[unroll]] for (uint i = 0; i < 4; ++i) {
    const uint halves = word[i] >> 16 | word[i + 1] << 16;
    words[i] = (shift & 2) != 0 ? halves : word[i];
    if (left <= i * 2) words[i] = 0;
    if (left == i * 2 + 1) words[i] &= 0xffff;
  }
  return words;
}

void main() {
  const bool second = ALIGN_B != 0 && (ALIGN_A == 0 || gl_WorkGroupID.z == 1);
  const uint a_lines = A_ALONG_K != 0 ? args.m : args.k, b_lines = B_ALONG_K != 0 ? args.n : args.k;
  const uint a_length = A_ALONG_K != 0 ? args.k : args.m;
  const uint lines = second ? b_lines : a_lines;
  const uint length = second ? (B_ALONG_K != 0 ? args.k : args.n) : a_length;
  uint64_t to = args.partial;
  if (second && ALIGN_A != 0) to += aligned_bytes(a_lines, a_length);

  const uint groups = aligned_stride(length) / 8;
  const uint64_t id = uint64_t(workgroup()) * 256 + gl_LocalInvocationIndex;
  // 64-bit divisions take longer than the copy.
  const uint line = id >> 32 == 0 ? uint(id) / groups : uint(id / groups);
  const uint first = uint(id - uint64_t(line) * groups) * 8;
  if (line >= lines) return;
  const uint64_t from = second ? args.b : args.a;
  const uint64_t stride = second ? B_LINES : A_LINES;
  const uint64_t place = from + (line * stride + first) * 2;
  const uint left = length - first, shift = uint(place) % 16;
  const bool inside = place - shift + 32 <= from + ((lines - 1) * stride + length) * 2;
  U32x4(to + id * 16).v =
      inside ? load_chunks(place - shift, shift, left) : load_elements(place, left);
}
