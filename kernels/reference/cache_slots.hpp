#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// The slots of KV caches: of which sequence, head and key each line is.
class CacheSlots {
 public:
  struct Place {
    std::int64_t sequence, head;
    double slot;  ///< negative: none
  };

  /// Reads kv_heads, capacity and page_size of the problem, and the block table if there are pages.
  CacheSlots(const Problem& problem, const std::vector<HostTensor>& inputs);

  std::int64_t heads() const { return heads_; }
  Place place(std::int64_t line) const;

 private:
  std::int64_t heads_, run_;  ///< `run_`: consecutive slots of a head
  bool paged_ = false;
  std::map<std::int64_t, std::pair<std::int64_t, double>> pages_;  ///< sequence and first slot
};

}  // namespace greta::kernels
