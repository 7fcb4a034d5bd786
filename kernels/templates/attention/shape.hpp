#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/model/operation.hpp"
#include "kernels/templates/common/render.hpp"

namespace greta::kernels::attention {

/// An attention problem. Q and the output have a row of `dim` elements for each sequence, query and
/// head, in this order; K and V for each sequence, KV head and key.
struct Shape {
  DType in, out;
  std::int64_t batch, heads, kv_heads, queries, capacity, dim;
  std::int64_t q_stride;  ///< elements of Q from one token to the next; 0: packed
  bool causal;
  double scale;  ///< of the scores

  /// Heads that share a KV head.
  std::int64_t group() const { return heads / kv_heads; }
  /// 32-bit registers of a load of `count` inputs.
  auto load_registers(const auto& count) const {
    return max(1, count * static_cast<std::int64_t>(bits_of(in)) / 32);
  }
};

Shape shape_of(const Problem& problem);

/// What every kernel of attention gets: types, dimensions that its text knows, and arguments.
/// `tiles`: of a sequence's queries; the workspace starts with `counter_bytes`.
Defines problem_defines(const Shape& shape);
std::vector<Argument> arguments(const Shape& shape, std::int64_t tiles, bool workspace,
                                std::uint64_t counter_bytes);

/// Moves defaults after others that need fewer registers of a thread, by the estimate `registers`:
/// those that compilers would keep in few others, and last those that would spill.
void roomy_first(std::vector<Config>& configs, const DeviceInfo& device,
                 const std::function<std::int64_t(const Config&)>& registers);

Variant decode();  ///< few queries: split over the keys
Variant matrix();  ///< many queries, on matrix cores
Variant vector();  ///< many queries, by plain multiplications

}  // namespace greta::kernels::attention
