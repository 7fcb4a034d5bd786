#version 460
// out = the weights that b stands for. A thread takes CHUNKS chunks of 8 neighbours of a row, so that
// those of neighbouring threads are loaded and stored together.

#define CHUNK_WEIGHTS 8
#define ITEMS CHUNKS
#include "common/elementwise.glsl"
#include "quantized_gemm/weights.glsl"

layout(push_constant, std430) uniform Arguments {
  uint64_t b, scales, zeros, out_;
  uint chunks, cols;
} args;

void main() {
  const uint across = args.cols / CHUNK_WEIGHTS;
  const uint first = workgroup() * (THREADS * CHUNKS) + gl_LocalInvocationIndex;
  WeightChunk chunk[CHUNKS];
  [[unroll]] for (uint i = 0; i < CHUNKS; ++i) {
    // Threads past the end repeat the last chunk.
    const uint at = min(first + i * THREADS, args.chunks - 1);
    chunk[i] = load_chunk(args.b, args.scales, args.zeros, at / across, at % across, args.cols);
  }
  [[unroll]] for (uint i = 0; i < CHUNKS; ++i) {
    const uint at = first + i * THREADS;
    if (at < args.chunks) {
      [[unroll]] for (uint e = 0; e < CHUNK_WEIGHTS; e += VEC) {
        float weight[VEC];
        [[unroll]] for (uint j = 0; j < VEC; ++j)
          weight[j] = scale_of(chunk[i], 0) * weight_of(chunk[i], e + j);
        store_floats(args.out_ + (uint64_t(at) * CHUNK_WEIGHTS + e) * OUT_BYTES, weight);
      }
    }
  }
}
