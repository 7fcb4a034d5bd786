#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "kernels/model/problem.hpp"

namespace greta::runtime {

/// 128 bits that tell a problem from all others: a hash of its fields in order, texts with their
/// lengths. Two different problems have the same ones by chance alone, one pair in 10^38. Not meant
/// against an adversary.
struct Fingerprint {
  std::uint64_t slot = 0;   ///< where an open-addressed table looks first
  std::uint64_t check = 0;  ///< independent of it

  bool operator==(const Fingerprint&) const = default;
};

/// Hashes as it goes, without allocation. Mixing by the halves of a 128-bit product; source:
/// wyhash, https://github.com/wangyi-fudan/wyhash
class FingerprintHash {
 public:
  void add(std::uint64_t word) {
    slot_ = mix(slot_ ^ word, 0xe7037ed1a0b428dbULL);
    check_ = mix(check_ + word, 0x8ebc6af09c88c6e3ULL);
  }

  void add(std::string_view text) {
    const char* const data = text.data();
    const std::size_t size = text.size();
    if (size < 8) return add(short_text(data, size));
    add(std::uint64_t{size} | std::uint64_t{0xff} << 56);
    for (std::size_t i = 0; i + 8 <= size; i += 8) add(load<std::uint64_t>(data + i));
    if (size % 8 != 0) add(load<std::uint64_t>(data + size - 8));
  }

  Fingerprint value() const {
    return {mix(slot_, 0x589965cc75374cc3ULL), mix(check_, 0x1d8e4e27c47d124fULL)};
  }

 private:
  static std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    __extension__ using Uint128 = unsigned __int128;
    const Uint128 product = Uint128{a} * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }

  template <typename T>
  static std::uint64_t load(const char* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }

  /// Up to 7 bytes, and in the top byte how many.
  static std::uint64_t short_text(const char* data, std::size_t size) {
    std::uint64_t word = 0;
    if (size >= 4) {
      word = load<std::uint32_t>(data) | load<std::uint32_t>(data + size - 4) << 8 * (size - 4);
    } else {
      for (std::size_t i = 0; i < size; ++i) {
        word |= std::uint64_t{static_cast<unsigned char>(data[i])} << 8 * i;
      }
    }
    return word | std::uint64_t{size} << 56;
  }

  std::uint64_t slot_ = 0xa0761d6478bd642fULL;
  std::uint64_t check_ = 0x2d358dccaa6c78a5ULL;
};

inline Fingerprint fingerprint_of(const Problem& problem) {
  FingerprintHash hash;
  hash.add(static_cast<std::uint64_t>(problem.dtype) |
           static_cast<std::uint64_t>(problem.out_dtype) << 8 |
           static_cast<std::uint64_t>(problem.attributes.size()) << 16 |
           static_cast<std::uint64_t>(problem.dims.size()) << 40);
  hash.add(problem.op);
  for (const auto& [name, value] : problem.attributes) {
    hash.add(name);
    hash.add(value);
  }
  for (const auto& [name, extent] : problem.dims) {
    hash.add(name);
    hash.add(static_cast<std::uint64_t>(extent));
  }
  return hash.value();
}

/// For hash tables of problems.
struct ProblemHash {
  std::size_t operator()(const Problem& problem) const { return fingerprint_of(problem).slot; }
};

}  // namespace greta::runtime
