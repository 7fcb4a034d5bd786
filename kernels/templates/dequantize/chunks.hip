// out = the weights that b stands for. A thread takes ITEMS chunks of 32 weights of a row.
#include "common/elementwise.hip"
#include "quantized_gemm/weights.hip"

GRETA_KERNEL(THREADS)
dequantize_chunks(const u8* GRETA_READ b, const Scale* GRETA_READ scales,
                  const u8* GRETA_READ zeros, Out* __restrict__ out, u32 chunks, u32 cols) {
  begin_launch();
  const Weights weights = {b, scales, zeros};
  const u32 across = cols / CHUNK_WEIGHTS;
  const u64 first = u64(block_index<THREADS>()) * (THREADS * ITEMS) + thread_index();
  WeightChunk chunk[ITEMS];
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    // Threads past the end repeat the last chunk.
    const u32 at = u32(smaller(first + i * THREADS, u64(chunks - 1)));
    chunk[i] = load_chunk(weights, at / across, at % across, cols);
  }
  loads_go_ahead();
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    const u64 at = first + i * THREADS;
    if (at >= chunks) continue;
    GRETA_UNROLL
    for (u32 e = 0; e < CHUNK_WEIGHTS / 8; ++e) {
      float weight[8];
      weight8(chunk[i], e, weight);
      const float scale = scale_of(chunk[i], e * SEGMENTS / (CHUNK_WEIGHTS / 8));
      GRETA_UNROLL
      for (u32 j = 0; j < 8; ++j) weight[j] *= scale;
      store_floats(out + at * CHUNK_WEIGHTS + 8 * e, weight);
    }
  }
}
