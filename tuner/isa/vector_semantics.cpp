#include "tuner/isa/vector_semantics.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include "tuner/isa/vector_arithmetic.hpp"

namespace greta::tuner {
namespace {

constexpr std::uint64_t sign_bit = 0x80000000U;

/// Applies "-" and "|…|" to a floating point source.
void apply_sign(const IsaOperand& operand, LaneValues& values) {
  for (std::uint64_t& lane : values.lane) {
    if (operand.absolute) lane &= ~sign_bit;
    if (operand.negated) lane ^= sign_bit;
  }
}

/// Selects the byte or half of a source that SDWA names: "src1_sel:BYTE_1".
void apply_selection(const IsaOperation& operation, std::string_view source, LaneValues& values) {
  const std::string_view all = operation.modifiers;
  const auto at = all.find(source);
  if (at == all.npos) return;
  const std::string_view selection = all.substr(at + source.size());
  const auto digit =
      static_cast<std::uint32_t>(selection[std::min<std::size_t>(5, selection.size() - 1)] - '0');
  for (std::uint64_t& lane : values.lane) {
    if (selection.starts_with("BYTE_")) lane = lane >> 8 * (digit & 3) & 0xFF;
    if (selection.starts_with("WORD_")) lane = lane >> 16 * (digit & 1) & 0xFFFF;
  }
}

/// Whether an encoding reads or writes other lanes, or parts of the result.
bool is_irregular(const IsaOperation& operation) {
  constexpr std::array<std::string_view, 11> words{"quad_perm",  "row_",  "wave_",   "dpp8",
                                                   "bound_ctrl", "clamp", "op_sel",  "sext(",
                                                   "mul:",       "div:",  "dst_sel:"};
  const std::string_view all = operation.modifiers;
  const bool halves =
      std::any_of(operation.operands.begin(), operation.operands.end(),
                  [](const IsaOperand& operand) { return operand.half != IsaOperand::Half::none; });
  return std::any_of(words.begin(), words.end(), [all, halves](std::string_view word) {
    const auto at = all.find(word);
    if (at == all.npos || (word == "op_sel" && halves)) return false;  // it says the same
    return word != "dst_sel:" || !all.substr(at + word.size()).starts_with("DWORD");
  });
}

void forget_results(const IsaOperation& operation, WaveState& state) {
  if (operation.operands.empty()) return;
  state.forget(operation.operands[0]);
  const std::string_view name = operation.mnemonic;
  // Instructions with a second result.
  const bool swaps = name.starts_with("v_swap") || name.find("_swap_") != name.npos;
  const bool carries = name.starts_with("v_div_scale") || name.find("_co_") != name.npos ||
                       name.starts_with("v_mad_u64") || name.starts_with("v_mad_i64");
  if ((swaps || carries) && operation.operands.size() > 1) state.forget(operation.operands[1]);
}

/// Runs an operation of the table; false for other names.
bool run_arithmetic(const IsaOperation& operation, WaveState& state) {
  const LaneArithmetic* const made = lane_arithmetic(operation.mnemonic);
  if (made == nullptr) return false;
  std::array<LaneValues, 3> sources;
  constexpr std::array<std::string_view, 3> selections{"src0_sel:", "src1_sel:", "src2_sel:"};
  std::uint64_t known = state.all_lanes();
  for (std::size_t i = 0; i < sources.size() && made->source_words[i] > 0; ++i) {
    if (i + 1 >= operation.operands.size()) return false;
    sources[i] = state.lanes_of(operation.operands[i + 1], made->source_words[i]);
    apply_selection(operation, selections[i], sources[i]);
    if (made->floats) apply_sign(operation.operands[i + 1], sources[i]);
    known &= sources[i].known;
  }
  LaneValues result;
  result.known = known;
  for (std::uint32_t i = 0; i < state.lanes(); ++i) {
    result.lane[i] = made->run(sources[0].lane[i], sources[1].lane[i], sources[2].lane[i]);
  }
  state.set_lanes(operation.operands[0], made->words, result);
  return true;
}

/// Runs v_bitop3_b32, whose truth table is a modifier; false for other names.
bool run_truth_table(const IsaOperation& operation, WaveState& state) {
  if (operation.mnemonic != "v_bitop3_b32" || operation.operands.size() < 4) return false;
  const std::uint32_t table = modifier(operation, "bitop3");
  std::array<LaneValues, 3> s;
  LaneValues result;
  result.known = state.all_lanes();
  for (std::size_t i = 0; i < 3; ++i) {
    s[i] = state.lanes_of(operation.operands[i + 1], 1);
    result.known &= s[i].known;
  }
  for (std::uint32_t lane = 0; lane < state.lanes(); ++lane) {
    for (std::uint32_t row = 0; row < 8; ++row) {
      if ((table >> row & 1) == 0) continue;
      std::uint64_t bits = UINT32_MAX;
      for (std::size_t i = 0; i < 3; ++i) {
        bits &= (row >> (2 - i) & 1) != 0 ? s[i].lane[lane] : ~s[i].lane[lane];
      }
      result.lane[lane] |= bits;
    }
  }
  state.set_lanes(operation.operands[0], 1, result);
  return true;
}

std::uint64_t bits_where(const WaveState& state, const LaneValues& a, const LaneValues& b,
                         const auto& holds) {
  std::uint64_t mask = 0;
  for (std::uint32_t i = 0; i < state.lanes(); ++i) {
    if (holds(a.lane[i], b.lane[i])) mask |= 1ULL << i;
  }
  return mask;
}

/// Compares integers as "lt_u32" says.
bool relation_holds(std::string_view name, std::uint64_t a, std::uint64_t b) {
  const auto type = name.substr(name.rfind('_') + 1), relation = name.substr(0, name.rfind('_'));
  const bool is_signed = type[0] == 'i';
  const std::uint32_t unused = type.ends_with("16") ? 48 : type.ends_with("32") ? 32 : 0;
  a <<= unused;
  b <<= unused;
  const bool less = is_signed ? static_cast<std::int64_t>(a) < static_cast<std::int64_t>(b) : a < b;
  if (relation == "lt") return less;
  if (relation == "le") return less || a == b;
  if (relation == "gt") return !less && a != b;
  if (relation == "ge") return !less;
  return (relation == "eq") == (a == b);
}

/// Runs v_cmp and v_cmpx; false for other names. Comparisons of floating point numbers are unknown.
bool run_comparison(const IsaOperation& operation, WaveState& state) {
  std::string_view name = operation.mnemonic;
  const bool executes = name.starts_with("v_cmpx_");
  if (!executes && !name.starts_with("v_cmp_")) return false;
  name.remove_prefix(executes ? 7 : 6);
  const auto& operands = operation.operands;
  if (operands.size() < 2) return true;
  const auto& a_operand = operands[operands.size() - 2];
  const auto& b_operand = operands.back();
  const auto type = name.substr(name.rfind('_') + 1);
  const bool integers = (type[0] == 'u' || type[0] == 'i') && !is_irregular(operation);
  const std::uint32_t words = type.ends_with("64") ? 2 : 1;
  auto a = state.lanes_of(a_operand, words), b = state.lanes_of(b_operand, words);
  apply_selection(operation, "src0_sel:", a);
  apply_selection(operation, "src1_sel:", b);
  const std::uint64_t active = state.active();
  ScalarValue mask;
  mask.value = active & bits_where(state, a, b, [&](std::uint64_t x, std::uint64_t y) {
                 return relation_holds(name, x, y);
               });
  const std::uint64_t known = integers ? a.known & b.known : 0;
  const ScalarValue exec = state.scalar_of(state.exec(), state.mask_words());
  // Lanes that are not active have zeros; those that may be are unknown unless they have zeros.
  mask.known = ~active | (known & (exec.known | ~mask.value));
  mask.value &= mask.known;
  if (operands.size() > 2) state.set_scalar(operands[0], state.mask_words(), mask);
  if (executes) state.set_scalar(state.exec(), state.mask_words(), mask);
  return true;
}

/// Runs v_cndmask; false for other names. Dual ones read vcc without saying so.
bool run_selection(const IsaOperation& operation, WaveState& state) {
  const std::string_view name = operation.mnemonic;
  const auto& operands = operation.operands;
  if (name.find("cndmask_b32") == name.npos || operands.size() < 3) return false;
  const auto mask =
      state.scalar_of(operands.size() > 3 ? operands[3] : state.vcc(), state.mask_words());
  const auto a = state.lanes_of(operands[1], 1), b = state.lanes_of(operands[2], 1);
  LaneValues result;
  for (std::uint32_t i = 0; i < state.lanes(); ++i) {
    const bool second = (mask.value >> i & 1) != 0, sure = (mask.known >> i & 1) != 0;
    const LaneValues& source = second ? b : a;
    const bool same = a.lane[i] == b.lane[i] && ((a.known & b.known) >> i & 1) != 0;
    result.lane[i] = source.lane[i];
    if (same || (sure && (source.known >> i & 1) != 0)) result.known |= 1ULL << i;
  }
  state.set_lanes(operands[0], 1, result);
  return true;
}

/// Runs sums with carries: "v_add_co_u32 d, carry, a, b", and with a carry as a source; false for
/// other names.
bool run_carries(const IsaOperation& operation, WaveState& state) {
  const std::string_view name = operation.mnemonic;
  const auto& operands = operation.operands;
  const bool adds = name == "v_add_co_u32" || name == "v_addc_co_u32" || name == "v_add_co_ci_u32";
  const bool subtracts =
      name == "v_sub_co_u32" || name == "v_subb_co_u32" || name == "v_sub_co_ci_u32";
  if ((!adds && !subtracts) || operands.size() < 4) return false;
  const auto a = state.lanes_of(operands[2], 1), b = state.lanes_of(operands[3], 1);
  const ScalarValue carry = operands.size() > 4 ? state.scalar_of(operands[4], state.mask_words())
                                                : ScalarValue{0, UINT64_MAX};
  LaneValues result;
  result.known = a.known & b.known & carry.known;
  ScalarValue out;
  for (std::uint32_t i = 0; i < state.lanes(); ++i) {
    const std::uint64_t with = b.lane[i] + (carry.value >> i & 1);
    const std::uint64_t sum = adds ? a.lane[i] + with : a.lane[i] - with;
    result.lane[i] = sum & UINT32_MAX;
    if (sum > UINT32_MAX) out.value |= 1ULL << i;
  }
  out.known = ~state.active() | result.known;
  out.value &= out.known & state.active();
  state.set_lanes(operands[0], 1, result);
  state.set_scalar(operands[1], state.mask_words(), out);
  return true;
}

/// Runs "v_mad_u64_u32 d, carry, a, b, c"; false for other names.
bool run_long_product(const IsaOperation& operation, WaveState& state) {
  const std::string_view name = operation.mnemonic;
  const auto& operands = operation.operands;
  if ((name != "v_mad_u64_u32" && name != "v_mad_co_u64_u32") || operands.size() < 5) return false;
  const auto a = state.lanes_of(operands[2], 1), b = state.lanes_of(operands[3], 1);
  const auto c = state.lanes_of(operands[4], 2), low = state.lanes_of(operands[4], 1);
  LaneValues result;
  for (std::uint32_t i = 0; i < state.lanes(); ++i) {
    const std::uint64_t start = (c.known >> i & 1) != 0 ? c.lane[i] : low.lane[i];
    result.lane[i] = (a.lane[i] & UINT32_MAX) * (b.lane[i] & UINT32_MAX) + start;
  }
  // Compilers use the lower half alone, with any upper half of the summand.
  result.known = a.known & b.known & low.known;
  state.set_lanes(operands[0], 1, result);
  IsaOperand upper = operands[0];
  ++upper.index;
  for (std::uint64_t& lane : result.lane) lane >>= 32;
  result.known &= c.known;
  state.set_lanes(upper, 1, result);
  state.set_scalar(operands[1], state.mask_words(), {});
  return true;
}

/// Runs instructions that move values between lanes and scalar registers; false for other names.
bool run_across(const IsaOperation& operation, WaveState& state) {
  const std::string_view name = operation.mnemonic;
  const auto& operands = operation.operands;
  if ((name == "v_readfirstlane_b32" || name == "v_readlane_b32") && operands.size() > 1) {
    const auto values = state.lanes_of(operands[1], 1);
    std::uint64_t lane = static_cast<std::uint64_t>(std::countr_zero(state.active())) & 63;
    bool sure = true;
    if (operands.size() > 2) {
      const auto chosen = state.scalar_of(operands[2], 1);
      lane = chosen.value & (state.lanes() - 1);
      sure = chosen.all_known(1);
    }
    const bool known = sure && (values.known >> lane & 1) != 0;
    state.set_scalar(operands[0], 1, {values.lane[lane], known ? UINT64_MAX : 0});
    return true;
  }
  const bool below = name == "v_mbcnt_lo_u32_b32", above = name == "v_mbcnt_hi_u32_b32";
  if ((!below && !above) || operands.size() < 3) return false;
  const auto mask = state.lanes_of(operands[1], 1), sum = state.lanes_of(operands[2], 1);
  LaneValues result;
  result.known = mask.known & sum.known;
  for (std::uint32_t i = 0; i < state.lanes(); ++i) {
    const std::uint32_t lane = below ? std::min(i, 32U) : i < 32 ? 0 : i - 32;
    const std::uint64_t before = lane == 0 ? 0 : mask.lane[i] << (64 - lane);
    result.lane[i] = sum.lane[i] + static_cast<std::uint64_t>(std::popcount(before));
  }
  state.set_lanes(operands[0], 1, result);
  return true;
}

}  // namespace

void run_vector(const IsaOperation& operation, WaveState& state) {
  if (run_comparison(operation, state)) return;
  const bool done = !is_irregular(operation) &&
                    (run_arithmetic(operation, state) || run_truth_table(operation, state) ||
                     run_selection(operation, state) || run_carries(operation, state) ||
                     run_long_product(operation, state) || run_across(operation, state));
  if (!done) forget_results(operation, state);
}

}  // namespace greta::tuner
