#pragma once

#include <cstdint>

#include "kernels/model/operation.hpp"

/// KV caches in pages: K and V are pools of pages, which hold some keys of all KV heads, and block
/// tables list the numbers of a sequence's pages.
namespace greta::kernels {

/// Returns the attribute `page_size`, the number of keys of a page.
Attribute page_size_attribute();
/// Returns the number of keys of a page, or 0 if the cache has no pages.
std::int64_t page_of(const Problem& problem);

/// Rejects caches whose `capacity` is less than `tokens`, and pages with keys beyond 31 bits.
Result<void> check_capacity(const Problem& problem);

/// Returns a block table with the numbers of all pages, in random order. Equal seeds give equal
/// tables.
HostTensor random_block_table(const TensorSpec& spec, std::uint64_t seed);

}  // namespace greta::kernels
