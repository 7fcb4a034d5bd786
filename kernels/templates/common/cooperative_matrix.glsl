// Matrices that a subgroup holds together: MatrixA with INSTR_M x INSTR_K elements of the operands'
// type, MatrixB with INSTR_K x INSTR_N, and MatrixC with INSTR_M x INSTR_N sums in f32. They are
// loaded from and stored to matrix_memory, in which places and pitches count 16 bytes. add(c, d) and
// divide(c, d) combine sums with sums, each with its own. To be included before everything else. What the
// device has is one of
//   GRETA_MATRIX_KHR       SPV_KHR_cooperative_matrix, made of GL_NV_cooperative_matrix
//   GRETA_MATRIX_NV        GL_NV_cooperative_matrix, which has no bf16
//   GRETA_MATRIX_EMULATED  neither: plain arithmetic, for tests. A MatrixA or MatrixB stays in
//                          matrix_memory, so it must be there still when it is multiplied.
// With HELD_MATRICES there are as many MatrixA that hold_matrix loads, each to a place of its own. They
// stay as they are when matrix_memory changes.

#if !defined(INSTR_M) || !defined(INSTR_N) || !defined(INSTR_K) || !defined(MATRIX_CHUNKS) || \
    !defined(SUBGROUP)
#error "INSTR_{M,N,K}, MATRIX_CHUNKS (16-byte pieces of matrix_memory) and SUBGROUP must be defined"
#endif

#if defined(GRETA_MATRIX_KHR) || defined(GRETA_MATRIX_NV)

#extension GL_KHR_memory_scope_semantics : require
#extension GL_NV_cooperative_matrix : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#if IN_BF16 && defined(GRETA_MATRIX_NV)
#error "GL_NV_cooperative_matrix has no bf16"
#endif
// What a matrix is for: see runtime/device/vulkan/khr_matrices.hpp.
layout(constant_id = 1 + 2 * IN_BF16) const uint ROWS_OF_A = INSTR_M;
layout(constant_id = 2 + 2 * IN_BF16) const uint COLUMNS_OF_B = INSTR_N;
#define MatrixA fcoopmatNV<16, gl_ScopeSubgroup, ROWS_OF_A, INSTR_K>
#define MatrixB fcoopmatNV<16, gl_ScopeSubgroup, INSTR_K, COLUMNS_OF_B>
#define MatrixC fcoopmatNV<32, gl_ScopeSubgroup, INSTR_M, INSTR_N>
#define ROW_MAJOR false
#define COLUMN_MAJOR true
#define load_matrix(to, at, pitch, order) coopMatLoadNV(to, matrix_memory, at, pitch, order)
#define hold_matrix(to, place, at, pitch) load_matrix(to, at, pitch, ROW_MAJOR)
#define store_matrix(from, at, pitch) coopMatStoreNV(from, matrix_memory, at, pitch, ROW_MAJOR)
#define load_sums(to, at, pitch) coopMatLoadNV(to, matrix_memory, at, pitch, ROW_MAJOR)
#define add(c, d) ((c) + (d))
#define divide(c, d) ((c) / (d))
#define multiply_add(a, b, c) coopMatMulAddNV(a, b, c)
#define zero_matrix() MatrixC(0.0)

#elif !defined(GRETA_MATRIX_EMULATED)
#error "GRETA_MATRIX_KHR or GRETA_MATRIX_NV must be defined"
#endif

#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_control_flow_attributes : require

shared uvec4 matrix_memory[MATRIX_CHUNKS];

#if defined(GRETA_MATRIX_EMULATED)

#define ROW_MAJOR false
#define COLUMN_MAJOR true
#define MatrixB MatrixA
struct MatrixA {
  uint at, pitch;
  bool column_major, held;  // held: in held_matrices, not in matrix_memory
};
#ifdef HELD_MATRICES
uvec4 held_matrices[HELD_MATRICES * INSTR_M * INSTR_K / 8];
#endif
// An invocation has each SUBGROUP-th of the sums.
struct MatrixC {
  float sum[INSTR_M * INSTR_N / SUBGROUP];
};
uint matrix_row(uint i) { return (i * SUBGROUP + gl_SubgroupInvocationID) / INSTR_N; }
uint matrix_column(uint i) { return (i * SUBGROUP + gl_SubgroupInvocationID) % INSTR_N; }

vec2 halves(uint word);  // memory.glsl

// What lies past the memory is NaN, and nothing is stored there.
uvec4 matrix_memory_at(uint place) {
  return place < MATRIX_CHUNKS ? matrix_memory[place] : uvec4(~0u);
}

uvec4 matrix_chunk(MatrixA m, uint chunk) {
#ifdef HELD_MATRICES
  if (m.held) return held_matrices[m.at + chunk];
#endif
  return matrix_memory_at(m.at + chunk);
}

// Eight elements from the e-th on: of a line of memory, or with `across` of as many lines.
void matrix_elements(MatrixA m, uint line, uint e, bool across, out float x[8]) {
  if (across) {
    [[unroll]] for (uint i = 0; i < 8; ++i)
      x[i] = halves(matrix_chunk(m, (e + i) * m.pitch + line / 8)[line % 8 / 2])[line % 2];
  } else {
    const uvec4 chunk = matrix_chunk(m, line * m.pitch + e / 8);
    [[unroll]] for (uint i = 0; i < 8; ++i) x[i] = halves(chunk[i / 2])[i % 2];
  }
}

void load_matrix(out MatrixA to, uint at, uint pitch, bool column_major) {
  to = MatrixA(at, pitch, column_major, false);
}

#ifdef HELD_MATRICES
void hold_matrix(out MatrixA to, uint place, uint at, uint pitch) {
  const uint line = INSTR_K / 8;
  to = MatrixA(place * INSTR_M * line, line, ROW_MAJOR, true);
  [[dont_unroll]] for (uint i = 0; i < INSTR_M * line; ++i)
    held_matrices[to.at + i] = matrix_memory_at(at + i / line * pitch + i % line);
}
#endif

void store_matrix(MatrixC from, uint at, uint pitch) {
  [[dont_unroll]] for (uint i = 0; i < from.sum.length(); ++i) {
    const uint column = matrix_column(i), place = at + matrix_row(i) * pitch + column / 4;
    if (place < MATRIX_CHUNKS) matrix_memory[place][column % 4] = floatBitsToUint(from.sum[i]);
  }
}

void load_sums(out MatrixC to, uint at, uint pitch) {
  [[dont_unroll]] for (uint i = 0; i < to.sum.length(); ++i) {
    const uint column = matrix_column(i), place = at + matrix_row(i) * pitch + column / 4;
    to.sum[i] = uintBitsToFloat(matrix_memory_at(place)[column % 4]);
  }
}

MatrixC add(MatrixC c, MatrixC d) {
  [[dont_unroll]] for (uint i = 0; i < c.sum.length(); ++i) c.sum[i] += d.sum[i];
  return c;
}

MatrixC divide(MatrixC c, MatrixC d) {
  [[dont_unroll]] for (uint i = 0; i < c.sum.length(); ++i) c.sum[i] /= d.sum[i];
  return c;
}

// Mesa's CPU driver ends a thread's loops after 65535 iterations (loop_limit): here it is one for each sum.
MatrixC multiply_add(MatrixA a, MatrixB b, MatrixC c) {
  [[dont_unroll]] for (uint i = 0; i < c.sum.length(); ++i) {
    float sum = 0.0;  // of the products alone: matrix cores add them before they add them to c
    [[unroll]] for (uint k = 0; k < INSTR_K; k += 8) {
      float x[8], y[8];
      matrix_elements(a, matrix_row(i), k, a.column_major, x);
      matrix_elements(b, matrix_column(i), k, !b.column_major, y);
      [[unroll]] for (uint e = 0; e < 8; ++e) sum += x[e] * y[e];
    }
    c.sum[i] += sum;
  }
  return c;
}

MatrixC zero_matrix() {
  MatrixC c;
  [[dont_unroll]] for (uint i = 0; i < c.sum.length(); ++i) c.sum[i] = 0.0;
  return c;
}

#endif
