#include <algorithm>
#include <vector>

#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/planning/workspace.hpp"
#include "kernels/templates/attention/slices.hpp"
#include "kernels/templates/latent_attention/group_rows.hpp"

/// Rows that share keys, by two warpgroups that multiply and weigh in turn (sm_90).
namespace greta::kernels::latent {
namespace {

constexpr std::int64_t groups = 2;

RowGroups workgroup_of(const Shape& shape, const Config& c) {
  const std::int64_t line = padded(shape) * 2, bk = c["BK"];
  const std::int64_t weights = has_spare_panel(shape, groups) ? 0 : panels_part(tile_rows * bk * 2);
  const std::int64_t of_rows = 2 * tile_rows * 4;  // bases and sums
  constexpr std::int64_t barriers = (groups * 2 * 3 + 4) * 8, parts = 2 * 48;
  const std::int64_t shared = queries_bytes(shape) +
                              groups * (panels_part(bk * line) + weights + of_rows) + barriers +
                              parts;
  return {.groups = groups,
          .threads = (groups + 1) * 128,
          .keys = bk,
          .shared_bytes = shared,
          .readers = 1};
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  Alternative a{"pingpong", {}, {}};
  // BK        keys of a warpgroup's tile: fewer barriers versus more memory
  // SPLIT     workgroups that share the keys of a KV head; a second launch joins what they leave
  // STREAM_K  1: the keys of all sequences are divided evenly among the workgroups that run at once
  a.parameters = {{"BK", {32, 48, 64}}, {"SPLIT", attention::key_slices()}, {"STREAM_K", {0, 1}}};
  a.constraints = group_constraints(shape, device, {"BK"}, workgroup_of);
  a.constraints.push_back(
      {"stream", "STREAM_K divides the keys without SPLIT", p["STREAM_K"] == 0 || p["SPLIT"] == 1});
  return a;
}

/// 64 keys if they fit.
std::vector<Config> defaults(const Shape& shape, const DeviceInfo& device) {
  std::vector<Config> configs;
  // Measured on an H200 (results/2026-12-01-nvidia-h200-latent-pingpong and
  // 2026-12-01-nvidia-h200-long-single-queries).
  const Slicing slices = fastest_slices(shape, device,
                                        {.round = 4.8,
                                         .join = 5.0,
                                         .joined_in_step = 2000.0 * 512,
                                         .fetch = 1.38,
                                         .stream_part = 8.4,
                                         .stream_join = 7.2});
  if (slices.split == 0) return configs;
  for (const int bk : {64, 48, 32}) {
    configs.push_back(
        {"pingpong", {{"BK", bk}, {"SPLIT", slices.split}, {"STREAM_K", slices.stream ? 1 : 0}}});
  }
  return configs;
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  return group_plan(shape, device, "latent_attention/pingpong", config,
                    workgroup_of(shape, config));
}

KernelWork work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const RowGroups workgroup = workgroup_of(shape, config);
  const bool stream = streams(config);
  LaunchWork work = group_work(shape, config, workgroup,
                               stream ? streamed_work(shape, device, config, tile_rows)
                                      : rows_work(shape, config, tile_rows));
  // Warpgroups that multiply get registers of the one that copies.
  const std::int64_t at_launch = workgroup_registers(device) / workgroup.threads / 8 * 8;
  work.registers = std::min(work.registers, static_cast<double>(at_launch));
  work.barriers += work.steps;
  const double slices =
      stream ? stream_of(shape, device, tile_rows).sharers(shape) : config["SPLIT"];
  if (slices == 1) return {work};
  return {work, join_work(shape, config, tile_rows, slices)};
}

}  // namespace

Variant pingpong() {
  Variant variant = make_variant<Shape>(
      "pingpong",
      "64 rows of all heads that share keys, on matrix cores of two warpgroups, of which one turns "
      "the scores of its tile of keys into weights while the other multiplies",
      space, plan, defaults,
      [](const Shape& shape, const Config& c) { return rows_divisions(shape, c, tile_rows); });
  set_work<Shape>(variant, work);
  variant.kernels_by = "STREAM_K";
  variant.judges = "warpgroups";
  return variant;
}

}  // namespace greta::kernels::latent
