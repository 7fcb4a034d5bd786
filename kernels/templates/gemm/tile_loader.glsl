// Loads one operand's K step from device memory into registers, and from there into shared memory
// as f32 with K as the slow dimension. Included once for A and once for B, with
//   LOAD, STORE   names of the functions       RAW, RAW_TYPE  the registers and what one load gives
//   PACK, VEC     the memory view, its width   TILE, LD4      the shared array and its row pitch / 4
//   BASE          address of this thread's first vector of the current K step
//   SPAN          extent in m or n             FIRST, EXTENT  where the tile starts, where it ends
//   ALONG_K       1 where K is contiguous      STRIDE         elements from one line to the next
//   PAIRS         1 where lines alternate between gates and ups (operands.glsl)
//   OF_PANELS     1 where they lie in panels, and BASE is the address of the current K step

#if ALONG_K
#define GROUPS (BK / VEC)
#else
#define GROUPS (SPAN / VEC)
#endif
#define VECTORS (SPAN * BK / VEC)
#define LOADS ((VECTORS + THREADS - 1) / THREADS)
#if THREADS % GROUPS != 0 && GROUPS % THREADS != 0
#error "loads are at constant distances"
#endif
// Thread and load number to a line of memory and an element in it. The last load may be one of some
// threads only.
#define MINE(i) (((i) + 1) * THREADS <= VECTORS || (i) * THREADS + tid < VECTORS)
#define LINE(i) (tid / GROUPS + (i) * THREADS / GROUPS)
#define OFFSET(i) ((tid % GROUPS + (i) * THREADS % GROUPS) * VEC)

RAW_TYPE RAW[LOADS];

// `whole`: no element of the K step lies outside the matrix.
void LOAD(uint k0, uint k_end, bool whole) {
  [[unroll]] for (uint i = 0; i < LOADS; ++i) {
#if OF_PANELS
    const uint64_t skip = panel_place(PAIRS != 0, FIRST + LINE(i)) + b_along(OFFSET(i));
#else
#if PAIRS && THREADS / GROUPS % 2 != 0
    const uint64_t lines = line_place(true, LINE(i), STRIDE) - line_place(true, LINE(0), STRIDE);
#else
    const uint64_t lines = line_place(PAIRS != 0, i * THREADS / GROUPS, STRIDE);
#endif
    const uint64_t skip = lines + i * THREADS % GROUPS * VEC;
#endif
#if ALONG_K
    const bool inside = FIRST + LINE(i) < EXTENT && k0 + OFFSET(i) < k_end;
#else
    const bool inside = FIRST + OFFSET(i) < EXTENT && k0 + LINE(i) < k_end;
#endif
    RAW[i] = RAW_TYPE(0);
    if (MINE(i) && (whole || inside)) RAW[i] = RAW_TYPE(PACK(BASE + skip * IN_BYTES).v);
  }
}

void STORE(uint stage) {
  [[unroll]] for (uint i = 0; i < LOADS; ++i) {
    if (!MINE(i)) continue;
    float e[VEC];
    unpack(RAW[i], e);
#if ALONG_K
    [[unroll]] for (uint j = 0; j < VEC; ++j) {
      TILE[(stage * BK + OFFSET(i) + j) * LD4 + LINE(i) / 4][LINE(i) % 4] = e[j];
    }
#elif VEC >= 4
    [[unroll]] for (uint j = 0; j < VEC; j += 4) {
      TILE[(stage * BK + LINE(i)) * LD4 + (OFFSET(i) + j) / 4] =
          vec4(e[j], e[j + 1], e[j + 2], e[j + 3]);
    }
#else
    [[unroll]] for (uint j = 0; j < VEC; ++j) {
      TILE[(stage * BK + LINE(i)) * LD4 + OFFSET(i) / 4][OFFSET(i) % 4 + j] = e[j];
    }
#endif
  }
}

#undef GROUPS
#undef VECTORS
#undef LOADS
#undef MINE
#undef LINE
#undef OFFSET
#undef LOAD
#undef STORE
#undef RAW
#undef RAW_TYPE
#undef PACK
#undef VEC
#undef TILE
#undef LD4
#undef BASE
#undef SPAN
#undef FIRST
#undef EXTENT
#undef ALONG_K
#undef STRIDE
#undef PAIRS
#undef OF_PANELS
