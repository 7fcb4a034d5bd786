// Copies operands whose lines do not start at multiples of 16 bytes into the workspace, where they
// do: ALIGN_A and ALIGN_B say which. The workgroup's z picks the operand where it is both. A thread
// writes 16 bytes; what they hold behind a line's end is 0.

#if !defined(ALIGN_A) || !defined(ALIGN_B) || !defined(A_ALONG_K) || !defined(B_ALONG_K)
#error "ALIGN_{A,B} and {A,B}_ALONG_K must be defined"
#endif

#include "gemm/aligned.hip"
#include "gemm/operands.hip"

GRETA_KERNEL(256) gemm_align(GEMM_PARAMETERS) {
  begin_launch();
  const bool second = ALIGN_B && (!ALIGN_A || block_z() == 1);
  const u32 lines = second ? (B_ALONG_K ? n : k) : (A_ALONG_K ? m : k);
  const u32 length = second ? (B_ALONG_K ? k : n) : (A_ALONG_K ? k : m);
  const Arguments args = GEMM_ARGUMENTS;
  const In* const from = second ? b : a;
  const u64 stride = second ? stride_b(args) : stride_a(args);
  u8* to = reinterpret_cast<u8*>(partial);
  if (second && ALIGN_A) to += aligned_bytes(A_ALONG_K ? m : k, A_ALONG_K ? k : m);

  constexpr u32 count = 16 / sizeof(In);
  const u32 groups = aligned_stride(length) / count;
  const u64 id = u64(block_index<256>()) * 256 + thread_index();
  const u64 line = id / groups;
  const u32 first = u32(id % groups) * count;
  if (line >= lines) return;
  Words<16> words = {};
  GRETA_UNROLL
  for (u32 e = 0; e < count; ++e) {
    if (first + e < length) {
      const u32 bits = load_words<int(sizeof(In))>(from + line * stride + first + e).word[0];
      words.word[e * sizeof(In) / 4] |= bits << e * sizeof(In) % 4 * 8;
    }
  }
  store_words(to + id * 16, words);
}
