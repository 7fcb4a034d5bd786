#include "kernels/templates/gemm/tiled_space.hpp"

#include <fmt/format.h>

#include "kernels/planning/cluster_units.hpp"
#include "kernels/templates/gemm/matrix_kernel.hpp"
#include "kernels/templates/gemm/plan.hpp"
#include "kernels/templates/gemm/space.hpp"
#include "kernels/templates/gemm/transposition.hpp"
#include "runtime/device/hardware/architectures.hpp"

namespace greta::kernels::gemm {
namespace {

/// Returns the number of 32-bit registers that a thread uses at once: accumulators, an element of A
/// and one of B, and the loads in flight with STAGES=2.
Expression least_registers(DType type) {
  const Expression elements = (p["BM"] + p["BN"]) * p["BK"] / threads_of(p);
  const Expression loaded = ceil_div(elements * bits_of(type), 32);
  return p["TM"] * p["TN"] + 2 + select(p["STAGES"] == 2, loaded, 0);
}

auto tile_bytes(const auto& c) {
  return 4 * c["STAGES"] * c["BK"] * (c["BM"] + c["BN"] + 2 * c["PAD"]);
}

/// Returns the bytes that a workgroup gets from the other ones of its cluster (tiled_sums.hip).
std::int64_t received_bytes(const Config& c) {
  const std::int64_t pieces = c["TM"] * c["TN"] / 4, split = c["SPLIT"];
  return (split - 1) * ceil_div(pieces, split) * threads_of(c) * 16;
}

std::vector<int> subgroup_sizes(const DeviceInfo& device) {
  std::vector<int> sizes{0};
  if (!device.subgroup_size_control || device.min_subgroup_size == device.max_subgroup_size) {
    return sizes;
  }
  for (std::uint32_t s = device.min_subgroup_size; s <= device.max_subgroup_size; s *= 2) {
    sizes.push_back(static_cast<int>(s));
  }
  return sizes;
}

/// Every thread loads at least one vector of an operand's tile.
Constraint loads_suffice(const char* name, const char* extent, const char* width) {
  return {name,
          fmt::format("{} x BK elements in vectors of {} must give every thread at least one",
                      extent, width),
          p[extent] * p["BK"] >= p[width] * threads_of(p)};
}

/// Loads of a thread are at constant distances.
Constraint lines_fit(const char* name, const char* extent, const char* width, bool along_k,
                     bool may_transpose) {
  const Expression length = !along_k         ? p[extent]
                            : !may_transpose ? p["BK"]
                                             : select(p["TRANSPOSE"] == 1, p[extent], p["BK"]);
  const Expression vectors = length / p[width];
  const std::string shown = !along_k         ? extent
                            : !may_transpose ? "BK"
                                             : fmt::format("BK (with TRANSPOSE=1 {})", extent);
  return {name,
          fmt::format("a line's vectors, {} / {}, must divide the threads or be a multiple of them",
                      shown, width),
          threads_of(p) % vectors == 0 || vectors % threads_of(p) == 0};
}

std::vector<Parameter> parameters_of(const Shape& shape, const DeviceInfo& device, bool split) {
  // BM x BN  tile of C per workgroup: reuse of A and B versus number of workgroups
  // TM x TN  part of the tile per thread: reuse of shared memory reads
  // LX       threads along n in a group of 32: coalescing of their shared memory reads
  // BK       K steps per stage in shared memory: fewer barriers versus more memory
  // STAGES   2: the next tiles are loaded during the computation; more: they are copied to shared
  //          memory past the registers, STAGES steps ahead
  // PAD      elements of padding per row in shared memory, against bank conflicts
  // VA, VB   elements of A and B per load
  // UNROLL   K steps that are unrolled
  // SWIZZLE  rows of tiles that are rasterised together, for L2 reuse
  std::vector<Parameter> list{
      {"BM", {16, 32, 48, 64, 96, 128, 192, 256}},
      {"BN", {16, 32, 48, 64, 96, 128, 192, 256}},
      {"TM", {4, 8, 16}},
      {"TN", {4, 8, 16}},
      {"LX", {4, 8, 16}},
      {"BK", {8, 16, 32}},
      {"STAGES", copies(shape, device) ? std::vector<int>{1, 2, 3, 4, 5} : std::vector<int>{1, 2}},
      {"PAD", {0, 4, 8}},
      {"VA", vector_widths(shape.in)},
      {"VB", vector_widths(shape.in)},
      {"UNROLL", {1, 2, 4, 8, 16}},
      {"SWIZZLE", {1, 2, 4, 8, 16}},
  };
  // SUBGROUP required subgroup size; 0: the driver decides
  if (device.language == Language::glsl) list.push_back({"SUBGROUP", subgroup_sizes(device)});
  // ORDER    of a thread's products: by rows, by rows in turn backwards, by columns, by squares
  // TRANSPOSE 1: operands that lie along k are transposed by a launch of its own
  if (copies(shape, device)) list.push_back({"ORDER", {0, 1, 2, 3}});
  if (transposes(shape, device)) list.push_back({"TRANSPOSE", {0, 1}});
  // FOLD     how slices are added; 0: a second launch; 1: the last slice to finish adds all; 2: the
  //          slices of a tile form a cluster and exchange sums
  if (split) list.push_back({"SPLIT", slice_counts()});
  if (split && device.language == Language::hip) {
    list.push_back({"FOLD", has_clusters(device.architecture) ? std::vector<int>{0, 1, 2}
                                                              : std::vector<int>{0, 1}});
  }
  return list;
}

std::vector<Constraint> thread_constraints(const DeviceInfo& device) {
  const std::int64_t most = most_threads(device);
  return {
      {"workgroup_threads", fmt::format("BM/TM x BN/TN must be 32 to {} threads", most),
       threads_of(p) >= 32 && threads_of(p) <= most},
      {"bundles", "bundles of LX x 32/LX threads must divide BN/TN x BM/TM",
       p["BN"] / p["TN"] % p["LX"] == 0 && p["BM"] / p["TM"] % (32 / p["LX"]) == 0},
  };
}

/// CPUs keep accumulators in the cache, but compile slowly.
Constraint code_size() {
  return {"code_size",
          "TM x TN above 128, or TM x TN x UNROLL above 256, compiles slowly for a CPU",
          p["TM"] * p["TN"] <= 128 && p["TM"] * p["TN"] * p["UNROLL"] <= 256};
}

std::vector<Constraint> tile_constraints(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t shared = device.shared_memory_bytes;
  return {
      loads_suffice("a_loads", "BM", "VA"),
      loads_suffice("b_loads", "BN", "VB"),
      lines_fit("a_lines", "BM", "VA", shape.a_along_k, transposes(shape, device)),
      lines_fit("b_lines", "BN", "VB", shape.b_along_k, transposes(shape, device)),
      {"shared_memory",
       fmt::format("both tiles, STAGES x BK x (BM + BN + 2 PAD) x 4 bytes, must fit {} KiB",
                   shared / 1024),
       tile_bytes(p) <= shared},
      {"unroll", "UNROLL must not exceed BK", p["UNROLL"] <= p["BK"]},
  };
}

/// Vectors divide rows as they are stored, or as they are transposed.
Constraint vector_constraint(const char* name, const char* parameter, std::int64_t stride,
                             bool may_transpose) {
  Constraint stored = alignment_constraint(name, parameter, stride);
  if (!may_transpose) return stored;
  stored.condition = p["TRANSPOSE"] == 1 || stride % p[parameter] == 0;
  return stored;
}

std::vector<Constraint> copy_constraints(const Shape& shape, const DeviceInfo& device,
                                         bool may_transpose) {
  if (!copies(shape, device)) return {};
  const std::int64_t most = most_workspace(device);
  const char* const one_by_one =
      "STAGES of more than 2 copy elements that lie along k one by one: their VA or VB must be 1";
  const Expression moved = p["STAGES"] <= 2 || ((!shape.a_along_k || p["VA"] == 1) &&
                                                (!shape.b_along_k || p["VB"] == 1));
  if (!may_transpose) return {{"copies", one_by_one, moved}};
  return {
      {"copies", one_by_one, p["TRANSPOSE"] == 1 || moved},
      {"transpose", "TRANSPOSE is for STAGES of more than 2",
       p["TRANSPOSE"] == 0 || p["STAGES"] > 2},
      {"transposed", fmt::format("the transposed operands need more than {} MiB", most >> 20),
       p["TRANSPOSE"] == 0 || transposed_bytes(shape) <= most},
  };
}

std::vector<Constraint> split_constraints(const Shape& shape, const DeviceInfo& device) {
  std::vector<Constraint> list{
      {"group_slices", "K is not sliced where there are several products", !shape.several()},
      {"slices", fmt::format("SPLIT x BK must not exceed k, {}", shape.k),
       p["SPLIT"] * p["BK"] <= shape.k},
      workspace_constraint(shape, device)};
  if (device.language != Language::hip) return list;
  list.push_back({"fold", "FOLD=1 adds at most 16 slices, whose sums a thread holds at once",
                  p["FOLD"] != 1 || p["SPLIT"] <= 16});
  if (!has_clusters(device.architecture)) return list;
  const std::int64_t shared = device.shared_memory_bytes;
  append(
      list,
      {{"cluster",
        fmt::format("with FOLD=2, at most {} slices, and at most TM x TN / 4, are a cluster",
                    most_in_cluster),
        p["FOLD"] != 2 || (p["SPLIT"] <= most_in_cluster && 4 * p["SPLIT"] <= p["TM"] * p["TN"])},
       {"cluster_memory",
        fmt::format("with FOLD=2, both tiles and what other slices send must fit {} KiB",
                    shared / 1024),
        {{"BM", "BN", "TM", "TN", "BK", "STAGES", "PAD", "SPLIT", "FOLD"},
         [=](const Config& c) { return shared_bytes(c) <= shared; }}}});
  return list;
}

}  // namespace

std::vector<int> slice_counts() {
  return {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 28, 32};
}

std::int64_t shared_bytes(const Config& c) {
  const std::int64_t tiles = tile_bytes(c);
  if (!c.has("FOLD") || c["FOLD"] != 2) return tiles;
  constexpr std::int64_t barrier = 16, most_apart = 16384;
  const std::int64_t received = received_bytes(c);
  return barrier + (received <= most_apart ? received + tiles : std::max(received, tiles));
}

bool copies(const Shape& shape, const DeviceInfo& device) {
  return shape.in == DType::f32 && device.language == Language::hip &&
         has_lane_copies(device.architecture);
}

bool transposes(const Shape& shape, const DeviceInfo& device) {
  return copies(shape, device) && has_operand_along_k(shape) && !shape.gated;
}

Alternative tiled_space(const Shape& shape, const DeviceInfo& device, bool split) {
  Alternative a{split ? "split_k" : "tiled", parameters_of(shape, device, split), {}};
  const bool may_transpose = transposes(shape, device);
  const bool cpu = vectorising_cpu(device);
  a.constraints = {storage_constraint(shape.in, shape.out, device)};
  const auto aligned = [&](const char* name, const char* parameter, std::int64_t unit,
                           bool along_k) {
    return vector_constraint(name, parameter, unit, along_k && may_transpose);
  };
  a.constraints.push_back(aligned("a_alignment", "VA", shape.a_unit(), shape.a_along_k));
  a.constraints.push_back(aligned("b_alignment", "VB", shape.b_unit(), shape.b_along_k));
  append(a.constraints, tiling_constraints(shape, device, false));
  append(a.constraints, thread_constraints(device));
  append(a.constraints, tile_constraints(shape, device));
  append(a.constraints, copy_constraints(shape, device, may_transpose));
  a.constraints.push_back(cpu ? code_size()
                              : register_constraint(device, "TM x TN sums and elements in flight",
                                                    least_registers(shape.in), threads_of(p)));
  if (split) append(a.constraints, split_constraints(shape, device));
  if (cpu) {
    const Expression slice = split ? ceil_div(shape.k, p["SPLIT"]) : Expression(shape.k);
    a.constraints.push_back(
        loop_limit(ceil_div(slice, p["BK"]) * (2 + p["BK"] / p["UNROLL"]), shape.k));
  }
  return a;
}

}  // namespace greta::kernels::gemm
