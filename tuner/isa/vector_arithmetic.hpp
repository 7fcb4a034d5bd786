#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// An operation on the values of one lane.
struct LaneArithmetic {
  std::uint32_t words;                        ///< of the result
  std::array<std::uint32_t, 3> source_words;  ///< 0: there is no such source
  bool floats;                                ///< whether sources may be negated
  std::uint64_t (*run)(std::uint64_t a, std::uint64_t b, std::uint64_t c);
};

/// Returns the operation of a mnemonic without its encoding ("v_lshl_add_u32"), or nullptr. The
/// halves of dual instructions have the names of whole ones.
const LaneArithmetic* lane_arithmetic(std::string_view mnemonic);

}  // namespace greta::tuner
