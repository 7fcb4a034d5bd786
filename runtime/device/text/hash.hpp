#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// 128-bit FNV-1a hash of a sequence of fields. Each field is hashed with its length, so that
/// ("ab", "c") and ("a", "bc") differ. It does not resist deliberate collisions.
/// Source: Fowler, Noll, Vo; http://www.isthe.com/chongo/tech/comp/fnv/
class Hash {
 public:
  Hash& add(std::string_view field);
  Hash& add(std::uint64_t number);
  /// Returns 32 lower-case hexadecimal digits.
  std::string hex() const;
  /// Returns the low 64 bits, for seeds and hash tables.
  std::uint64_t low() const { return static_cast<std::uint64_t>(state_); }

 private:
  void add_byte(unsigned char byte);
  __extension__ using Uint128 = unsigned __int128;
  Uint128 state_ = (Uint128{0x6c62272e07bb0142ULL} << 64) | 0x62b821756295c58dULL;
};

}  // namespace greta::device
