#include "runtime/pipeline/compute/arena.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace greta::runtime {
namespace {

struct Placed {
  std::size_t first = 0, last = 0;    // steps
  std::size_t offset = 0, bytes = 0;  // rounded up
};

/// Returns the smallest gap that fits between blocks that are live at the same time, or the end of
/// the last one. `placed` is sorted by offset.
std::size_t best_gap(const std::vector<Placed>& placed, const Lifetime& life, std::size_t bytes) {
  std::size_t end = 0, best = SIZE_MAX, best_bytes = SIZE_MAX;
  for (const Placed& other : placed) {
    if (other.last < life.first || life.last < other.first) continue;
    if (other.offset > end) {
      const std::size_t gap = other.offset - end;
      if (gap >= bytes && gap < best_bytes) {
        best = end;
        best_bytes = gap;
      }
    }
    end = std::max(end, other.offset + other.bytes);
  }
  return best == SIZE_MAX ? end : best;
}

}  // namespace

ArenaPlan plan_arena(std::span<const Lifetime> lifetimes, std::size_t alignment) {
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return lifetimes[a].bytes > lifetimes[b].bytes;
  });
  ArenaPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<Placed> placed;  // by offset
  for (const std::size_t index : order) {
    const Lifetime& life = lifetimes[index];
    const std::size_t bytes = (life.bytes + alignment - 1) / alignment * alignment;
    const std::size_t offset = best_gap(placed, life, bytes);
    plan.offsets[index] = offset;
    plan.bytes = std::max(plan.bytes, offset + bytes);
    const auto behind =
        std::upper_bound(placed.begin(), placed.end(), offset,
                         [](std::size_t at, const Placed& other) { return at < other.offset; });
    placed.insert(behind, {life.first, life.last, offset, bytes});
  }
  return plan;
}

}  // namespace greta::runtime
