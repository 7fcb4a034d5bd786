#include "kernels/templates/gemm/space.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/planning/cluster_units.hpp"
#include "kernels/templates/gemm/matrix_kernel.hpp"

namespace greta::kernels::gemm {

int default_split(const Shape& shape, const DeviceInfo& device, std::int64_t count) {
  int split = 1;
  if (shape.several()) return split;
  if (vectorising_cpu(device)) {
    constexpr std::int64_t longest_slice = 50000;  // K steps that the driver's loops support
    while (split < 32 && shape.k / split > longest_slice) split *= 2;
    return split;
  }
  const std::int64_t busy = busy_workgroups(device);
  while (split < 16 && count * split < busy && shape.k >= std::int64_t{512} * split) split *= 2;
  return split;
}

std::int64_t most_square_rounds(std::int64_t k) {
  return std::max<std::int64_t>(64, k / 64);
}

std::int64_t slice_length(const Shape& shape, int split, int step) {
  return round_up(ceil_div(shape.k, split), step);
}

Constraint alignment_constraint(const char* name, const char* parameter, std::int64_t stride) {
  return {name,
          fmt::format("{} must divide {}, the elements of a row of {} as it is stored", parameter,
                      stride, parameter[1]),
          stride % p[parameter] == 0};
}

Constraint tile_fits(const char* name, const char* parameter, std::int64_t extent, char dim) {
  const std::int64_t most = std::max<std::int64_t>(32, next_power(extent));
  return {name,
          fmt::format("{} of more than {} is mostly idle: {} is {}", parameter, most, dim, extent),
          p[parameter] <= most};
}

Constraint plain_product(const Shape& shape) {
  return {"plain_product",
          "tiles have neither whole rows to normalise nor gates beside their ups; gemv has",
          !shape.norm && !shape.gated};
}

std::vector<Constraint> tiled_product(const Shape& shape, bool aligns) {
  std::vector<Constraint> list{
      {"whole_rows", "tiles have no whole rows to normalise; gemv has", !shape.norm}};
  if (!shape.gated) return list;
  // Offsets in bytes from a gate to its up are 32-bit numbers.
  const double apart =
      bytes_of(shape.in, static_cast<double>(shape.n) * static_cast<double>(shape.b_stride()));
  append(list,
         {{"gate_lines",
           "gates and ups of a tile must be lines of B: K is contiguous in it, layout nt or tt",
           shape.b_along_k},
          {"gate_distance", "n lines of B must be less than 1 GiB", apart < 0x1p30}});
  if (!aligns) return list;
  list.push_back(
      {"gate_copies", "ALIGN must be 0 with gates: their lines are not copied", p["ALIGN"] == 0});
  return list;
}

namespace {

Constraint grid_constraint(const Shape& shape, const DeviceInfo& device,
                           const Expression& workgroups) {
  const std::int64_t most = most_workgroups(device);
  return {"grid",
          fmt::format("{} x {} in tiles of BM x BN is more than {} workgroups", shape.m,
                      shape.products(), most),
          workgroups <= most};
}

}  // namespace

Constraint grid_of_tiles(const Shape& shape, const DeviceInfo& device) {
  return grid_constraint(shape, device,
                         launched_lines(shape, p["BM"]) * ceil_div(shape.products(), p["BN"]));
}

std::vector<Constraint> tiling_constraints(const Shape& shape, const DeviceInfo& device,
                                           bool aligns) {
  std::vector<Constraint> list{
      {"many_rows",
       fmt::format("tiles need m >= {}, m is {}; gemv serves fewer", least_tiled_rows, shape.m),
       shape.grouped() || shape.m >= least_tiled_rows},
      tile_fits("tile_m", "BM", shape.m, 'm'),
      tile_fits("tile_n", "BN", shape.products(), 'n'),
      grid_of_tiles(shape, device),
  };
  append(list, tiled_product(shape, aligns));
  return list;
}

Constraint grid_of_clusters(const Shape& shape, const DeviceInfo& device) {
  const Expression along_m = launched_lines(shape, p["BM"] * p["CLUSTER_M"]);
  const Expression along_n = ceil_div(shape.products(), p["BN"] * p["CLUSTER_N"]);
  return grid_constraint(shape, device, along_m * along_n * (p["CLUSTER_M"] * p["CLUSTER_N"]));
}

std::vector<Constraint> group_constraints(const Shape& shape) {
  if (!shape.several()) return {};
  return {
      {"group_slices",
       "SPLIT must be 1: K is not sliced where there are several products, which make tiles "
       "enough",
       p["SPLIT"] == 1},
      {"group_copies",
       "ALIGN must be 0 where there are several products: a copy of every B takes as long as its "
       "product with few rows",
       p["ALIGN"] == 0}};
}

Constraint workspace_constraint(const Shape& shape, const DeviceInfo& device) {
  // reduce.hip counts the sums of a slice in 32 bits, one by one where C has odd rows.
  constexpr std::int64_t counted = std::int64_t{1} << 32;
  const std::int64_t most = std::min(most_workspace(device), 8 * (counted - 256));
  return {"workspace",
          fmt::format("SPLIT partial sums of {} x {} elements need more than {} MiB", shape.m,
                      shape.products(), most >> 20),
          p["SPLIT"] == 1 || shape.m * shape.products() <= most / 4 / p["SPLIT"]};
}

Constraint fold_constraint() {
  return {"fold",
          fmt::format("there are no slices to FOLD, or more than {} in a cluster", most_in_cluster),
          p["FOLD"] == 0 || (p["SPLIT"] > 1 && (p["FOLD"] == 1 || p["SPLIT"] <= most_in_cluster))};
}

Constraint walk_constraint(const Shape& shape) {
  constexpr std::int64_t one_tile = 128;
  return {"walk",
          fmt::format("WALK=1 needs more than {0} rows and columns: {1} x {2} have few tiles on "
                      "one side, whose order makes no difference",
                      one_tile, shape.m, shape.products()),
          p["WALK"] == 0 || std::min(shape.m, shape.products()) > one_tile};
}

Constraint whole_steps_constraint(const Shape& shape) {
  return {"group_steps", "BK must divide k: the next product's operands must not be read",
          !shape.several() || (shape.a_along_k && shape.b_along_k) || (shape.k % p["BK"] == 0)};
}

Constraint whole_lines_constraint(const Shape& shape) {
  return {"batch_lines", "the distances of A and of B must be of whole lines",
          Expression(shape.a_step % shape.a_stride() == 0 && shape.b_step % shape.b_stride() == 0)};
}

void raise_stages(Config& config, int most, const DeviceInfo& device,
                  const std::function<std::int64_t(const Config&)>& shared_bytes) {
  while (config["STAGES"] < most) {
    Config deeper = config;
    ++deeper.value("STAGES");
    if (shared_bytes(deeper) > std::int64_t{device.shared_memory_bytes}) return;
    config = std::move(deeper);
  }
}

}  // namespace greta::kernels::gemm
