#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/planning/workspace.hpp"
#include "kernels/templates/attention/slices.hpp"
#include "kernels/templates/latent_attention/group_rows.hpp"

/// Rows that share keys, with matrix instructions of warpgroups (sm_90).
namespace greta::kernels::latent {
namespace {

RowGroups workgroup_of(const Shape& shape, const Config& c) {
  const std::int64_t line = padded(shape) * 2, bk = c["BK"], groups = c["GROUPS"];
  const std::int64_t shared = queries_bytes(shape) + c["BUFFERS"] * panels_part(bk * line) +
                              tile_rows * bk * 2 + groups * tile_rows * 4;
  return {.groups = groups,
          .threads = groups * 128,
          .keys = bk / groups,
          .shared_bytes = shared,
          .readers = groups};
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  Alternative a{"warpgroups", {}, {}};
  // BK       keys per step: fewer barriers versus more memory
  // GROUPS   warpgroups that divide the keys of scores and the dimensions of outputs
  // BUFFERS  tiles in shared memory, which asynchronous copies fill
  // SPLIT    workgroups that share the keys of a KV head; a second launch joins what they leave
  a.parameters = {{"BK", {32, 48, 64, 96, 128}},
                  {"GROUPS", {1, 2, 3, 4}},
                  {"BUFFERS", {2, 3}},
                  {"SPLIT", attention::key_slices()}};
  const std::int64_t file = workgroup_registers(device);
  a.constraints = {
      {"keys", "each of GROUPS must have a multiple of 8 keys, and at most 64, of BK",
       p["BK"] % (p["GROUPS"] * 8) == 0 && p["BK"] <= p["GROUPS"] * 64},
      {"registers",
       "outputs and scores need more registers than a thread has",
       {{"BK", "GROUPS", "BUFFERS"},
        [=](const Config& c) {
          const RowGroups workgroup = workgroup_of(shape, c);
          return registers(shape, workgroup) <=
                 std::min<std::int64_t>(255, file / workgroup.threads);
        }}},
  };
  append(a.constraints,
         group_constraints(shape, device, {"BK", "GROUPS", "BUFFERS"}, workgroup_of));
  return a;
}

/// Two warpgroups and 64 keys if they fit.
std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device) {
  std::vector<Config> configs;
  // Measured on an H200 (results/2026-12-01-nvidia-h200-unseen-catalog).
  const int split =
      fastest_slices(shape, device, {.round = 1.2, .join = 2.4, .joined_in_step = 3000.0 * 512})
          .split;
  if (split == 0) return configs;
  for (const int bk : {64, 32}) {
    for (const int groups : {2, 1, 3, 4}) {
      configs.push_back(
          {"warpgroups", {{"BK", bk}, {"GROUPS", groups}, {"BUFFERS", 2}, {"SPLIT", split}}});
    }
  }
  return configs;
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  return group_plan(shape, device, "latent_attention/warpgroups", config,
                    workgroup_of(shape, config));
}

KernelWork work(const Shape& shape, const DeviceInfo&, const Config& config) {
  LaunchWork work =
      group_work(shape, config, workgroup_of(shape, config), rows_work(shape, config, tile_rows));
  work.ahead_bytes *= config["BUFFERS"] - 1;
  work.barriers += 3 * work.steps;
  if (!has_join(config)) return {work};
  return {work, join_work(shape, config, tile_rows, config["SPLIT"])};
}

}  // namespace

Variant warpgroups() {
  Variant variant = make_variant<Shape>(
      "warpgroups",
      "64 rows of all heads that share keys, on matrix cores of warpgroups, which divide the keys "
      "of the scores and the dimensions of the outputs",
      space, plan, defaults,
      [](const Shape& shape, const Config& c) { return rows_divisions(shape, c, tile_rows); });
  set_work<Shape>(variant, work);
  return variant;
}

}  // namespace greta::kernels::latent
