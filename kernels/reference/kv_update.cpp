#include <string>

#include "kernels/reference/cache_slots.hpp"
#include "kernels/reference/elements.hpp"
#include "kernels/reference/references.hpp"

namespace greta::kernels {
namespace {

ExpectedOutput cache(const Problem& problem, const CacheSlots& slots, KeptTensor fresh,
                     KeptTensor old, double position) {
  const auto tokens = static_cast<double>(problem.dim("tokens"));
  const auto capacity = static_cast<double>(problem.dim("capacity"));
  const std::int64_t dim = old->spec.cols;
  const auto element = [=](std::int64_t row, std::int64_t col) {
    const auto [sequence, head, slot] = slots.place(row);
    const double token = slot - position;
    if (slot < 0 || slot >= capacity || token < 0 || token >= tokens) {
      return Expected{old->at(static_cast<std::size_t>(row * dim + col)), 0};
    }
    const std::int64_t from = (static_cast<std::int64_t>(token) * slots.heads() + head) * dim + col;
    return converted(fresh->spec.dtype, old->spec.dtype, fresh->at(static_cast<std::size_t>(from)));
  };
  return {old->spec, element};
}

}  // namespace

std::unique_ptr<Reference> kv_update_reference(const Problem& problem,
                                               const std::vector<HostTensor>& inputs,
                                               std::uint64_t) {
  const double position = keep_tensor(inputs, "position")->at(0);
  const CacheSlots slots(problem, inputs);
  std::vector<ExpectedOutput> caches;
  for (const std::string name : {"K", "V"}) {
    caches.push_back(cache(problem, slots, keep_tensor(inputs, name),
                           keep_tensor(inputs, name + "_cache"), position));
  }
  return elements_reference(std::move(caches));
}

}  // namespace greta::kernels
