#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::runtime {

/// The pages of a sequence's cache: page i holds tokens i * page size and after it.
struct PageLease {
  std::vector<std::int32_t> pages;
  std::int64_t shared = 0;  ///< tokens at the beginning that other sequences' pages hold already
};

/// Hands out the pages of a KV cache, whose keys and values are elsewhere. A page that a prompt
/// fills belongs to all sequences whose prompts have the same tokens up to its end, as long as one
/// of them is there. Two prompts are compared by their tokens.
class PagePool {
 public:
  /// Creates a pool of `pages` free pages of `page` tokens each.
  PagePool(std::int64_t pages, std::int64_t page);
  // Contents of pages refer to each other.
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;
  PagePool(PagePool&&) = default;
  PagePool& operator=(PagePool&&) = default;
  ~PagePool() = default;

  /// Returns the pages of a sequence of at most `tokens` tokens that begins with `prompt`, which
  /// are shared where they can be: of a prompt, all tokens but the last one, whose logits have to
  /// be computed. Returns nothing, and changes nothing, if too few pages are free.
  std::optional<PageLease> take(std::span<const std::int32_t> prompt, std::int64_t tokens);
  /// Returns a sequence's pages. Those that no other sequence has are free again.
  void give_back(const PageLease& lease);

  std::int64_t page() const { return page_; }
  std::int64_t size() const { return static_cast<std::int64_t>(users_.size()); }
  std::int64_t free() const { return static_cast<std::int64_t>(free_.size()); }
  /// Returns the number of pages of a sequence of this number of tokens.
  std::int64_t pages_of(std::int64_t tokens) const { return (tokens + page_ - 1) / page_; }

 private:
  /// Tokens of a full page, and the page before it (-1: none), which identify its contents.
  using Contents = std::pair<std::int32_t, std::vector<std::int32_t>>;

  std::int64_t page_;
  std::vector<std::int32_t> free_;  ///< the last one is taken first
  std::vector<std::int64_t> users_;
  std::map<Contents, std::int32_t> prompts_;  ///< pages that prompts fill
  std::map<std::int32_t, std::map<Contents, std::int32_t>::iterator> contents_;  ///< of a page
};

}  // namespace greta::runtime
