// Loads one operand's part of a K step from device memory into registers, and from there into
// matrix_memory, as it is: lines of memory become lines there, in chunks of 8 elements, which are
// 16 bytes. Included once for A and once for B, with
//   LOAD, STORE, FIRST_CHUNK  names of the functions
//   CHUNK     the registers                  VEC        elements of one load
//   BASE      address of this thread's first chunk of the K step to load next
//   PLACE     of the tile in a stage         PITCH      of its lines, both in chunks
//   SPAN      extent in m or n               START, EXTENT  where the tile starts, where it ends
//   ALONG_K   1 where K is contiguous        STRIDE     elements from one line to the next
//   PAIRS     1 where lines alternate between gates and ups (operands.glsl)
//   OF_PANELS 1 where they lie in panels, and BASE is the address of the K step to load next

#if ALONG_K
#define LINES SPAN
#define LENGTH BK
#else
#define LINES BK
#define LENGTH SPAN
#endif
#if PAIRS
#define LINE_PLACE(line) line_place(true, line, STRIDE)
#else
#define LINE_PLACE(line) (uint64_t(line) * STRIDE)
#endif
#define GROUPS (LENGTH / 8)  // chunks of a line
#define LOADS (LINES * GROUPS / THREADS)
// Thread and chunk number to a line and an element of it. All factors are powers of two.
#define LINE(i) (tid / GROUPS + (i) * THREADS / GROUPS)
#define OFFSET(i) ((tid % GROUPS + (i) * THREADS % GROUPS) * 8)

uvec4 CHUNK[LOADS];

// Address of the thread's first chunk of the K step at k0.
uint64_t FIRST_CHUNK(uint64_t base, uint k0) {
#if OF_PANELS
  return base + b_along(k0) * 2;
#elif ALONG_K
  return base + (LINE_PLACE(START + LINE(0)) + k0 + OFFSET(0)) * 2;
#else
  return base + (uint64_t(k0 + LINE(0)) * STRIDE + START + OFFSET(0)) * 2;
#endif
}

// Elements outside the matrix are 0. Each load has a condition of its own, and no branch goes around
// several: NVIDIA's compiler copies what those have loaded into other registers, and waits for it.
void LOAD(uint k0, uint k_end) {
  [[unroll]] for (uint i = 0; i < LOADS; ++i) {
#if OF_PANELS
    const uint64_t skip = panel_place(PAIRS != 0, START + LINE(i)) + b_along(OFFSET(i));
#else
#if PAIRS && THREADS / GROUPS % 2 != 0
    const uint64_t lines = LINE_PLACE(LINE(i)) - LINE_PLACE(LINE(0));
#else
    const uint64_t lines = LINE_PLACE(i * THREADS / GROUPS);
#endif
    const uint64_t skip = lines + i * THREADS % GROUPS * 8;
#endif
    const uint64_t at = BASE + skip * 2;
#if ALONG_K
    const bool line = START + LINE(i) < EXTENT;
    const uint left = k_end - min(k_end, k0 + OFFSET(i));
#else
    const bool line = k0 + LINE(i) < k_end;
    const uint left = EXTENT - min(EXTENT, START + OFFSET(i));
#endif
    CHUNK[i] = uvec4(0);
    // Elements from the e-th on, as many as one load gives, are inside or outside together.
#define INSIDE(e) (line && e < left)
#if VEC == 8
    if (INSIDE(0)) CHUNK[i] = U32x4(at).v;
#elif VEC == 4
    if (INSIDE(0)) CHUNK[i].xy = U32x2(at).v;
    if (INSIDE(4)) CHUNK[i].zw = U32x2(at + 8).v;
#elif VEC == 2
    [[unroll]] for (uint e = 0; e < 8; e += 2) {
      if (INSIDE(e)) CHUNK[i][e / 2] = U32(at + e * 2).v;
    }
#else
    [[unroll]] for (uint e = 0; e < 8; ++e) {
      if (INSIDE(e)) CHUNK[i][e / 2] |= uint(U16(at + e * 2).v) << e % 2 * 16;
    }
#endif
#undef INSIDE
  }
}

void STORE(uint stage) {
  [[unroll]] for (uint i = 0; i < LOADS; ++i)
    matrix_memory[stage * STAGE_CHUNKS + PLACE + LINE(i) * PITCH + OFFSET(i) / 8] = CHUNK[i];
}

#undef LINE_PLACE
#undef LINES
#undef LENGTH
#undef GROUPS
#undef LOADS
#undef LINE
#undef OFFSET
#undef LOAD
#undef STORE
#undef FIRST_CHUNK
#undef CHUNK
#undef VEC
#undef BASE
#undef PLACE
#undef PITCH
#undef SPAN
#undef START
#undef EXTENT
#undef ALONG_K
#undef STRIDE
#undef PAIRS
#undef OF_PANELS
