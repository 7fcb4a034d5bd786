#include "tuner/isa/vector_arithmetic.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <unordered_map>

namespace greta::tuner {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;
using I32 = std::int32_t;

U32 low_word(U64 value) {
  return static_cast<U32>(value);
}
I32 as_signed(U64 value) {
  return static_cast<I32>(value);
}
U64 u24(U64 value) {
  return value & 0xFFFFFF;
}
float as_float(U64 bits) {
  return std::bit_cast<float>(low_word(bits));
}
U64 as_bits(float value) {
  return std::bit_cast<U32>(value);
}
U64 to_integer(float x) {
  if (!(x > 0)) return 0;
  return x < 4294967296.0F ? static_cast<U32>(x) : UINT32_MAX;
}
/// Returns one byte of eight: `b` has bytes 0 to 3, `a` 4 to 7; 12 is zero.
U32 chosen_byte(U64 a, U64 b, U32 selector) {
  if (selector >= 8) return selector == 12 ? 0 : 0xFF;
  return low_word((a << 32 | low_word(b)) >> 8 * selector) & 0xFF;
}

#define GRETA_LANE(name, expression)       \
  {                                        \
    name, [](U64 a, U64 b, U64 c) -> U64 { \
      (void)a, (void)b, (void)c;           \
      return expression;                   \
    }                                      \
  }

using LaneFunction = U64 (*)(U64, U64, U64);
struct NamedLane {
  std::string_view name;
  LaneFunction run;
};

constexpr NamedLane one_source[] = {
    GRETA_LANE("v_mov_b32", low_word(a)),
    GRETA_LANE("v_mov_b16", a & 0xFFFF),
    GRETA_LANE("v_not_b32", low_word(~a)),
    GRETA_LANE("v_bfrev_b32",
               [&] {
                 U32 reversed = 0;
                 for (int i = 0; i < 32; ++i) reversed |= low_word(a >> i & 1) << (31 - i);
                 return reversed;
               }()),
    GRETA_LANE("v_accvgpr_read_b32", low_word(a)),
    GRETA_LANE("v_accvgpr_write_b32", low_word(a)),
    GRETA_LANE("v_accvgpr_mov_b32", low_word(a)),
};

constexpr NamedLane two_sources[] = {
    GRETA_LANE("v_add_u32", low_word(a + b)),
    GRETA_LANE("v_sub_u32", low_word(a - b)),
    GRETA_LANE("v_subrev_u32", low_word(b - a)),
    GRETA_LANE("v_mul_lo_u32", low_word(a* b)),
    GRETA_LANE("v_mul_hi_u32", U64{low_word(a)} * low_word(b) >> 32),
    GRETA_LANE("v_mul_u32_u24", low_word(u24(a) * u24(b))),
    GRETA_LANE("v_mul_hi_u32_u24", u24(a) * u24(b) >> 32),
    GRETA_LANE("v_mul_i32_i24", low_word(static_cast<U64>((as_signed(a << 8) >> 8) *
                                                          std::int64_t{as_signed(b << 8) >> 8}))),
    GRETA_LANE("v_and_b32", low_word(a& b)),
    GRETA_LANE("v_or_b32", low_word(a | b)),
    GRETA_LANE("v_xor_b32", low_word(a ^ b)),
    GRETA_LANE("v_xnor_b32", low_word(~(a ^ b))),
    GRETA_LANE("v_lshlrev_b32", low_word(b << (a & 31))),
    GRETA_LANE("v_lshrrev_b32", low_word(b) >> (a & 31)),
    GRETA_LANE("v_ashrrev_i32", low_word(static_cast<U64>(as_signed(b) >> (a & 31)))),
    GRETA_LANE("v_min_u32", std::min(low_word(a), low_word(b))),
    GRETA_LANE("v_max_u32", std::max(low_word(a), low_word(b))),
    GRETA_LANE("v_min_i32", low_word(static_cast<U64>(std::min(as_signed(a), as_signed(b))))),
    GRETA_LANE("v_max_i32", low_word(static_cast<U64>(std::max(as_signed(a), as_signed(b))))),
    GRETA_LANE("v_lshlrev_b16", b << (a & 15) & 0xFFFF),
    GRETA_LANE("v_lshrrev_b16", (b & 0xFFFF) >> (a & 15)),
    GRETA_LANE("v_add_u16", (a + b) & 0xFFFF),
    GRETA_LANE("v_sub_u16", (a - b) & 0xFFFF),
    GRETA_LANE("v_mul_lo_u16", (a * b) & 0xFFFF),
    GRETA_LANE("v_and_b16", a& b & 0xFFFF),
    GRETA_LANE("v_or_b16", (a | b) & 0xFFFF),
    GRETA_LANE("v_bfm_b32", low_word(((1ULL << (a & 31)) - 1) << (b & 31))),
};

constexpr NamedLane three_sources[] = {
    GRETA_LANE("v_mad_u32_u24", low_word(u24(a) * u24(b) + c)),
    GRETA_LANE("v_mad_u16", (a * b + c) & 0xFFFF),
    GRETA_LANE("v_mad_legacy_u16", (a * b + c) & 0xFFFF),
    GRETA_LANE("v_mad_u32_u16", low_word((a & 0xFFFF) * (b & 0xFFFF) + c)),
    GRETA_LANE("v_add3_u32", low_word(a + b + c)),
    GRETA_LANE("v_lshl_add_u32", low_word((a << (b & 31)) + c)),
    GRETA_LANE("v_add_lshl_u32", low_word(a + b) << (c & 31)),
    GRETA_LANE("v_lshl_or_b32", low_word(a << (b & 31) | c)),
    GRETA_LANE("v_and_or_b32", low_word((a & b) | c)),
    GRETA_LANE("v_or3_b32", low_word(a | b | c)),
    GRETA_LANE("v_xor3_b32", low_word(a ^ b ^ c)),
    GRETA_LANE("v_xad_u32", low_word((a ^ b) + c)),
    GRETA_LANE("v_bfi_b32", low_word((a & b) | (~a & c))),
    GRETA_LANE("v_bfe_u32", (c & 31) == 0 ? 0 : low_word(a) >> (b & 31) & ((1ULL << (c & 31)) - 1)),
    GRETA_LANE("v_bfe_i32",
               (c & 31) == 0 ? 0
                             : low_word(static_cast<U64>(as_signed(low_word(low_word(a) >> (b & 31))
                                                                   << (32 - (c & 31))) >>
                                                         (32 - (c & 31))))),
    GRETA_LANE("v_alignbit_b32", low_word((a << 32 | low_word(b)) >> (c & 31))),
    GRETA_LANE("v_alignbyte_b32", low_word((a << 32 | low_word(b)) >> 8 * (c & 3))),
    GRETA_LANE("v_perm_b32", chosen_byte(a, b, c & 0xFF) | chosen_byte(a, b, c >> 8 & 0xFF) << 8 |
                                 chosen_byte(a, b, c >> 16 & 0xFF) << 16 |
                                 chosen_byte(a, b, c >> 24 & 0xFF) << 24),
    GRETA_LANE("v_min3_u32", std::min({low_word(a), low_word(b), low_word(c)})),
    GRETA_LANE("v_max3_u32", std::max({low_word(a), low_word(b), low_word(c)})),
};

constexpr NamedLane of_floats[] = {
    GRETA_LANE("v_cvt_f32_u32", as_bits(static_cast<float>(low_word(a)))),
    GRETA_LANE("v_cvt_f32_i32", as_bits(static_cast<float>(as_signed(a)))),
    GRETA_LANE("v_cvt_f32_ubyte0", as_bits(static_cast<float>(a & 0xFF))),
    GRETA_LANE("v_cvt_u32_f32", to_integer(as_float(a))),
    GRETA_LANE("v_rcp_iflag_f32", as_bits(1 / as_float(a))),
    GRETA_LANE("v_rcp_f32", as_bits(1 / as_float(a))),
    GRETA_LANE("v_trunc_f32", as_bits(std::trunc(as_float(a)))),
    GRETA_LANE("v_mul_f32", as_bits(as_float(a) * as_float(b))),
    GRETA_LANE("v_add_f32", as_bits(as_float(a) + as_float(b))),
    GRETA_LANE("v_sub_f32", as_bits(as_float(a) - as_float(b))),
    GRETA_LANE("v_fma_f32", as_bits(std::fma(as_float(a), as_float(b), as_float(c)))),
    GRETA_LANE("v_mad_f32", as_bits(std::fma(as_float(a), as_float(b), as_float(c)))),
};

#undef GRETA_LANE

using LaneTable = std::unordered_map<std::string_view, LaneArithmetic>;

/// Operations on 64 bits.
void add_wide(LaneTable& table) {
  table["v_lshlrev_b64"] = {2, {1, 2, 0}, false, [](U64 a, U64 b, U64) { return b << (a & 63); }};
  table["v_lshrrev_b64"] = {2, {1, 2, 0}, false, [](U64 a, U64 b, U64) { return b >> (a & 63); }};
  table["v_ashrrev_i64"] = {2, {1, 2, 0}, false, [](U64 a, U64 b, U64) {
                              return static_cast<U64>(static_cast<std::int64_t>(b) >> (a & 63));
                            }};
  table["v_lshl_add_u64"] = {
      2, {2, 1, 2}, false, [](U64 a, U64 b, U64 c) { return (a << (b & 7)) + c; }};
  table["v_mov_b64"] = {2, {2, 0, 0}, false, [](U64 a, U64, U64) { return a; }};
  table["v_add_u64"] = {2, {2, 2, 0}, false, [](U64 a, U64 b, U64) { return a + b; }};
}

const LaneTable& lane_table() {
  static const LaneTable made = [] {
    LaneTable all;
    for (const NamedLane& one : one_source) all[one.name] = {1, {1, 0, 0}, false, one.run};
    for (const NamedLane& one : two_sources) all[one.name] = {1, {1, 1, 0}, false, one.run};
    for (const NamedLane& one : three_sources) all[one.name] = {1, {1, 1, 1}, false, one.run};
    for (const NamedLane& one : of_floats) {
      const bool fused = one.name == "v_fma_f32" || one.name == "v_mad_f32";
      const bool two =
          one.name == "v_mul_f32" || one.name == "v_add_f32" || one.name == "v_sub_f32";
      all[one.name] = {1, {1, fused || two ? 1U : 0U, fused ? 1U : 0U}, true, one.run};
    }
    add_wide(all);
    return all;
  }();
  return made;
}

}  // namespace

const LaneArithmetic* lane_arithmetic(std::string_view mnemonic) {
  auto found = lane_table().find(mnemonic);
  if (found != lane_table().end()) return &found->second;
  // "v_dual_mov_b32" is v_mov_b32, and RDNA's "v_add_nc_u32" v_add_u32.
  std::string name(mnemonic);
  for (const std::string_view part : {"_dual", "_nc"}) {
    if (const auto at = name.find(part); at != std::string::npos) name.erase(at, part.size());
  }
  found = lane_table().find(name);
  return found == lane_table().end() ? nullptr : &found->second;
}

}  // namespace greta::tuner
