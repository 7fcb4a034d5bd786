#include "tuner/isa/scalar_semantics.hpp"

#include <bit>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace greta::tuner {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;
using I32 = std::int32_t;
using I64 = std::int64_t;

/// The sources of an operation. `scc` is that of carries.
struct ScalarSources {
  U64 a, b;
  bool scc;
};
struct ScalarOutcome {
  U64 value = 0;
  std::optional<bool> scc{};
};

/// An operation that needs all of its sources.
struct ScalarArithmetic {
  U32 words, a_words, b_words;  ///< of the result and the sources
  bool reads_scc;
  ScalarOutcome (*run)(const ScalarSources&);
  bool reads_result = false;  ///< the result's register is the first source: s_addk_i32
};

ScalarOutcome with_nonzero(U64 value) {
  return {value, value != 0};
}

float float_of(U64 bits) {
  return std::bit_cast<float>(static_cast<U32>(bits));
}

U64 bits_of_float(float value) {
  return std::bit_cast<U32>(value);
}

I64 imm16(U64 value) {
  return static_cast<std::int16_t>(value);
}

ScalarOutcome add_u32(const ScalarSources& s) {
  const U64 sum = (s.a & UINT32_MAX) + (s.b & UINT32_MAX);
  return {sum & UINT32_MAX, sum > UINT32_MAX};
}
ScalarOutcome addc_u32(const ScalarSources& s) {
  const U64 sum = (s.a & UINT32_MAX) + (s.b & UINT32_MAX) + (s.scc ? 1 : 0);
  return {sum & UINT32_MAX, sum > UINT32_MAX};
}
ScalarOutcome sub_u32(const ScalarSources& s) {
  return {(s.a - s.b) & UINT32_MAX, (s.b & UINT32_MAX) > (s.a & UINT32_MAX)};
}
ScalarOutcome subb_u32(const ScalarSources& s) {
  const U64 less = (s.b & UINT32_MAX) + (s.scc ? 1 : 0);
  return {(s.a - less) & UINT32_MAX, less > (s.a & UINT32_MAX)};
}
/// The carries of signed sums are overflows.
ScalarOutcome add_i32(const ScalarSources& s) {
  const I64 sum = I64{static_cast<I32>(s.a)} + static_cast<I32>(s.b);
  return {static_cast<U32>(sum), sum != static_cast<I32>(sum)};
}
ScalarOutcome sub_i32(const ScalarSources& s) {
  const I64 sum = I64{static_cast<I32>(s.a)} - static_cast<I32>(s.b);
  return {static_cast<U32>(sum), sum != static_cast<I32>(sum)};
}
U64 bit_field(U64 value, U64 description) {
  const U32 shift = description & 31, width = description >> 16 & 127;
  const U64 moved = (value & UINT32_MAX) >> shift;
  return width >= 32 ? moved : moved & ((1ULL << width) - 1);
}

using ScalarTable = std::unordered_map<std::string_view, ScalarArithmetic>;

void add_sums(ScalarTable& table) {
  table["s_add_u32"] = table["s_add_co_u32"] = {1, 1, 1, false, add_u32};
  table["s_addc_u32"] = table["s_add_co_ci_u32"] = {1, 1, 1, true, addc_u32};
  table["s_sub_u32"] = table["s_sub_co_u32"] = {1, 1, 1, false, sub_u32};
  table["s_subb_u32"] = table["s_sub_co_ci_u32"] = {1, 1, 1, true, subb_u32};
  table["s_add_i32"] = table["s_add_co_i32"] = {1, 1, 1, false, add_i32};
  table["s_sub_i32"] = table["s_sub_co_i32"] = {1, 1, 1, false, sub_i32};
  table["s_add_nc_u64"] = table["s_add_u64"] = {
      2, 2, 2, false, [](const ScalarSources& s) { return ScalarOutcome{s.a + s.b}; }};
  table["s_sub_nc_u64"] = table["s_sub_u64"] = {
      2, 2, 2, false, [](const ScalarSources& s) { return ScalarOutcome{s.a - s.b}; }};
  const auto add_immediate = [](const ScalarSources& s) {
    return add_i32({s.a, static_cast<U64>(imm16(s.b)), false});
  };
  table["s_addk_i32"] = table["s_addk_co_i32"] = {1, 1, 1, false, add_immediate, true};
  table["s_mul_i32"] = {1, 1, 1, false, [](const ScalarSources& s) {
                          return ScalarOutcome{(s.a * s.b) & UINT32_MAX};
                        }};
  table["s_mulk_i32"] = {1,
                         1,
                         1,
                         false,
                         [](const ScalarSources& s) {
                           return ScalarOutcome{(s.a * static_cast<U64>(imm16(s.b))) & UINT32_MAX};
                         },
                         true};
  table["s_mul_hi_u32"] = {1, 1, 1, false, [](const ScalarSources& s) {
                             return ScalarOutcome{(s.a & UINT32_MAX) * (s.b & UINT32_MAX) >> 32};
                           }};
  table["s_mul_hi_i32"] = {1, 1, 1, false, [](const ScalarSources& s) {
                             const I64 product = I64{static_cast<I32>(s.a)} * static_cast<I32>(s.b);
                             return ScalarOutcome{static_cast<U32>(product >> 32)};
                           }};
  table["s_mul_u64"] = {2, 2, 2, false,
                        [](const ScalarSources& s) { return ScalarOutcome{s.a * s.b}; }};
}

void add_shifts(ScalarTable& table) {
  table["s_lshl_b32"] = {1, 1, 1, false, [](const ScalarSources& s) {
                           return with_nonzero(s.a << (s.b & 31) & UINT32_MAX);
                         }};
  table["s_lshr_b32"] = {1, 1, 1, false, [](const ScalarSources& s) {
                           return with_nonzero((s.a & UINT32_MAX) >> (s.b & 31));
                         }};
  table["s_ashr_i32"] = {
      1, 1, 1, false, [](const ScalarSources& s) {
        return with_nonzero(static_cast<U32>(static_cast<I32>(s.a) >> (s.b & 31)));
      }};
  table["s_lshl_b64"] = {2, 2, 1, false,
                         [](const ScalarSources& s) { return with_nonzero(s.a << (s.b & 63)); }};
  table["s_lshr_b64"] = {2, 2, 1, false,
                         [](const ScalarSources& s) { return with_nonzero(s.a >> (s.b & 63)); }};
  table["s_ashr_i64"] = {
      2, 2, 1, false, [](const ScalarSources& s) {
        return with_nonzero(static_cast<U64>(static_cast<I64>(s.a) >> (s.b & 63)));
      }};
  table["s_bfe_u32"] = {1, 1, 1, false,
                        [](const ScalarSources& s) { return with_nonzero(bit_field(s.a, s.b)); }};
  table["s_lshl1_add_u32"] = {1, 1, 1, false, [](const ScalarSources& s) {
                                return add_u32({s.a << 1 & UINT32_MAX, s.b, false});
                              }};
  table["s_lshl2_add_u32"] = {1, 1, 1, false, [](const ScalarSources& s) {
                                return add_u32({s.a << 2 & UINT32_MAX, s.b, false});
                              }};
  table["s_lshl3_add_u32"] = {1, 1, 1, false, [](const ScalarSources& s) {
                                return add_u32({s.a << 3 & UINT32_MAX, s.b, false});
                              }};
  table["s_lshl4_add_u32"] = {1, 1, 1, false, [](const ScalarSources& s) {
                                return add_u32({s.a << 4 & UINT32_MAX, s.b, false});
                              }};
  table["s_min_u32"] = {1, 1, 1, false, [](const ScalarSources& s) {
                          const bool first = static_cast<U32>(s.a) < static_cast<U32>(s.b);
                          return ScalarOutcome{first ? s.a : s.b, first};
                        }};
  table["s_max_u32"] = {1, 1, 1, false, [](const ScalarSources& s) {
                          const bool first = static_cast<U32>(s.a) >= static_cast<U32>(s.b);
                          return ScalarOutcome{first ? s.a : s.b, first};
                        }};
  table["s_min_i32"] = {1, 1, 1, false, [](const ScalarSources& s) {
                          const bool first = static_cast<I32>(s.a) < static_cast<I32>(s.b);
                          return ScalarOutcome{first ? s.a : s.b, first};
                        }};
  table["s_max_i32"] = {1, 1, 1, false, [](const ScalarSources& s) {
                          const bool first = static_cast<I32>(s.a) >= static_cast<I32>(s.b);
                          return ScalarOutcome{first ? s.a : s.b, first};
                        }};
  table["s_movk_i32"] = {1, 1, 1, false, [](const ScalarSources& s) {
                           return ScalarOutcome{static_cast<U32>(imm16(s.a))};
                         }};
  table["s_pack_ll_b32_b16"] = {1, 1, 1, false, [](const ScalarSources& s) {
                                  return ScalarOutcome{(s.a & 0xFFFF) | (s.b & 0xFFFF) << 16};
                                }};
}

/// Divisions by numbers that are not constant estimate the quotient in floating point.
void add_floats(ScalarTable& table) {
  table["s_cvt_f32_u32"] = {
      1, 1, 1, false, [](const ScalarSources& s) {
        return ScalarOutcome{bits_of_float(static_cast<float>(static_cast<U32>(s.a)))};
      }};
  table["s_cvt_u32_f32"] = {
      1, 1, 1, false, [](const ScalarSources& s) {
        const float x = float_of(s.a);
        const bool fits = x >= 0 && x < 4294967296.0F;
        return ScalarOutcome{fits ? static_cast<U32>(x) : x > 0 ? UINT32_MAX : 0};
      }};
  table["s_mul_f32"] = {1, 1, 1, false, [](const ScalarSources& s) {
                          return ScalarOutcome{bits_of_float(float_of(s.a) * float_of(s.b))};
                        }};
  table["v_s_rcp_f32"] = {1, 1, 1, false, [](const ScalarSources& s) {
                            return ScalarOutcome{bits_of_float(1 / float_of(s.a))};
                          }};
}

const ScalarTable& scalar_arithmetic() {
  static const ScalarTable table = [] {
    ScalarTable made;
    add_sums(made);
    add_shifts(made);
    add_floats(made);
    return made;
  }();
  return table;
}

/// Operations on bits, whose results may be known in part.
using BitwiseOperation = ScalarValue (*)(const ScalarValue&, const ScalarValue&);

ScalarValue inverse_bits(const ScalarValue& a) {
  return {~a.value, a.known};
}
ScalarValue both_bits(const ScalarValue& a, const ScalarValue& b) {
  const U64 zero = (a.known & ~a.value) | (b.known & ~b.value);
  return {a.value & b.value & ~zero, (a.known & b.known) | zero};
}
ScalarValue either_bit(const ScalarValue& a, const ScalarValue& b) {
  return inverse_bits(both_bits(inverse_bits(a), inverse_bits(b)));
}
ScalarValue different_bits(const ScalarValue& a, const ScalarValue& b) {
  return {a.value ^ b.value, a.known & b.known};
}

const std::unordered_map<std::string_view, BitwiseOperation>& bitwise_operations() {
  static const std::unordered_map<std::string_view, BitwiseOperation> table{
      {"and", both_bits},
      {"or", either_bit},
      {"xor", different_bits},
      {"andn2", [](const auto& a, const auto& b) { return both_bits(a, inverse_bits(b)); }},
      {"and_not1", [](const auto& a, const auto& b) { return both_bits(a, inverse_bits(b)); }},
      {"orn2", [](const auto& a, const auto& b) { return either_bit(a, inverse_bits(b)); }},
      {"or_not1", [](const auto& a, const auto& b) { return either_bit(a, inverse_bits(b)); }},
      {"nand", [](const auto& a, const auto& b) { return inverse_bits(both_bits(a, b)); }},
      {"nor", [](const auto& a, const auto& b) { return inverse_bits(either_bit(a, b)); }},
      {"xnor", [](const auto& a, const auto& b) { return inverse_bits(different_bits(a, b)); }},
  };
  return table;
}

Truth is_nonzero(const ScalarValue& value, U32 words) {
  const U64 mask = words == 2 ? UINT64_MAX : UINT32_MAX;
  if ((value.value & value.known & mask) != 0) return Truth::yes;
  return (~value.known & mask) == 0 ? Truth::no : Truth::unknown;
}

/// Runs "s_and_b64", "s_and_saveexec_b64" and the like; false for other names.
bool run_bitwise(const IsaOperation& operation, WaveState& state) {
  std::string_view name = operation.mnemonic;
  const bool wide = name.ends_with("_b64");
  if ((!wide && !name.ends_with("_b32")) || operation.operands.size() < 2) return false;
  const U32 words = wide ? 2 : 1;
  name = name.substr(2, name.size() - 6);
  const auto a = state.scalar_of(operation.operands[1], words);
  if (name == "mov" || name == "not") {
    const ScalarValue value = name == "mov" ? a : inverse_bits(a);
    state.set_scalar(operation.operands[0], words, value);
    if (name == "not") state.scc = is_nonzero(value, words);
    return true;
  }
  constexpr std::string_view saves = "_saveexec";
  const bool saving = name.ends_with(saves);
  if (saving) name.remove_suffix(saves.size());
  const auto found = bitwise_operations().find(name);
  if (found == bitwise_operations().end() || (!saving && operation.operands.size() < 3))
    return false;
  const auto b =
      saving ? state.scalar_of(state.exec(), words) : state.scalar_of(operation.operands[2], words);
  const ScalarValue value = found->second(a, b);
  if (saving) state.set_scalar(operation.operands[0], words, b);
  state.set_scalar(saving ? state.exec() : operation.operands[0], words, value);
  state.scc = is_nonzero(value, words);
  return true;
}

/// Compares as "lt_u32", "eq_u64" …; nothing for other names.
std::optional<bool> scalar_relation(std::string_view name, U64 a, U64 b) {
  const auto type = name.substr(name.rfind('_') + 1), relation = name.substr(0, name.rfind('_'));
  I64 order = 0;
  if (type == "i32") {
    order = I64{static_cast<I32>(a)} - static_cast<I32>(b);
  } else if (type == "u32") {
    order = static_cast<I64>(a & UINT32_MAX) - static_cast<I64>(b & UINT32_MAX);
  } else if (type == "u64") {
    order = a == b ? 0 : a < b ? -1 : 1;
  } else {
    return std::nullopt;
  }
  if (relation == "eq") return order == 0;
  if (relation == "lg") return order != 0;
  if (relation == "lt") return order < 0;
  if (relation == "le") return order <= 0;
  if (relation == "gt") return order > 0;
  if (relation == "ge") return order >= 0;
  return std::nullopt;
}

/// Runs "s_cmp_lt_u32", "s_cmpk_eq_i32", "s_bitcmp1_b32"; false for other names.
bool run_compare(const IsaOperation& operation, WaveState& state) {
  const std::string_view name = operation.mnemonic;
  const bool bit = name.starts_with("s_bitcmp");
  if (!bit && !name.starts_with("s_cmp_") && !name.starts_with("s_cmpk_")) return false;
  state.scc = Truth::unknown;
  if (operation.operands.size() < 2) return true;
  const U32 words = name.ends_with("64") ? 2 : 1;
  const auto a = state.scalar_of(operation.operands[0], words);
  const auto b = state.scalar_of(operation.operands[1], bit ? 1 : words);
  if (!a.all_known(words) || !b.all_known(bit ? 1 : words)) return true;
  if (bit) {
    const bool set = (a.value >> (b.value & (words == 2 ? 63 : 31)) & 1) != 0;
    state.scc = set == name.starts_with("s_bitcmp1") ? Truth::yes : Truth::no;
    return true;
  }
  const bool immediate = name.starts_with("s_cmpk_");
  const bool sign = immediate && name.ends_with("i32");
  const U64 right = sign ? static_cast<U64>(imm16(b.value)) : b.value;
  const auto holds = scalar_relation(name.substr(immediate ? 7 : 6), a.value, right);
  if (holds) state.scc = *holds ? Truth::yes : Truth::no;
  return true;
}

/// Runs s_cselect and s_cmov; false for other names.
bool run_select(const IsaOperation& operation, WaveState& state) {
  const std::string_view name = operation.mnemonic;
  const auto& operands = operation.operands;
  if (!name.starts_with("s_cselect_") || operands.size() < 3) return false;
  const U32 words = name.ends_with("64") ? 2 : 1;
  const auto a = state.scalar_of(operands[1], words), b = state.scalar_of(operands[2], words);
  const U64 same = a.known & b.known & ~(a.value ^ b.value);
  const ScalarValue value = state.scc == Truth::yes  ? a
                            : state.scc == Truth::no ? b
                                                     : ScalarValue{a.value & same, same};
  state.set_scalar(operands[0], words, value);
  return true;
}

}  // namespace

void run_scalar(const IsaOperation& operation, WaveState& state) {
  if (run_compare(operation, state) || run_select(operation, state) ||
      run_bitwise(operation, state)) {
    return;
  }
  const auto& operands = operation.operands;
  const auto found = scalar_arithmetic().find(operation.mnemonic);
  const bool carries = found != scalar_arithmetic().end() && found->second.reads_scc;
  const Truth scc = state.scc;
  if (operands.empty()) return;
  if (found == scalar_arithmetic().end() || operands.size() < 2 ||
      (carries && scc == Truth::unknown)) {
    state.forget(operands[0]);
    state.scc = Truth::unknown;
    return;
  }
  const ScalarArithmetic& made = found->second;
  const bool unary = operands.size() == 2 && !made.reads_result;
  const auto a = state.scalar_of(made.reads_result ? operands[0] : operands[1], made.a_words);
  const auto b =
      unary ? ScalarValue{0, UINT64_MAX} : state.scalar_of(operands.back(), made.b_words);
  if (!a.all_known(made.a_words) || !b.all_known(made.b_words)) {
    state.set_scalar(operands[0], made.words, {});
    state.scc = Truth::unknown;
    return;
  }
  const ScalarOutcome outcome = made.run({a.value, b.value, scc == Truth::yes});
  state.set_scalar(operands[0], made.words, {outcome.value, UINT64_MAX});
  if (outcome.scc) state.scc = *outcome.scc ? Truth::yes : Truth::no;
}

}  // namespace greta::tuner
