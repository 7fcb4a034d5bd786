#include "tuner/search/permutation.hpp"

#include "kernels/model/random.hpp"

namespace greta::tuner {

Permutation::Permutation(std::uint64_t size, std::uint64_t seed) : size_(size) {
  while (half_bits_ < 32 && (size >> (2 * half_bits_)) != 0) ++half_bits_;
  for (auto& key : round_keys_) key = seed = mix64(seed);
}

std::uint64_t Permutation::operator[](std::uint64_t place) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  do {
    std::uint64_t left = place >> half_bits_;
    std::uint64_t right = place & mask;
    for (const std::uint64_t key : round_keys_) {
      const std::uint64_t mixed = left ^ (mix64(right ^ key) & mask);
      left = right;
      right = mixed;
    }
    place = left << half_bits_ | right;
  } while (place >= size_);
  return place;
}

}  // namespace greta::tuner
