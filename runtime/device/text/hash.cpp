#include "runtime/device/text/hash.hpp"

#include <fmt/format.h>

namespace greta::device {

namespace {

__extension__ using Uint128 = unsigned __int128;
constexpr Uint128 prime = (Uint128{0x0000000001000000ULL} << 64) | 0x000000000000013bULL;

Uint128 with_byte(Uint128 state, unsigned char byte) {
  return (state ^ byte) * prime;
}

}  // namespace

void Hash::add_byte(unsigned char byte) {
  state_ = with_byte(state_, byte);
}

Hash& Hash::add(std::uint64_t number) {
  for (int shift = 0; shift < 64; shift += 8) add_byte(static_cast<unsigned char>(number >> shift));
  return *this;
}

Hash& Hash::add(std::string_view field) {
  add(static_cast<std::uint64_t>(field.size()));
  Uint128 state = state_;  // in registers: a start of a tool hashes megabytes of kernel sources
  for (const char c : field) state = with_byte(state, static_cast<unsigned char>(c));
  state_ = state;
  return *this;
}

std::string Hash::hex() const {
  return fmt::format("{:016x}{:016x}", static_cast<std::uint64_t>(state_ >> 64),
                     static_cast<std::uint64_t>(state_));
}

}  // namespace greta::device
