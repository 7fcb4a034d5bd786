#include <map>
#include <string>

#include "kernels/reference/elements.hpp"
#include "kernels/reference/references.hpp"

namespace greta::kernels {
namespace {

/// The slots of a cache's rows, each of a head.
struct Slots {
  struct Place {
    std::int64_t head;
    double slot;  ///< negative: none
  };

  Slots(const Problem& problem, const std::vector<HostTensor>& inputs)
      : heads(problem.dim("kv_heads")), run(problem.dim("capacity")) {
    const std::string page = problem.attribute("page_size", "none");
    if (page == "none") return;
    run = std::stoll(page);
    const HostTensor& table = tensor_named(inputs, "block_table");
    for (std::size_t i = 0; i < table.spec.elements(); ++i) {
      starts.emplace(static_cast<std::int64_t>(table.at(i)),
                     static_cast<double>(i) * static_cast<double>(run));
    }
  }

  Place place(std::int64_t row) const {
    const auto within = static_cast<double>(row % run);
    if (starts.empty()) return {row / run, within};
    const auto page = starts.find(row / run / heads);
    return {row / run % heads, page == starts.end() ? -1 : page->second + within};
  }

  std::int64_t heads, run;                ///< `run`: consecutive slots of a head
  std::map<std::int64_t, double> starts;  ///< by page: its first slot; empty: no pages
};

ExpectedOutput cache(const Problem& problem, const Slots& slots, KeptTensor fresh, KeptTensor old,
                     double position) {
  const auto tokens = static_cast<double>(problem.dim("tokens"));
  const auto capacity = static_cast<double>(problem.dim("capacity"));
  const std::int64_t dim = problem.dim("dim");
  const auto element = [=](std::int64_t row, std::int64_t col) {
    const auto [head, slot] = slots.place(row);
    const double token = slot - position;
    if (slot < 0 || slot >= capacity || token < 0 || token >= tokens) {
      return Expected{old->at(static_cast<std::size_t>(row * dim + col)), 0};
    }
    const std::int64_t from = (static_cast<std::int64_t>(token) * slots.heads + head) * dim + col;
    return converted(fresh->spec.dtype, old->spec.dtype, fresh->at(static_cast<std::size_t>(from)));
  };
  return {old->spec, element};
}

}  // namespace

std::unique_ptr<Reference> kv_update_reference(const Problem& problem,
                                               const std::vector<HostTensor>& inputs,
                                               std::uint64_t) {
  const double position = keep_tensor(inputs, "position")->at(0);
  const Slots slots(problem, inputs);
  std::vector<ExpectedOutput> caches;
  for (const std::string name : {"K", "V"}) {
    caches.push_back(cache(problem, slots, keep_tensor(inputs, name),
                           keep_tensor(inputs, name + "_cache"), position));
  }
  return elements_reference(std::move(caches));
}

}  // namespace greta::kernels
