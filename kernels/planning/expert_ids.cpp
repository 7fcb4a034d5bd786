#include "kernels/planning/expert_ids.hpp"

#include <random>
#include <vector>

#include "kernels/model/random.hpp"

namespace greta::kernels {

namespace {

/// Calls use(i, expert) for each element, in order, until it returns false.
template <typename Use>
void draw_experts(const TensorSpec& spec, std::int64_t experts, std::uint64_t seed, Use use) {
  const auto count = static_cast<std::uint64_t>(experts);
  std::mt19937_64 random(seed);
  std::vector<std::size_t> taken(count);  // by expert: the round that has it, from 1
  std::size_t round = 0, left = 0;
  for (std::size_t i = 0; i < spec.elements(); ++i) {
    if (i % static_cast<std::size_t>(spec.cols) == 0 || left == 0) {
      ++round;
      left = count;
    }
    std::uint64_t expert = uniform_below(random, count);
    while (taken[expert] == round) expert = expert + 1 == count ? 0 : expert + 1;
    taken[expert] = round;
    --left;
    if (!use(i, expert)) return;
  }
}

}  // namespace

HostTensor different_experts(const TensorSpec& spec, std::int64_t experts, std::uint64_t seed) {
  HostTensor tensor{spec, std::vector<std::byte>(spec.bytes())};
  draw_experts(spec, experts, seed, [&](std::size_t i, std::uint64_t expert) {
    store_element(DType::i32, tensor.data.data(), i, static_cast<double>(expert));
    return true;
  });
  return tensor;
}

std::int64_t count_different_experts(const TensorSpec& spec, std::int64_t experts,
                                     std::uint64_t seed) {
  std::vector<bool> seen(static_cast<std::size_t>(experts));
  std::int64_t count = 0;
  draw_experts(spec, experts, seed, [&](std::size_t, std::uint64_t expert) {
    if (!seen[expert]) ++count;
    seen[expert] = true;
    return count < experts;
  });
  return count;
}

}  // namespace greta::kernels
