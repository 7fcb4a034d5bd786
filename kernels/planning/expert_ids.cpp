#include "kernels/planning/expert_ids.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include "kernels/model/random.hpp"

namespace greta::kernels {

HostTensor different_experts(const TensorSpec& spec, std::int64_t experts, std::uint64_t seed) {
  HostTensor tensor{spec, std::vector<std::byte>(spec.bytes())};
  const auto count = static_cast<std::uint64_t>(experts);
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> drawn;
  for (std::size_t i = 0; i < spec.elements(); ++i) {
    if (i % static_cast<std::size_t>(spec.cols) == 0 || drawn.size() == count) drawn.clear();
    std::uint64_t expert = uniform_below(random, count);
    while (std::find(drawn.begin(), drawn.end(), expert) != drawn.end()) {
      expert = (expert + 1) % count;
    }
    drawn.push_back(expert);
    store_element(DType::i32, tensor.data.data(), i, static_cast<double>(expert));
  }
  return tensor;
}

}  // namespace greta::kernels
