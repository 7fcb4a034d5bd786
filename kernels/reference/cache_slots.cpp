#include "kernels/reference/cache_slots.hpp"

#include <string>

namespace greta::kernels {

CacheSlots::CacheSlots(const Problem& problem, const std::vector<HostTensor>& inputs)
    : heads_(problem.dim("kv_heads")), run_(problem.dim("capacity")) {
  const std::string page = problem.attribute("page_size", "none");
  paged_ = page != "none";
  if (!paged_) return;
  run_ = std::stoll(page);
  const HostTensor& table = tensor_named(inputs, "block_table");
  for (std::size_t i = 0; i < table.spec.elements(); ++i) {
    const auto cols = static_cast<std::size_t>(table.spec.cols);
    pages_.emplace(static_cast<std::int64_t>(table.at(i)),
                   std::pair(static_cast<std::int64_t>(i / cols),
                             static_cast<double>(i % cols) * static_cast<double>(run_)));
  }
}

CacheSlots::Place CacheSlots::place(std::int64_t line) const {
  const auto within = static_cast<double>(line % run_);
  const std::int64_t head = line / run_ % heads_, group = line / run_ / heads_;
  if (!paged_) return {group, head, within};
  const auto page = pages_.find(group);
  if (page == pages_.end()) return {0, head, -1};
  return {page->second.first, head, page->second.second + within};
}

}  // namespace greta::kernels
