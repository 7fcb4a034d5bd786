#include "kernels/model/reference.hpp"

#include <algorithm>

#include "kernels/model/random.hpp"
#include "runtime/device/result.hpp"

namespace greta::kernels {

const Verdict& worse(const Verdict& a, const Verdict& b) {
  if (a.passed != b.passed) return a.passed ? b : a;
  return b.ratio() > a.ratio() ? b : a;
}

std::vector<std::size_t> spread_indices(std::size_t size, std::size_t most) {
  const std::size_t count = std::min(size, most);
  std::vector<std::size_t> chosen(count);
  for (std::size_t part = 0; part < count; ++part) {
    // No product overflows: both factors are below 2^32 in memory that exists.
    const std::size_t first = size * part / count, end = size * (part + 1) / count;
    chosen[part] = first + mix64(part) % (end - first);
  }
  if (count > 0) chosen.front() = 0;
  if (count > 1) chosen.back() = size - 1;
  return chosen;
}

std::vector<std::vector<ExpectedElement>> Reference::sample(std::size_t most) const {
  std::vector<std::vector<ExpectedElement>> outputs;
  const auto all = expected();
  if (!all) throw Error("a reference of samples does not return them");
  for (const auto& values : *all) {
    auto& elements = outputs.emplace_back();
    for (const std::size_t i : spread_indices(values.size(), most)) {
      elements.push_back({i, values[i]});
    }
  }
  return outputs;
}

}  // namespace greta::kernels
