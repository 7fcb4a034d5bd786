#version 460
// Rotates the pairs of each head's elements by the angles of its token's position, whose cosines and
// sines are a row of the table. HALF: element i is paired with i + dim/2, else 2i with 2i + 1. A
// thread takes the same columns of up to ITEMS heads of a token, so that it reads their angles once.

#if !defined(HEADS) || !defined(DIM) || !defined(HALF) || !defined(X_STRIDE) || !defined(OUT_STRIDE)
#error "HEADS DIM and HALF must be defined, and X_STRIDE and OUT_STRIDE, 0 where tokens are packed"
#endif

#include "common/elementwise.glsl"

#if VEC < 2 && !HALF
#error "VEC is at least 2 where pairs are neighbours"
#endif

layout(push_constant, std430) uniform Arguments {
  uint64_t x, positions, table, out_;  // x may be out: a thread overwrites only what it has read
  uint tokens, table_rows;
} args;

#define PARTS (HALF != 0 ? 2 : 1)  // vectors that a thread has of a head

float angles[PARTS * VEC];  // a cosine and a sine for each pair

void load_angles(uint token, uint col) {
  const uint position = uint(I32(args.positions + uint64_t(token) * 4).v);
  if (position >= args.table_rows) {
    [[unroll]] for (uint j = 0; j < PARTS * VEC; ++j) angles[j] = uintBitsToFloat(0x7fc00000u);
    return;
  }
  const uint64_t at = args.table + (uint64_t(position) * DIM + col * (PARTS * VEC)) * 4;
#if HALF && VEC >= 2 || VEC >= 4
  [[unroll]] for (uint j = 0; j < PARTS * VEC; j += 4) {
    const vec4 two = F32x4(at + j * 4).v;
    angles[j] = two.x;
    angles[j + 1] = two.y;
    angles[j + 2] = two.z;
    angles[j + 3] = two.w;
  }
#else
  const vec2 one = F32x2(at).v;
  angles[0] = one.x;
  angles[1] = one.y;
#endif
}

// Elements before a head of a token; tokens are `stride` apart, or packed.
uint64_t head_start(uint token, uint head, uint stride) {
  if (stride > 0) return uint64_t(token) * stride + uint64_t(head) * DIM;
  return (uint64_t(token) * HEADS + head) * DIM;
}

void main() {
  const uint width = DIM / (PARTS * VEC);
  const uint groups = HEADS / ITEMS + (HEADS % ITEMS != 0 ? 1 : 0);
  const Place place = advance(tile_start(width, THREADS), gl_LocalInvocationIndex, width);
  const uint token = place.row / groups, group = place.row % groups;
  if (token >= args.tokens) return;
  const uint64_t first = head_start(token, group, X_STRIDE) + place.col * VEC;
  const uint64_t target =
      OUT_STRIDE == X_STRIDE ? first : head_start(token, group, OUT_STRIDE) + place.col * VEC;
  const uint64_t step = uint64_t(groups) * DIM;  // from one of the thread's heads to the next
  X_RAW raw[ITEMS * PARTS];
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    [[unroll]] for (uint p = 0; p < PARTS; ++p) {
      raw[i * PARTS + p] = X_RAW(0);
      if (group + i * groups < HEADS)
        raw[i * PARTS + p] =
            load_vector(args.x + (first + i * step + p * (DIM / 2)) * IN_BYTES);
    }
  }
  load_angles(token, place.col);
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    if (group + i * groups >= HEADS) continue;
    const uint64_t to = args.out_ + (target + i * step) * OUT_BYTES;
    float a[VEC], y[VEC];
    unpack(raw[i * PARTS], a);
#if HALF
    float b[VEC], z[VEC];
    unpack(raw[i * PARTS + 1], b);
    [[unroll]] for (uint j = 0; j < VEC; ++j) {
      y[j] = a[j] * angles[2 * j] - b[j] * angles[2 * j + 1];
      z[j] = a[j] * angles[2 * j + 1] + b[j] * angles[2 * j];
    }
    store_floats(to + DIM / 2 * OUT_BYTES, z);
#else
    [[unroll]] for (uint j = 0; j < VEC; j += 2) {
      y[j] = a[j] * angles[j] - a[j + 1] * angles[j + 1];
      y[j + 1] = a[j] * angles[j + 1] + a[j + 1] * angles[j];
    }
#endif
    store_floats(to, y);
  }
}
