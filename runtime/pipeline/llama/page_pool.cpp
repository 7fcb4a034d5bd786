#include "runtime/pipeline/llama/page_pool.hpp"

namespace greta::runtime {

PagePool::PagePool(std::int64_t pages, std::int64_t page)
    : page_(page), users_(static_cast<std::size_t>(pages)) {
  for (std::int64_t i = pages; i > 0; --i) free_.push_back(static_cast<std::int32_t>(i - 1));
}

std::optional<PageLease> PagePool::take(std::span<const std::int32_t> prompt, std::int64_t tokens) {
  const auto size = static_cast<std::size_t>(page_);
  const auto block = [&](std::int32_t before, std::size_t index) {
    const auto begin = prompt.begin() + static_cast<std::ptrdiff_t>(index * size);
    return Contents{before, {begin, begin + page_}};
  };
  PageLease lease;
  const auto before = [&] { return lease.pages.empty() ? -1 : lease.pages.back(); };
  while ((lease.pages.size() + 1) * size < prompt.size()) {
    const auto found = prompts_.find(block(before(), lease.pages.size()));
    if (found == prompts_.end()) break;
    lease.pages.push_back(found->second);
  }
  lease.shared = static_cast<std::int64_t>(lease.pages.size()) * page_;
  const auto own = pages_of(tokens) - static_cast<std::int64_t>(lease.pages.size());
  if (own > free()) return std::nullopt;
  for (std::int64_t i = 0; i < own; ++i) {
    const std::size_t index = lease.pages.size();
    const std::int32_t page = free_.back();
    free_.pop_back();
    if ((index + 1) * size <= prompt.size()) {
      const auto [entry, added] = prompts_.try_emplace(block(before(), index), page);
      if (added) contents_[page] = entry;
    }
    lease.pages.push_back(page);
  }
  for (const std::int32_t page : lease.pages) ++users_[static_cast<std::size_t>(page)];
  return lease;
}

void PagePool::give_back(const PageLease& lease) {
  // The first pages are taken first again, as in the beginning.
  for (auto page = lease.pages.rbegin(); page != lease.pages.rend(); ++page) {
    if (--users_[static_cast<std::size_t>(*page)] > 0) continue;
    if (const auto known = contents_.find(*page); known != contents_.end()) {
      prompts_.erase(known->second);
      contents_.erase(known);
    }
    free_.push_back(*page);
  }
}

}  // namespace greta::runtime
