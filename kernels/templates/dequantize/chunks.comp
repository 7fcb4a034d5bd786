#version 460
// out = the weights that b stands for. A thread takes CHUNKS chunks of 8 neighbours of a row, so that
// those of neighbouring threads are loaded and stored together. Of panels, chunks are in the order
// of b: those of a unit of 16 bytes, which are stored together, of all rows, then of the next units.

#define CHUNK_WEIGHTS 8
#define ITEMS CHUNKS
#include "common/elementwise.glsl"
#include "quantized_gemm/weights.glsl"

layout(push_constant, std430) uniform Arguments {
  uint64_t b, scales, zeros, out_;
  uint chunks, cols;
} args;

// The row of a chunk, and its place there.
uvec2 chunk_place(uint at, uint across) {
#if PANELS
  const uint unit = FORMAT == 1 ? 2 : 4;  // chunks of 16 bytes
  const uint column = 16 * unit;          // and of all rows
  const uint units = across / unit, own = at / column, rest = at % column;
  return uvec2(own / units * 16 + rest / unit, own % units * unit + rest % unit);
#else
  return uvec2(at / across, at % across);
#endif
}

// Where a chunk is in out.
uint64_t chunk_in_rows(uint at, uint across) {
#if PANELS
  const uvec2 place = chunk_place(at, across);
  return uint64_t(place.x) * across + place.y;
#else
  return at;
#endif
}

void main() {
  const uint across = args.cols / CHUNK_WEIGHTS;
  const uint first = workgroup() * (THREADS * CHUNKS) + gl_LocalInvocationIndex;
  WeightChunk chunk[CHUNKS];
  [[unroll]] for (uint i = 0; i < CHUNKS; ++i) {
    // Threads past the end repeat the last chunk.
    const uint at = min(first + i * THREADS, args.chunks - 1);
    const uvec2 place = chunk_place(at, across);
    chunk[i] = load_chunk(args.b, args.scales, args.zeros, place.x, place.y, args.cols);
  }
  [[unroll]] for (uint i = 0; i < CHUNKS; ++i) {
    const uint at = first + i * THREADS;
    if (at < args.chunks) {
      const uint64_t to = chunk_in_rows(at, across) * CHUNK_WEIGHTS;
      [[unroll]] for (uint e = 0; e < CHUNK_WEIGHTS; e += VEC) {
        float weight[VEC];
        [[unroll]] for (uint j = 0; j < VEC; ++j)
          weight[j] = scale_of(chunk[i], 0) * weight_of(chunk[i], e + j);
        store_floats(args.out_ + (to + e) * OUT_BYTES, weight);
      }
    }
  }
}
