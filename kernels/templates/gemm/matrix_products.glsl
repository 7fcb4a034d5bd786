// The loop over K of a workgroup whose tiles lie as matrix_memory.glsl has them, and what becomes of
// the sums. Includers have row0 and col0, where the tile starts, and
//   load(k0, k_end)          loads a K step to registers; what lies past k_end is 0
//   store(stage)             brings it to shared memory
//   put_four(row, col, sum)  takes four neighbours of a row of the product, which may lie past edges

// With PARTS > 1 sums are those of a step, which are added to the totals: matrix cores may truncate sums,
// and roundings of a long sum of equal products add up.

#define SUMS ((WM / INSTR_M) * (WN / INSTR_N))
MatrixC sums[SUMS];
#if PARTS > 1
MatrixC totals[SUMS];
#endif

// Where the subgroup's part of the tile starts.
uint part_row() { return gl_SubgroupID / (BN / WN) * WM; }
uint part_column() { return gl_SubgroupID % (BN / WN) * WN; }

void multiply(uint stage) {
  const uint a_place = stage * STAGE_CHUNKS, b_place = a_place + A_CHUNKS;
  [[unroll]] for (uint k = 0; k < BK; k += INSTR_K) {
    MatrixA a[WM / INSTR_M];
    [[unroll]] for (uint i = 0; i < WM / INSTR_M; ++i) {
      const uint row = part_row() + i * INSTR_M;
#if A_ALONG_K
      load_matrix(a[i], a_place + row * A_PITCH + k / 8, A_PITCH, ROW_MAJOR);
#else
      load_matrix(a[i], a_place + k * A_PITCH + row / 8, A_PITCH, COLUMN_MAJOR);
#endif
    }
    [[unroll]] for (uint j = 0; j < WN / INSTR_N; ++j) {
      const uint col = part_column() + j * INSTR_N;
      [[unroll]] for (uint part = 0; part < PARTS; ++part) {
        MatrixB b;
#if B_ALONG_K
        load_matrix(b, b_place + part * B_CHUNKS + col * B_PITCH + k / 8, B_PITCH, COLUMN_MAJOR);
#else
        load_matrix(b, b_place + part * B_CHUNKS + k * B_PITCH + col / 8, B_PITCH, ROW_MAJOR);
#endif
        [[unroll]] for (uint i = 0; i < WM / INSTR_M; ++i)
          sums[i * (WN / INSTR_N) + j] = multiply_add(a[i], b, sums[i * (WN / INSTR_N) + j]);
      }
    }
  }
}

void clear_sums() {
  [[unroll]] for (uint i = 0; i < SUMS; ++i) sums[i] = zero_matrix();
}

// Adds the products of these k.
void multiply_steps(uint k_begin, uint k_end) {
  clear_sums();
#if PARTS > 1
  [[unroll]] for (uint i = 0; i < SUMS; ++i) totals[i] = zero_matrix();
#endif
  load(k_begin, k_end);
  uint stage = 0;
  [[dont_unroll]] for (uint k = k_begin; k < k_end; k += BK) {
#if STAGES == 1
    barrier();  // the step before was multiplied
#endif
    store(stage);
    barrier();
    load(k + BK, k_end);  // in flight while this step is multiplied
    multiply(stage);
#if PARTS > 1
    [[unroll]] for (uint i = 0; i < SUMS; ++i) totals[i] = add(totals[i], sums[i]);
    clear_sums();
#endif
    stage = STAGES - 1 - stage;
  }
#if PARTS > 1
  [[unroll]] for (uint i = 0; i < SUMS; ++i) sums[i] = totals[i];
#endif
  barrier();  // shared memory is used for the sums from here on
}

// The sums of INSTR_M rows and PIECE columns at a time, so that neighbouring lanes write
// neighbouring columns.
void put_piece(uint row, uint col, uint place) {
  [[unroll]] for (uint e = 0; e < INSTR_M * PIECE / 4; e += SUBGROUP) {
    const uint four = e + gl_SubgroupInvocationID;
    const uint r = four / (PIECE / 4), c = four % (PIECE / 4);
    put_four(row + r, col + c * 4, uintBitsToFloat(matrix_memory[place + r * PIECE_PITCH + c]));
  }
}

void put_sums() {
  const uint place = gl_SubgroupID * PIECE_CHUNKS;
  [[unroll]] for (uint i = 0; i < WM / INSTR_M; ++i) {
    [[unroll]] for (uint j = 0; j < WN; j += PIECE) {
      [[unroll]] for (uint l = 0; l < PIECE; l += INSTR_N)
        store_matrix(sums[i * (WN / INSTR_N) + (j + l) / INSTR_N], place + l / 4, PIECE_PITCH);
      subgroupBarrier();
      put_piece(row0 + part_row() + i * INSTR_M, col0 + part_column() + j, place);
      subgroupBarrier();
    }
  }
}
