#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/model/problem.hpp"

namespace greta {

/// What tells a problem from all others, as numbers: its fields in order, texts with their lengths.
/// Two problems are equal where their words are. Made without allocation, unless the problem's
/// texts are hundreds of bytes long.
class ProblemWords {
 public:
  explicit ProblemWords(const Problem& problem) {
    add(static_cast<std::uint64_t>(problem.dtype) |
        static_cast<std::uint64_t>(problem.out_dtype) << 8 |
        static_cast<std::uint64_t>(problem.attributes.size()) << 16 |
        static_cast<std::uint64_t>(problem.dims.size()) << 40);
    add(problem.op);
    for (const auto& [name, value] : problem.attributes) {
      add(name);
      add(value);
    }
    for (const auto& [name, extent] : problem.dims) {
      add(name);
      add(static_cast<std::uint64_t>(extent));
    }
  }
  ProblemWords(const ProblemWords&) = delete;
  ProblemWords& operator=(const ProblemWords&) = delete;

  std::span<const std::uint64_t> span() const {
    return more_.empty() ? std::span(words_.data(), count_) : std::span(more_);
  }
  /// Not meant against an adversary. Mixing by the halves of a 128-bit product; source: wyhash,
  /// https://github.com/wangyi-fudan/wyhash
  std::uint64_t hash() const {
    std::uint64_t state = 0xa0761d6478bd642fULL;
    for (const std::uint64_t word : span()) state = mix(state ^ word, 0xe7037ed1a0b428dbULL);
    return mix(state, 0x8ebc6af09c88c6e3ULL);
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

  /// Up to 7 bytes as one number; the length is in its top byte, at most 7.
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

  void add(std::string_view text) {
    const char* const data = text.data();
    const std::size_t size = text.size();
    if (size < 8) return add(short_text(data, size));
    add(std::uint64_t{size} | std::uint64_t{0xff} << 56);
    for (std::size_t i = 0; i + 8 <= size; i += 8) add(load<std::uint64_t>(data + i));
    if (size % 8 != 0) add(load<std::uint64_t>(data + size - 8));
  }

  void add(std::uint64_t word) {
    if (count_ < words_.size()) {
      words_[count_++] = word;
      return;
    }
    if (more_.empty()) more_.assign(words_.begin(), words_.end());
    more_.push_back(word);
  }

  std::array<std::uint64_t, 64> words_;
  std::size_t count_ = 0;
  std::vector<std::uint64_t> more_;  // all of them, where there are more than words_ holds
};

}  // namespace greta
