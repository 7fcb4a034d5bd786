#include "runtime/device/text/hash.hpp"

#include <fmt/format.h>

namespace greta::device {

void Hash::add_byte(unsigned char byte) {
  constexpr Uint128 prime = (Uint128{0x0000000001000000ULL} << 64) | 0x000000000000013bULL;
  state_ ^= byte;
  state_ *= prime;
}

Hash& Hash::add(std::uint64_t number) {
  for (int shift = 0; shift < 64; shift += 8) add_byte(static_cast<unsigned char>(number >> shift));
  return *this;
}

Hash& Hash::add(std::string_view field) {
  add(static_cast<std::uint64_t>(field.size()));
  for (const char c : field) add_byte(static_cast<unsigned char>(c));
  return *this;
}

std::string Hash::hex() const {
  return fmt::format("{:016x}{:016x}", static_cast<std::uint64_t>(state_ >> 64),
                     static_cast<std::uint64_t>(state_));
}

}  // namespace greta::device
