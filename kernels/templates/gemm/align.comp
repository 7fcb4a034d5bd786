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

void main() {
  const bool second = ALIGN_B != 0 && (ALIGN_A == 0 || gl_WorkGroupID.z == 1);
  const uint a_lines = A_ALONG_K != 0 ? args.m : args.k, b_lines = B_ALONG_K != 0 ? args.n : args.k;
  const uint a_length = A_ALONG_K != 0 ? args.k : args.m;
  const uint lines = second ? b_lines : a_lines;
  const uint length = second ? (B_ALONG_K != 0 ? args.k : args.n) : a_length;
  uint64_t to = args.partial;
  if (second && ALIGN_A != 0) to += aligned_bytes(a_lines, a_length);

  const uint chunks = aligned_stride(length) / 8;
  const uint64_t id = uint64_t(workgroup()) * 256 + gl_LocalInvocationIndex;
  // 64-bit divisions take longer than the copy.
  const uint line = id >> 32 == 0 ? uint(id) / chunks : uint(id / chunks);
  const uint first = uint(id - uint64_t(line) * chunks) * 8;
  if (line >= lines) return;
  const uint stride = second ? B_LINES : A_LINES;
  const uint64_t from = (second ? args.b : args.a) + (uint64_t(line) * stride + first) * 2;
  uvec4 chunk = uvec4(0);
  [[unroll]] for (uint e = 0; e < 8; ++e) {
    if (first + e < length) chunk[e / 2] |= uint(U16(from + e * 2).v) << e % 2 * 16;
  }
  U32x4(to + id * 16).v = chunk;
}
