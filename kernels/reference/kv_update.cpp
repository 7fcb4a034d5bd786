#include <cmath>

#include "kernels/reference/elements.hpp"
#include "kernels/reference/references.hpp"

namespace greta::kernels {
namespace {

ExpectedOutput cache(const Problem& problem, KeptTensor fresh, KeptTensor old, double position) {
  const std::int64_t tokens = problem.dim("tokens"), heads = problem.dim("kv_heads");
  const std::int64_t dim = problem.dim("dim"), capacity = problem.dim("capacity");
  const auto element = [=](std::int64_t row, std::int64_t col) {
    const double token = static_cast<double>(row % capacity) - position;
    if (token < 0 || token >= static_cast<double>(tokens)) {
      return Expected{old->at(static_cast<std::size_t>(row * dim + col)), 0};
    }
    const std::int64_t from =
        (static_cast<std::int64_t>(token) * heads + row / capacity) * dim + col;
    return converted(fresh->spec.dtype, old->spec.dtype, fresh->at(static_cast<std::size_t>(from)));
  };
  return {old->spec, element};
}

}  // namespace

std::unique_ptr<Reference> kv_update_reference(const Problem& problem,
                                               const std::vector<HostTensor>& inputs,
                                               std::uint64_t) {
  const double position = keep_tensor(inputs, "position")->at(0);
  std::vector<ExpectedOutput> caches;
  for (const std::string name : {"K", "V"}) {
    caches.push_back(
        cache(problem, keep_tensor(inputs, name), keep_tensor(inputs, name + "_cache"), position));
  }
  return elements_reference(std::move(caches));
}

}  // namespace greta::kernels
