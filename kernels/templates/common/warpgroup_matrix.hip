// Matrix cores that read their operands from shared memory: D += A B by a warpgroup, four waves of
// sm_90. A has 64 rows, B 8 to 256 columns, the dot products are 16 long; the sums stay in registers
// and the products run beside the threads, which must not touch either until they waited.
//
//   PanelTile                  how an operand's tile lies in shared memory
//   OperandPlace               a part of such a tile, as the instruction names it
//   WarpgroupSums<columns>     D, spread over the registers of four waves
//   multiply_async(T(), …)     sums += a b, started; of several, in order; A may lie in registers
//   multiply_async(…)          the same on TF32, 8 long: A lies in registers, B along k
//   show_to_products()         in front of a barrier: this thread's copies can be read by products
//   products_begin()           in front of the first of a group: registers and memory are ready
//   close_products()           the products started since are a group
//   wait_for_products<n>()     all groups but the latest n are done
//   finish_products(sums)      all are, and the sums may be read
//   claim_sums(sums)           after a wait: these sums may be read
//
// Source: PTX ISA, "Asynchronous warpgroup level matrix instructions": wgmma.mma_async, its matrix
// descriptor, and the layouts of the tiles, which are called K-major and MN-major there.
#pragma once

#include "common/matrix.hip"
#include "common/warpgroup_sums.hip"

#if !defined(__CUDA_ARCH_FEAT_SM90_ALL) && !(defined(GRETA_HOST) && GRETA_HOST == 80)
#error "only sm_90a has matrix instructions of warpgroups"
#endif

// In a kernel's body: dynamic shared memory that starts where a PanelTile can.
#if defined(GRETA_HOST)
#define GRETA_PANELS_SHARED GRETA_DYNAMIC_SHARED
#else
#define GRETA_PANELS_SHARED(type, name) extern __shared__ __attribute__((aligned(1024))) type name[]
#endif

constexpr u32 warpgroup_size = 4 * wave_size;

// Which warpgroup of the block this is; the compiler is told that it is the same for a whole wave. All lanes
// of the wave ask at the same time.
GRETA_DEVICE u32 warpgroup_index() { return shuffle(thread_index() / warpgroup_size, 0); }

// Lines of 16-byte chunks, in panels of `width` chunks: all lines of one panel lie one behind the
// other. In a panel, chunks trade places so that eight lines of one chunk hit all banks: the 128, 64
// or 32 byte swizzle of the instruction. A tile starts at a multiple of 1024 bytes.
template <u32 lines, u32 line_chunks>
struct PanelTile {
  // Panels of 128, 64 or 32 bytes.
  static constexpr u32 width = line_chunks % 8 == 0 ? 8 : line_chunks % 4 == 0 ? 4 : 2;
  static_assert(lines % 8 == 0 && line_chunks % width == 0, "whole panels, whole groups of lines");
  static constexpr u32 bytes = lines * line_chunks * 16;
  static constexpr u32 line_bytes = width * 16;
  static constexpr u32 group_bytes = 8 * line_bytes;  // of eight lines
  static constexpr u32 panel_bytes = lines * line_bytes;
  template <bool along_k>
  static constexpr u32 leading_bytes = along_k ? 16 : panel_bytes;

  // Bytes to element k of row or column `span`, chunks not swizzled: along_k says whether these are
  // the lines, or the k are.
  template <bool along_k>
  static GRETA_DEVICE constexpr u32 part(u32 span, u32 k) {
    const u32 line = along_k ? span : k, byte = (along_k ? k : span) * 2;
    return byte / line_bytes * panel_bytes + byte % line_bytes + line * line_bytes;
  }

  // The chunk of its panel that belongs to a place of a line.
  static GRETA_DEVICE constexpr u32 chunk_at(u32 line, u32 place) {
    return place ^ line * width / 8 % width;
  }
};

#if defined(GRETA_HOST)
typedef greta_host::MatrixDescriptor OperandPlace;
#else
typedef u64 OperandPlace;
#endif

// A part of a tile, from byte `start` of shared memory on. Lines along k: rows of A or columns of B
// are lines, a multiple of 8 into the tile, and k starts a multiple of 16 into a panel. Lines across
// k: rows or columns start with a panel, and k a multiple of 16 lines into it.
template <typename Tile, bool along_k>
GRETA_DEVICE OperandPlace operand_place(SharedMemory shared, u32 start) {
  // From one panel to the next along the line, and from eight lines to the next eight.
  constexpr u32 leading = Tile::template leading_bytes<along_k>, stride = Tile::group_bytes;
#if defined(GRETA_HOST)
  return {shared.bytes, start, leading, stride, Tile::width};
#else
  constexpr u32 swizzle = Tile::width == 8 ? 1 : Tile::width == 4 ? 2 : Tile::width == 2 ? 3 : 0;
  // An address has 18 bits; those above are the block's number in its cluster.
  const u32 low = ((shared.address & 0x3ffff) + start) / 16 | leading / 16 << 16;
  return u64(stride / 16 | swizzle << 30) << 32 | low;
#endif
}

// The place that many bytes further, a multiple of 16, in the same shared memory.
GRETA_DEVICE OperandPlace further(OperandPlace place, u32 bytes) {
#if defined(GRETA_HOST)
  place.start += bytes;
  return place;
#else
  return place >> 32 << 32 | u32(u32(place) + bytes / 16);  // what is added stays in the address
#endif
}

// Wave w of the warpgroup has rows 16 w to 16 w + 15, a lane of them two, eight apart.
template <u32 columns>
struct WarpgroupSums {
  float eight[columns / 8][4];  // of eight columns: two neighbours of each row
};

// `width` columns of the wave's 16 rows, from column `first` on, as rows `pitch` floats apart.
template <u32 width, u32 columns>
GRETA_DEVICE void store_sums(const WarpgroupSums<columns>& sums, u32 first, float* to, u32 pitch) {
  const u32 lane = lane_index();
  GRETA_UNROLL
  for (u32 c = 0; c < width; c += 8) {
    const float(&eight)[4] = sums.eight[(first + c) / 8];
    GRETA_UNROLL
    for (u32 half = 0; half < 2; ++half) {
      float* const at = to + (lane / 4 + half * 8) * pitch + c + lane % 4 * 2;
      store_words<8>(at, {{bits_of(eight[half * 2]), bits_of(eight[half * 2 + 1])}});
    }
  }
}

// `width` columns of the wave's 16 rows, from column `first` on, transposed: columns become rows,
// which are `pitch` floats apart.
template <u32 width, u32 columns>
GRETA_DEVICE void store_transposed_sums(const WarpgroupSums<columns>& sums, u32 first, float* to,
                                        u32 pitch) {
  const u32 lane = lane_index();
  GRETA_UNROLL
  for (u32 c = 0; c < width; c += 8) {
    GRETA_UNROLL
    for (u32 i = 0; i < 4; ++i) {
      to[(c + lane % 4 * 2 + i % 2) * pitch + lane / 4 + i / 2 * 8] =
          sums.eight[(first + c) / 8][i];
    }
  }
}

#if defined(GRETA_HOST)

GRETA_DEVICE void products_begin() {}
GRETA_DEVICE void close_products() { greta_host::wgmma_commit(); }
GRETA_DEVICE void show_to_products() {}
template <int pending>
GRETA_DEVICE void wait_for_products() {
  greta_host::wgmma_wait(pending);
}
template <u32 rows, u32 columns>
GRETA_DEVICE void finish_products(WarpgroupSums<columns> (&)[rows]) {
  wait_for_products<0>();
}

template <u32 columns>
GRETA_DEVICE void claim_sums(WarpgroupSums<columns>&) {}

template <bool a_along_k, bool b_along_k, bool add, typename T, u32 columns>
GRETA_DEVICE void multiply_async(T, WarpgroupSums<columns>& sums, OperandPlace a, OperandPlace b) {
  auto& d = reinterpret_cast<float(&)[columns / 2]>(sums);
  if constexpr (same_type<T, f16>) {
    greta_host::wgmma_m64k16_f16(d, a, b, !a_along_k, !b_along_k, add);
  } else {
    greta_host::wgmma_m64k16_bf16(d, a, b, !a_along_k, !b_along_k, add);
  }
}
template <bool b_along_k, bool add, typename T, u32 columns>
GRETA_DEVICE void multiply_async(T, WarpgroupSums<columns>& sums, const u32 (&a)[4],
                                 OperandPlace b) {
  auto& d = reinterpret_cast<float(&)[columns / 2]>(sums);
  if constexpr (same_type<T, f16>) {
    greta_host::wgmma_m64k16_f16(d, a, b, !b_along_k, add);
  } else {
    greta_host::wgmma_m64k16_bf16(d, a, b, !b_along_k, add);
  }
}

// TF32 of which A has four words, and B lies along k.
template <bool add, u32 columns>
GRETA_DEVICE void multiply_async(WarpgroupSums<columns>& sums, const u32 (&a)[4], OperandPlace b) {
  greta_host::wgmma_m64k8_tf32(reinterpret_cast<float(&)[columns / 2]>(sums), a, b, add);
}

#else

GRETA_DEVICE void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

GRETA_DEVICE void close_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Products behind the next barrier can read what this thread wrote or copied to shared memory.
GRETA_DEVICE void show_to_products() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

template <int pending>
GRETA_DEVICE void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

// Nothing reads the sums ahead of this.
template <u32 columns>
GRETA_DEVICE void claim_sums(WarpgroupSums<columns>& sums) {
  GRETA_UNROLL
  for (u32 c = 0; c < columns / 8; ++c) {
    float(&d)[4] = sums.eight[c];
    asm volatile("" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])::"memory");
  }
}

template <u32 rows, u32 columns>
GRETA_DEVICE void finish_products(WarpgroupSums<columns> (&sums)[rows]) {
  wait_for_products<0>();
  GRETA_UNROLL
  for (u32 i = 0; i < rows; ++i) claim_sums(sums[i]);
}

// `count` sums of a lane: half as many as there are columns. n0 to n6 name the operands after them.
#define GRETA_PRODUCT(depth, type, columns, count, a_names, b_name, turns, add_name, ...)   \
  asm volatile("{\n.reg .pred add;\nsetp.ne.u32 add, %" #add_name ", 0;\n"                 \
               "wgmma.mma_async.sync.aligned.m64n" #columns "k" depth ".f32." type "." type "\n"   \
               "{" GRETA_NAMES_##count "}, " a_names ", %" #b_name ", add, 1, 1" turns ";\n}" \
               : GRETA_SUMS_##count(GRETA_FLOAT, sums.eight)                                \
               : __VA_ARGS__)
#define GRETA_PRODUCTS_OF(T, type, columns, count, n0, n1, n2, n3, n4, n5, n6)                  \
  template <bool a_along_k, bool b_along_k, bool add>                                          \
  GRETA_DEVICE void multiply_async(T, WarpgroupSums<columns>& sums, OperandPlace a,            \
                                   OperandPlace b) {                                           \
    GRETA_PRODUCT("16", type, columns, count, "%" #n0, n1, ", %" #n2 ", %" #n3, n4, "l"(a), "l"(b),  \
                  "n"(int(!a_along_k)), "n"(int(!b_along_k)), "n"(int(add)));                  \
  }                                                                                            \
  template <bool b_along_k, bool add>                                                          \
  GRETA_DEVICE void multiply_async(T, WarpgroupSums<columns>& sums, const u32 (&a)[4],         \
                                   OperandPlace b) {                                           \
    GRETA_PRODUCT("16", type, columns, count, "{%" #n0 ", %" #n1 ", %" #n2 ", %" #n3 "}", n4,        \
                  ", %" #n5, n6, "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b),           \
                  "n"(int(!b_along_k)), "n"(int(add)));                                        \
  }
#define GRETA_TF32_PRODUCTS(columns, count, n0, n1, n2, n3, n4, n5, n6)                         \
  template <bool add>                                                                          \
  GRETA_DEVICE void multiply_async(WarpgroupSums<columns>& sums, const u32 (&a)[4],            \
                                   OperandPlace b) {                                           \
    GRETA_PRODUCT("8", "tf32", columns, count, "{%" #n0 ", %" #n1 ", %" #n2 ", %" #n3 "}", n4, \
                  "", n5, "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(int(add)));  \
  }
#define GRETA_PRODUCTS(columns, count, ...)                                                    \
  GRETA_PRODUCTS_OF(f16, "f16", columns, count, __VA_ARGS__)                                   \
  GRETA_PRODUCTS_OF(bf16, "bf16", columns, count, __VA_ARGS__)                                 \
  GRETA_TF32_PRODUCTS(columns, count, __VA_ARGS__)
GRETA_PRODUCTS(8, 4, 4, 5, 6, 7, 8, 9, 10)
GRETA_PRODUCTS(16, 8, 8, 9, 10, 11, 12, 13, 14)
GRETA_PRODUCTS(24, 12, 12, 13, 14, 15, 16, 17, 18)
GRETA_PRODUCTS(32, 16, 16, 17, 18, 19, 20, 21, 22)
GRETA_PRODUCTS(40, 20, 20, 21, 22, 23, 24, 25, 26)
GRETA_PRODUCTS(48, 24, 24, 25, 26, 27, 28, 29, 30)
GRETA_PRODUCTS(56, 28, 28, 29, 30, 31, 32, 33, 34)
GRETA_PRODUCTS(64, 32, 32, 33, 34, 35, 36, 37, 38)
GRETA_PRODUCTS(72, 36, 36, 37, 38, 39, 40, 41, 42)
GRETA_PRODUCTS(80, 40, 40, 41, 42, 43, 44, 45, 46)
GRETA_PRODUCTS(88, 44, 44, 45, 46, 47, 48, 49, 50)
GRETA_PRODUCTS(96, 48, 48, 49, 50, 51, 52, 53, 54)
GRETA_PRODUCTS(104, 52, 52, 53, 54, 55, 56, 57, 58)
GRETA_PRODUCTS(112, 56, 56, 57, 58, 59, 60, 61, 62)
GRETA_PRODUCTS(120, 60, 60, 61, 62, 63, 64, 65, 66)
GRETA_PRODUCTS(128, 64, 64, 65, 66, 67, 68, 69, 70)
GRETA_PRODUCTS(136, 68, 68, 69, 70, 71, 72, 73, 74)
GRETA_PRODUCTS(144, 72, 72, 73, 74, 75, 76, 77, 78)
GRETA_PRODUCTS(152, 76, 76, 77, 78, 79, 80, 81, 82)
GRETA_PRODUCTS(160, 80, 80, 81, 82, 83, 84, 85, 86)
GRETA_PRODUCTS(168, 84, 84, 85, 86, 87, 88, 89, 90)
GRETA_PRODUCTS(176, 88, 88, 89, 90, 91, 92, 93, 94)
GRETA_PRODUCTS(184, 92, 92, 93, 94, 95, 96, 97, 98)
GRETA_PRODUCTS(192, 96, 96, 97, 98, 99, 100, 101, 102)
GRETA_PRODUCTS(200, 100, 100, 101, 102, 103, 104, 105, 106)
GRETA_PRODUCTS(208, 104, 104, 105, 106, 107, 108, 109, 110)
GRETA_PRODUCTS(216, 108, 108, 109, 110, 111, 112, 113, 114)
GRETA_PRODUCTS(224, 112, 112, 113, 114, 115, 116, 117, 118)
GRETA_PRODUCTS(232, 116, 116, 117, 118, 119, 120, 121, 122)
GRETA_PRODUCTS(240, 120, 120, 121, 122, 123, 124, 125, 126)
GRETA_PRODUCTS(248, 124, 124, 125, 126, 127, 128, 129, 130)
GRETA_PRODUCTS(256, 128, 128, 129, 130, 131, 132, 133, 134)
#undef GRETA_PRODUCTS
#undef GRETA_PRODUCTS_OF
#undef GRETA_TF32_PRODUCTS
#undef GRETA_PRODUCT

#endif
