#include "kernels/templates/attention/prefill.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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
                                         const Expression& rows, const Expression& packed) {
  const std::int64_t groups = most_workgroups(device);
  // Two threads can share heads of few elements, and a subgroup must still be full.
  const std::int64_t least = std::max(16U, device.max_subgroup_size / 2);
  const auto most = [&](std::int64_t heads) {
    return std::max(least, next_power(shape.queries * heads));
  };
  const std::string grid =
      fmt::format("{} sequences of {} heads and {} queries are more than {} workgroups",
                  shape.batch, shape.heads, shape.queries, groups);
  if (packed.parameters().empty()) {
    return {{"tile",
             fmt::format("tiles of more than {} queries are mostly idle: q is {}", most(1),
                         shape.queries),
             rows <= most(1)},
            {"grid", grid, shape.tiles(rows, 1) <= groups / (shape.tile_sets() * shape.heads)}};
  }
  return {{"tile",
           fmt::format("tiles of more than {} queries, or with PACK {}, are mostly idle: q is {}",
                       most(1), most(shape.group()), shape.queries),
           rows <= select(packed == 1, most(1), most(shape.group()))},
          {"grid", grid,
           shape.tiles(rows, packed) <= groups / (shape.tile_sets() * shape.heads / packed)}};
}

std::vector<Division> prefill_divisions(const Shape& shape, const Config& c, std::int64_t rows,
                                        std::int64_t packed) {
  std::vector<Division> list{
      {packed > 1 ? "q x heads" : "q", shape.queries * packed, rows, c.has("BQ") ? "BQ" : ""},
      {"kv", shape.capacity, c["BK"], "BK"},
      {"heads", shape.batch * shape.heads / packed, c["TOGETHER"], "TOGETHER"}};
  for (Division& division : window_divisions(shape)) list.push_back(std::move(division));
  return list;
}

Division buffered_tiles(const Shape& shape, const Config& config, std::int64_t keys,
                        const std::string& parameter) {
  return {"tiles of kv", ceil_div(shape.capacity, keys), config[parameter], parameter};
}

LaunchWork prefill_work(const Shape& shape, const Config& config, std::int64_t rows,
                        std::int64_t packed) {
  const double keys = config["BK"];
  const double in = bytes_of(shape.in, 1), out = bytes_of(shape.out, 1);
  const auto dim = static_cast<double>(shape.dim), v_dim = static_cast<double>(shape.v_dim);
  const auto capacity = static_cast<double>(shape.capacity);
  const auto heads = static_cast<double>(shape.batch * shape.heads);
  const auto own = static_cast<double>(rows);
  LaunchWork work;
  Shape launched = shape;
  if (shape.packed_queries > 0) {
    launched.packed = true;
    launched.queries = shape.packed_queries;
  }
  work.workgroups = static_cast<double>(launched.tiles(rows, packed) * launched.tile_sets() *
                                        (shape.heads / packed));
  // A tile's queries see half of the others' keys.
  const std::int64_t others = std::max<std::int64_t>(0, shape.queries - rows / packed);
  const double hidden = shape.causal ? static_cast<double>(others) / 2 : 0;
  const double seen = std::max(1.0, capacity - hidden);  // queries may be more than keys
  // The tiles of TOGETHER heads begin with the longest.
  if (seen < capacity) work.imbalance = 1.0 / config["TOGETHER"];
  work.steps = std::ceil(std::min(seen, capacity) / keys);
  work.read_bytes = (work.steps * keys * (dim + v_dim) + own * dim) * in;
  work.written_bytes = own * v_dim * out;
  work.ahead_bytes = keys * std::max(dim, v_dim) * in;
  work.unique_bytes =
      heads * static_cast<double>(shape.queries) * (dim * in + v_dim * out) +
      static_cast<double>(shape.batch * shape.kv_heads) * capacity * (dim + v_dim) * in;
  return work;
}

LaunchPlan prefill_plan(const Shape& shape, const DeviceInfo& device, std::string_view name,
                        const Defines& defines, std::int64_t queries, std::int64_t threads) {
  const std::int64_t tiles = shape.tiles(queries, std::int64_t{1});
  const auto list = arguments(shape, tiles, false, 0);
  LaunchPlan plan;
  plan.sources.push_back(kernel_source(device, name, defines, threads, list));
  const auto count = static_cast<std::uint64_t>(tiles * shape.tile_sets() * shape.heads);
  plan.launches.push_back({0, grid(device, plan.sources[0], count), list});
  return plan;
}

}  // namespace greta::kernels::attention
