// Copies operands whose lines do not start at multiples of 16 bytes into the workspace, where they
// do: ALIGN_A and ALIGN_B say which. The workgroup's z picks the operand where it is both. A thread
// writes 16 bytes; what they hold behind a line's end is 0.

#if !defined(ALIGN_A) || !defined(ALIGN_B) || !defined(A_ALONG_K) || !defined(B_ALONG_K)
#error "ALIGN_{A,B} and {A,B}_ALONG_K must be defined"
#endif

#include "gemm/aligned.hip"
#include "gemm/operands.hip"

constexpr u32 count = 16 / sizeof(In);  // elements of a thread

// The elements from `from` on, of which `left` are of this line. Elements one by one.
GRETA_DEVICE Words<16> load_elements(const In* from, u32 left) {
  Words<16> words = {};
  GRETA_UNROLL
  for (u32 e = 0; e < count; ++e) {
    if (e < left) {
      const u32 bits = load_words<int(sizeof(In))>(from + e).word[0];
      words.word[e * sizeof(In) / 4] |= bits << e * sizeof(In) % 4 * 8;
    }
  }
  return words;
}

// The same by the two chunks of 16 bytes that they lie in, which are shifted together.
GRETA_DEVICE Words<16> load_chunks(const u8* chunk, u32 shift, u32 left) {
  const Words<16> low = load_words<16>(chunk), high = load_words<16>(chunk + 16);
  u32 word[8];
  GRETA_UNROLL
  for (u32 i = 0; i < 8; ++i) word[i] = i < 4 ? low.word[i] : high.word[i - 4];
  GRETA_UNROLL
  for (u32 i = 0; i < 6; ++i) word[i] = (shift & 8) != 0 ? word[i + 2] : word[i];
  GRETA_UNROLL
  for (u32 i = 0; i < 5; ++i) word[i] = (shift & 4) != 0 ? word[i + 1] : word[i];
  Words<16> words;
  GRETA_UNROLL
  for (u32 i = 0; i < 4; ++i) {
    const u32 halves = word[i] >> 16 | word[i + 1] << 16;
    words.word[i] = (shift & 2) != 0 ? halves : word[i];
    const int bytes = int(left * sizeof(In)) - int(i * 4);  // of this word
    if (bytes < 4) words.word[i] &= bytes > 0 ? 0xffffU : 0U;
  }
  return words;
}

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

  const u32 groups = aligned_stride(length) / count;
  const u64 id = u64(block_index<256>()) * 256 + thread_index();
  // 64-bit divisions take longer than the copy.
  const u32 line = id >> 32 == 0 ? u32(id) / groups : u32(id / groups);
  const u32 first = u32(id - u64(line) * groups) * count;
  if (line >= lines) return;
  const In* const place = from + line * stride + first;
  const u32 left = length - first, shift = u32(reinterpret_cast<u64>(place) % 16);
  const u8* const chunk = reinterpret_cast<const u8*>(place) - shift;
  const bool inside = chunk + 32 <= reinterpret_cast<const u8*>(from + (lines - 1) * stride + length);
  const Words<16> words = inside ? load_chunks(chunk, shift, left) : load_elements(place, left);
  store_words(to + id * 16, words);
}
