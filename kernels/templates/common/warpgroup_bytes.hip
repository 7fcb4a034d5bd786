// Products of warpgroups (warpgroup_matrix.hip) on numbers of eight bits: both operands lie along k in
// shared memory, the dot products are 32 long.
//
//   ByteSums<columns, Sum>        D, laid out as WarpgroupSums; Sum is float, or int with Int8
//   multiply_bytes<add>(T(), …)   sums += a b, or without `add` sums = a b, started
//   byte_place<Tile>(…)           a part of a tile from row or column `span` and k on, multiples of 8
//                                 and of 32
//   claim_byte_sums(sums)         after a wait: these sums may be read
//
// Source: PTX ISA, wgmma.mma_async.
#pragma once

#include "common/byte_types.hip"
#include "common/warpgroup_matrix.hip"

template <u32 columns, typename Sum>
struct ByteSums {
  Sum eight[columns / 8][4];  // of eight columns: two neighbours of each row
};

// PanelTile counts elements of 16 bits.
template <typename Tile>
GRETA_DEVICE OperandPlace byte_place(SharedMemory shared, u32 start, u32 span, u32 k) {
  return operand_place<Tile, true>(shared, start + Tile::template part<true>(span, k / 2));
}

#if defined(GRETA_HOST)

template <u32 columns, typename Sum>
GRETA_DEVICE void claim_byte_sums(ByteSums<columns, Sum>&) {}

template <bool add, typename T, u32 columns, typename Sum>
GRETA_DEVICE void multiply_bytes(T, ByteSums<columns, Sum>& sums, OperandPlace a, OperandPlace b) {
  auto& d = reinterpret_cast<Sum(&)[columns / 2]>(sums);
  greta_host::wgmma_m64k32<T>(d, a, b, add);
}

#else

// Nothing reads the sums ahead of this.
template <u32 columns>
GRETA_DEVICE void claim_byte_sums(ByteSums<columns, float>& sums) {
  GRETA_UNROLL
  for (u32 c = 0; c < columns / 8; ++c) {
    float(&d)[4] = sums.eight[c];
    asm volatile("" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])::"memory");
  }
}
template <u32 columns>
GRETA_DEVICE void claim_byte_sums(ByteSums<columns, int>& sums) {
  GRETA_UNROLL
  for (u32 c = 0; c < columns / 8; ++c) {
    int(&d)[4] = sums.eight[c];
    asm volatile("" : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])::"memory");
  }
}

// `count` sums of a lane: half as many as there are columns. n0 to n2 name the operands after them;
// `signs` are the factors 1 of floating-point operands.
#define GRETA_BYTE_PRODUCT(T, Sum, x, types, signs, columns, count, n0, n1, n2)                   \
  template <bool add>                                                                             \
  GRETA_DEVICE void multiply_bytes(T, ByteSums<columns, Sum>& sums, OperandPlace a, OperandPlace b) { \
    asm volatile("{\n.reg .pred add;\nsetp.ne.u32 add, %" #n2 ", 0;\n"                           \
                 "wgmma.mma_async.sync.aligned.m64n" #columns "k32" types "\n"                    \
                 "{" GRETA_NAMES_##count "}, %" #n0 ", %" #n1 ", add" signs ";\n}"                \
                 : GRETA_SUMS_##count(x, sums.eight)                                              \
                 : "l"(a), "l"(b), "n"(int(add)));                                                \
  }
#define GRETA_BYTE_PRODUCTS(...)                                                                    \
  GRETA_BYTE_PRODUCT(E4m3, float, GRETA_FLOAT, ".f32.e4m3.e4m3", ", 1, 1", __VA_ARGS__)             \
  GRETA_BYTE_PRODUCT(E5m2, float, GRETA_FLOAT, ".f32.e5m2.e5m2", ", 1, 1", __VA_ARGS__)             \
  GRETA_BYTE_PRODUCT(Int8, int, GRETA_INTEGER, ".s32.s8.s8", "", __VA_ARGS__)
GRETA_BYTE_PRODUCTS(8, 4, 4, 5, 6)
GRETA_BYTE_PRODUCTS(16, 8, 8, 9, 10)
GRETA_BYTE_PRODUCTS(32, 16, 16, 17, 18)
GRETA_BYTE_PRODUCTS(64, 32, 32, 33, 34)
GRETA_BYTE_PRODUCTS(96, 48, 48, 49, 50)
GRETA_BYTE_PRODUCTS(128, 64, 64, 65, 66)
GRETA_BYTE_PRODUCTS(160, 80, 80, 81, 82)
GRETA_BYTE_PRODUCTS(192, 96, 96, 97, 98)
GRETA_BYTE_PRODUCTS(224, 112, 112, 113, 114)
GRETA_BYTE_PRODUCTS(256, 128, 128, 129, 130)
#undef GRETA_BYTE_PRODUCTS
#undef GRETA_BYTE_PRODUCT

#endif
