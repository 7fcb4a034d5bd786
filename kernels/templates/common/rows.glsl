// Operations on the rows of a matrix, each row on its own: a row's statistic is gathered, then its
// elements are put. An operation includes this file, defines what follows, and then includes
// common/walk_rows.glsl, whose main() uses it:
//
//   Row, row_at(row)              where a row is
//   Raw, load(row, col)           what is loaded for VEC neighbours
//   Fixed, load_fixed(col)        what all rows have in common there
//   take(row, raw, col, x)        the numbers that the statistic is of
//   PADDING                       the number that stands for what lies past the row's end
//   Statistic, nothing()          of no elements at all
//   gather(x, have)               of a thread's values, the first `have` of whose ITEMS vectors lie
//                                 inside; may replace them by what put() takes
//   merge(a, b), across(s, mask)  of both; that of another lane (common/reduce.glsl)
//   Factors, factors(own, total)  what put() needs: `own` is what gather() returned
//   put(row, factors, fixed, x, col)  computes and stores VEC neighbours
//   get_part(at), put_part(at, s) from and to the workspace; PART_BYTES each
//
// With SECOND, a second statistic follows, the sum of the squares of what the first makes of the values:
//
//   refine(factors, fixed, x)     makes that of VEC values
//   finish(squares)               Factors that put() needs then
//
// A row has LANES threads of the workgroup's; each has ITEMS vectors of VEC neighbours at a time, all
// of whose loads are in flight before it computes. KIND says how a row is walked:
//   HELD      it stays in registers: memory is read and written once. With STAY, workgroups stay too,
//             and load their next rows while they work on those that they have.
//   STREAMED  two walks, the second one backwards: what was read last is still in caches
//   PARTIAL   the statistic of one of SPLIT parts of a row, left in args.partial
//   FINISH    one of SPLIT parts of a row is put; its workgroup merges the parts' statistics

#define HELD 0
#define STREAMED 1
#define PARTIAL 2
#define FINISH 3

#if !defined(KIND) || !defined(ROWS) || !defined(WHOLE) || !defined(STAY) || !defined(SPLIT)
#error "KIND, ROWS, WHOLE, STAY and SPLIT must be defined"
#endif
#if KIND < HELD || KIND > FINISH
#error "KIND is 0 (held), 1 (streamed), 2 (partial) or 3 (finish)"
#endif
#if ROWS < 1 || THREADS % ROWS != 0 || (THREADS & (THREADS - 1)) != 0
#error "THREADS is a power of 2, and ROWS divides it"
#endif
#if SPLIT < 1 || SPLIT > THREADS || (SPLIT > 1 && (KIND < PARTIAL || ROWS != 1))
#error "a row in SPLIT parts has workgroups of its own, with at least SPLIT threads"
#endif
#if !defined(X_STRIDE) || !defined(Y_STRIDE)
#error "X_STRIDE and Y_STRIDE must be defined, 0 where rows are packed"
#endif
#ifndef SECOND
#define SECOND 0
#endif
#if SECOND && KIND >= PARTIAL
#error "a row in parts has one statistic"
#endif
#if (WHOLE || STAY) && KIND != HELD
#error "WHOLE and STAY are for rows that are held"
#endif

#if SUBGROUP > 0
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#endif
#include "common/elementwise.glsl"
#include "common/values.glsl"

#define LANES (THREADS / ROWS)
#define CHUNK (LANES * ITEMS * VEC)  // elements that a row's threads have at a time
#define REDUCED Statistic

layout(push_constant, std430) uniform Arguments {
  uint64_t in_, other;          // addresses of rows x cols; in_ may be out_; 0 where there is none
  uint64_t weight, bias, gain;  // of 1 x cols
  uint64_t out_, sum;           // of rows x cols
  uint64_t partial;             // statistics of the parts of each row
  uint rows, cols;
  uint step_;  // HELD: workgroups that stay; PARTIAL, FINISH: columns of a part, a multiple of VEC
  float factor;
} args;

// Elements before a row, of inputs and of outputs.
uint64_t in_row(uint row) { return uint64_t(row) * (X_STRIDE > 0 ? uint(X_STRIDE) : args.cols); }
uint64_t out_row(uint row) { return uint64_t(row) * (Y_STRIDE > 0 ? uint(Y_STRIDE) : args.cols); }

float largest_of(float x[ITEMS][VEC]) {
  float part[4] = float[4](x[0][0], x[0][0], x[0][0], x[0][0]);
  [[unroll]] for (uint i = 0; i < ITEMS; ++i)
    [[unroll]] for (uint j = 0; j < VEC; ++j)
      part[(i * VEC + j) % 4] = max(part[(i * VEC + j) % 4], x[i][j]);
  return max(max(part[0], part[2]), max(part[1], part[3]));
}
