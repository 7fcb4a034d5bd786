#include "kernels/model/reference.hpp"

#include <utility>

#include "kernels/model/random.hpp"

namespace greta::kernels {

const Verdict& worse(const Verdict& a, const Verdict& b) {
  if (a.passed != b.passed) return a.passed ? b : a;
  return b.ratio() > a.ratio() ? b : a;
}

std::vector<ExpectedElement> thin_out(std::vector<ExpectedElement> elements, std::size_t most) {
  const std::size_t size = elements.size();
  if (size <= most || most == 0) return elements;
  std::vector<ExpectedElement> kept;
  kept.reserve(most);
  for (std::size_t part = 0; part < most; ++part) {
    // size * part does not overflow: both are far below 2^32, or memory would not hold the
    // elements.
    const std::size_t first = size * part / most, end = size * (part + 1) / most;
    std::size_t chosen = first + mix64(part) % (end - first);
    if (part == 0) chosen = 0;
    if (part + 1 == most) chosen = size - 1;
    kept.push_back(elements[chosen]);
  }
  return kept;
}

std::vector<std::vector<ExpectedElement>> Reference::sample(std::size_t most) const {
  std::vector<std::vector<ExpectedElement>> outputs;
  const auto all = expected();
  if (!all) throw Error("a reference of samples does not return them");
  for (const auto& values : *all) {
    std::vector<ExpectedElement> elements(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) elements[i] = {i, values[i]};
    outputs.push_back(thin_out(std::move(elements), most));
  }
  return outputs;
}

}  // namespace greta::kernels
