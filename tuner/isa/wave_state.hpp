#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tuner/isa/instruction.hpp"

namespace greta::tuner {

/// One value for each lane; bit i of `known` says whether lane i's is known.
struct LaneValues {
  std::array<std::uint64_t, 64> lane{};
  std::uint64_t known = 0;
};

/// A value of scalar registers; each bit is known or not.
struct ScalarValue {
  std::uint64_t value = 0;
  std::uint64_t known = 0;

  bool all_known(std::uint32_t words) const {
    return words == 1 ? static_cast<std::uint32_t>(known) == UINT32_MAX : known == UINT64_MAX;
  }
};

/// A condition that may be unknown.
enum class Truth { no, yes, unknown };

/// The registers of a wave, of which not everything is known.
class WaveState {
 public:
  explicit WaveState(std::uint32_t lanes);

  std::uint32_t lanes() const { return lanes_; }
  std::uint64_t all_lanes() const { return lanes_ == 64 ? UINT64_MAX : (1ULL << lanes_) - 1; }
  /// The lanes that are active, or may be.
  std::uint64_t active() const;

  /// Reads a source of vector instructions; 64 bits if `words` is 2.
  LaneValues lanes_of(const IsaOperand& operand, std::uint32_t words) const;
  /// Writes to the active lanes of vector registers.
  void set_lanes(const IsaOperand& operand, std::uint32_t words, const LaneValues& values);
  ScalarValue scalar_of(const IsaOperand& operand, std::uint32_t words) const;
  void set_scalar(const IsaOperand& operand, std::uint32_t words, const ScalarValue& value);
  /// Marks all registers of an operand as unknown.
  void forget(const IsaOperand& operand);

  /// The number of words of a mask of lanes.
  std::uint32_t mask_words() const { return lanes_ / 32; }
  static IsaOperand named(std::uint32_t index, std::uint32_t count) {
    return {.kind = IsaOperand::Kind::scalar, .index = index, .count = count};
  }
  IsaOperand vcc() const { return named(isa_vcc, mask_words()); }
  IsaOperand exec() const { return named(isa_exec, mask_words()); }
  /// Whether a mask of lanes is not zero.
  Truth any(const IsaOperand& mask) const;

  Truth scc = Truth::unknown;

 private:
  struct Scalar {
    std::uint32_t value = 0, known = 0;
  };
  struct Vector {
    std::array<std::uint32_t, 64> lane{};
    std::uint64_t known = 0;
  };
  static constexpr std::uint32_t file = 512;  ///< vector registers, then as many accumulators
  static std::uint32_t place(const IsaOperand& operand, std::uint32_t word);

  std::uint32_t lanes_;
  std::vector<Vector> vectors_;
  std::array<Scalar, isa_scalars> scalars_{};
};

}  // namespace greta::tuner
