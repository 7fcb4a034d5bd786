// out = the weights that b stands for. A thread takes CHUNKS chunks of 8 neighbours of a row, so that
// those of neighbouring threads are loaded and stored together.
#define CHUNK_WEIGHTS 8
#define ITEMS CHUNKS
#include "common/elementwise.hip"
#include "quantized_gemm/weights.hip"

GRETA_KERNEL(THREADS)
dequantize_chunks(const u8* GRETA_READ b, const Scale* GRETA_READ scales,
                  const u8* GRETA_READ zeros, Out* __restrict__ out, u32 chunks, u32 cols) {
  begin_launch();
  const Weights weights = {b, scales, zeros};
  const u32 across = cols / CHUNK_WEIGHTS;
  const u32 first = block_index<THREADS>() * (THREADS * CHUNKS) + thread_index();
  WeightChunk chunk[CHUNKS];
  GRETA_UNROLL
  for (u32 i = 0; i < CHUNKS; ++i) {
    // Threads past the end repeat the last chunk.
    const u32 at = smaller(first + i * THREADS, chunks - 1);
    chunk[i] = load_chunk(weights, at / across, at % across, cols);
  }
  loads_go_ahead();
  GRETA_UNROLL
  for (u32 i = 0; i < CHUNKS; ++i) {
    const u32 at = first + i * THREADS;
    if (at >= chunks) continue;
    float weight[CHUNK_WEIGHTS];
    weight8(chunk[i], 0, weight);
    GRETA_UNROLL
    for (u32 j = 0; j < CHUNK_WEIGHTS; ++j) weight[j] *= scale_of(chunk[i], 0);
    store_floats(out + u64(at) * CHUNK_WEIGHTS, weight);
  }
}
