#include "tuner/isa/wave_state.hpp"

#include <algorithm>

namespace greta::tuner {

WaveState::WaveState(std::uint32_t lanes) : lanes_(lanes), vectors_(std::size_t{2} * file) {
  set_scalar(exec(), mask_words(), {all_lanes(), UINT64_MAX});
}

std::uint32_t WaveState::place(const IsaOperand& operand, std::uint32_t word) {
  const std::uint32_t start = operand.kind == IsaOperand::Kind::accumulator ? file : 0;
  return start + std::min(operand.index + word, file - 1);
}

std::uint64_t WaveState::active() const {
  const ScalarValue mask = scalar_of(exec(), mask_words());
  return (mask.value | ~mask.known) & all_lanes();
}

Truth WaveState::any(const IsaOperand& mask) const {
  const ScalarValue bits = scalar_of(mask, mask_words());
  if ((bits.value & bits.known & all_lanes()) != 0) return Truth::yes;
  return (~bits.known & all_lanes()) == 0 ? Truth::no : Truth::unknown;
}

LaneValues WaveState::lanes_of(const IsaOperand& operand, std::uint32_t words) const {
  LaneValues values;
  if (operand.kind == IsaOperand::Kind::vector || operand.kind == IsaOperand::Kind::accumulator) {
    values.known = all_lanes();
    for (std::uint32_t word = 0; word < words; ++word) {
      const Vector& source = vectors_[place(operand, word)];
      values.known &= source.known;
      for (std::uint32_t i = 0; i < lanes_; ++i) {
        values.lane[i] |= std::uint64_t{source.lane[i]} << 32 * word;
      }
    }
    if (operand.half == IsaOperand::Half::none) return values;
    const unsigned shift = operand.half == IsaOperand::Half::high ? 16 : 0;
    for (std::uint64_t& lane : values.lane) lane = lane >> shift & 0xFFFF;
    return values;
  }
  const ScalarValue scalar = scalar_of(operand, words);
  if (!scalar.all_known(words)) return values;
  values.lane.fill(scalar.value);
  values.known = all_lanes();
  return values;
}

void WaveState::set_lanes(const IsaOperand& operand, std::uint32_t words,
                          const LaneValues& values) {
  const std::uint64_t mask = active();
  const bool whole = operand.half == IsaOperand::Half::none;
  const unsigned shift = operand.half == IsaOperand::Half::high ? 16 : 0;
  const std::uint32_t kept = whole ? 0 : ~(0xFFFFU << shift);
  for (std::uint32_t word = 0; word < words; ++word) {
    Vector& target = vectors_[place(operand, word)];
    for (std::uint32_t i = 0; i < lanes_; ++i) {
      if ((mask >> i & 1) == 0) continue;
      const auto value = static_cast<std::uint32_t>(values.lane[i] >> 32 * word);
      target.lane[i] = (target.lane[i] & kept) | (value << shift & ~kept);
    }
    const std::uint64_t known = whole ? values.known : values.known & target.known;
    target.known = (target.known & ~mask) | (known & mask);
  }
}

ScalarValue WaveState::scalar_of(const IsaOperand& operand, std::uint32_t words) const {
  ScalarValue value;
  if (operand.kind == IsaOperand::Kind::literal) {
    const std::uint64_t high = operand.negative ? ~std::uint64_t{UINT32_MAX} : 0;
    value = {operand.literal | (words == 2 ? high : 0), UINT64_MAX};
  } else if (operand.kind == IsaOperand::Kind::scalar && operand.index == isa_null) {
    value = {0, UINT64_MAX};
  } else if (operand.kind == IsaOperand::Kind::scalar) {
    for (std::uint32_t word = 0; word < words && operand.index + word < isa_scalars; ++word) {
      const Scalar& source = scalars_[operand.index + word];
      value.value |= std::uint64_t{source.value} << 32 * word;
      value.known |= std::uint64_t{source.known} << 32 * word;
    }
  }
  return value;
}

void WaveState::set_scalar(const IsaOperand& operand, std::uint32_t words,
                           const ScalarValue& value) {
  if (operand.kind != IsaOperand::Kind::scalar || operand.index == isa_null) return;
  for (std::uint32_t word = 0; word < words && operand.index + word < isa_scalars; ++word) {
    scalars_[operand.index + word] = {static_cast<std::uint32_t>(value.value >> 32 * word),
                                      static_cast<std::uint32_t>(value.known >> 32 * word)};
  }
}

void WaveState::forget(const IsaOperand& operand) {
  if (operand.kind == IsaOperand::Kind::scalar) {
    for (std::uint32_t word = 0; word < operand.count; ++word) {
      set_scalar(named(operand.index + word, 1), 1, {});
    }
  } else if (operand.kind == IsaOperand::Kind::vector ||
             operand.kind == IsaOperand::Kind::accumulator) {
    for (std::uint32_t word = 0; word < operand.count; ++word) {
      vectors_[place(operand, word)].known &= ~active();
    }
  }
}

}  // namespace greta::tuner
