#include "kernels/templates/attention/prefill.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/plan.hpp"

namespace greta::kernels::attention {

std::vector<int> heads_together() {
  return {1, 2, 4, 8, 16, 32};
}

int default_heads_together(const Shape& shape) {
  int together = 1;
  while (together < 8 || (together < 32 && together < shape.group())) together *= 2;
  return together;
}

std::vector<Constraint> tile_constraints(const Shape& shape, const DeviceInfo& device,
                                         const Expression& queries) {
  const std::int64_t groups = most_workgroups(device);
  // Two threads can share heads of few elements, and a subgroup must still be full.
  const std::uint64_t least = std::max(16U, device.max_subgroup_size / 2);
  const auto most = static_cast<std::int64_t>(
      std::max(least, std::bit_ceil(static_cast<std::uint64_t>(shape.queries))));
  return {
      {"tile",
       fmt::format("tiles of more than {} queries are mostly idle: q is {}", most, shape.queries),
       queries <= most},
      {"grid",
       fmt::format("{} sequences of {} heads and {} queries are more than {} workgroups",
                   shape.batch, shape.heads, shape.queries, groups),
       ceil_div(shape.queries, queries) <= groups / (shape.batch * shape.heads)},
  };
}

std::vector<Division> prefill_divisions(const Shape& shape, const Config& c, std::int64_t queries) {
  return {{"q", shape.queries, queries, c.has("BQ") ? "BQ" : ""},
          {"kv", shape.capacity, c["BK"], "BK"},
          {"heads", shape.batch * shape.heads, c["TOGETHER"], "TOGETHER"}};
}

LaunchPlan prefill_plan(const Shape& shape, const DeviceInfo& device, std::string_view name,
                        const Defines& defines, std::int64_t queries, std::int64_t threads) {
  const std::int64_t tiles = ceil_div(shape.queries, queries);
  const auto list = arguments(shape, tiles, false, 0);
  LaunchPlan plan;
  plan.sources.push_back(kernel_source(device, name, defines, threads, list));
  const auto count = static_cast<std::uint64_t>(tiles * shape.batch * shape.heads);
  plan.launches.push_back({0, grid(device, plan.sources[0], count), list});
  return plan;
}

}  // namespace greta::kernels::attention
