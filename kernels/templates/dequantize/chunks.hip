// out = the weights that b stands for. A thread takes CHUNKS chunks of 8 neighbours of a row, so that
// those of neighbouring threads are loaded and stored together. Of panels, chunks are in the order
// of b: those of a unit of 16 bytes, which are stored together, of all rows, then of the next units.
#define CHUNK_WEIGHTS 8
#define ITEMS CHUNKS
#include "common/elementwise.hip"
#include "quantized_gemm/weights.hip"

// The place of a chunk.
struct ChunkPlace {
  u32 row, index;
};
GRETA_DEVICE ChunkPlace chunk_place(u32 at, u32 across) {
#if PANELS
  constexpr u32 unit = PACKED_FOURS ? 4 : 2;  // chunks of 16 bytes
  constexpr u32 column = 16 * unit;           // and of all rows
  const u32 units = across / unit, own = at / column, rest = at % column;
  return {own / units * 16 + rest / unit, own % units * unit + rest % unit};
#else
  return {at / across, at % across};
#endif
}

// Where a chunk is in out.
GRETA_DEVICE u64 chunk_in_rows(u32 at, u32 across) {
#if PANELS
  const ChunkPlace place = chunk_place(at, across);
  return u64(place.row) * across + place.index;
#else
  return at;
#endif
}

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
    const ChunkPlace place = chunk_place(at, across);
    chunk[i] = load_chunk(weights, place.row, place.index, cols);
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
    store_floats(out + chunk_in_rows(at, across) * CHUNK_WEIGHTS, weight);
  }
}
