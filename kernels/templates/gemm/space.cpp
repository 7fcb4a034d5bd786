#include "kernels/templates/gemm/space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>

namespace greta::gemm {
namespace {

std::int64_t threads_of(const Config& c) {
  return std::int64_t{c["BM"]} / c["TM"] * (c["BN"] / c["TN"]);
}

/// 32-bit registers that a thread needs: sums, pieces of A and B, loads in flight, addressing.
std::int64_t registers_of(const Config& c) {
  const std::int64_t tile = std::int64_t{c["TM"]} * c["TN"] + c["TM"] + c["TN"];
  const std::int64_t loads = std::int64_t{c["BM"] + c["BN"]} * c["BK"] / threads_of(c);
  return tile + (c["STAGES"] == 2 ? loads : 0) + 24;
}

std::int64_t shared_bytes(const Config& c) {
  return std::int64_t{4} * c["STAGES"] * c["BK"] * (c["BM"] + c["BN"] + 2 * c["PAD"]);
}

/// Each lane's sums, and those of gemv.comp's PARTS groups of lanes.
std::int64_t gemv_shared_bytes(const Shape& shape, const Config& c) {
  const std::int64_t lanes = c["THREADS"] / c["COLS"];
  const std::int64_t parts = lanes >= 1024 ? 32 : lanes >= 256 ? 16 : lanes >= 64 ? 8 : 4;
  return 4 * gemv_width(shape, c) * (lanes + parts);
}

std::vector<int> vector_widths(DType type) {
  return type == DType::f32 ? std::vector<int>{1, 2, 4} : std::vector<int>{1, 2, 4, 8};
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

std::int64_t most_threads(const DeviceInfo& device) {
  return std::min(device.max_workgroup_invocations, device.max_workgroup_size[0]);
}

/// Workgroups that fit into a grid folded into two dimensions, and into 32 bits.
std::int64_t most_workgroups(const DeviceInfo& device) {
  const std::int64_t x = device.max_grid[0], y = device.max_grid[1];
  return std::min<std::int64_t>(x * y, 0x7fffffff);
}

Constraint storage_constraint(const Shape& shape, const DeviceInfo& device) {
  const bool good = device.f16_storage || (shape.in == DType::f32 && shape.out == DType::f32);
  return {"f16_storage", "the device can't load and store f16", {}, [good](const Config&) {
            return good;
          }};
}

Constraint alignment(const char* name, const char* parameter, std::int64_t stride) {
  return {name,
          fmt::format("{} must divide {}, the elements of a row of {} as it is stored", parameter,
                      stride, parameter[1]),
          {parameter},
          [parameter, stride](const Config& c) { return stride % c[parameter] == 0; }};
}

/// A tile of twice the matrix or more only adds idle threads.
Constraint tile_fits(const char* name, const char* parameter, std::int64_t extent, char dim) {
  const auto most = static_cast<std::int64_t>(
      std::max<std::uint64_t>(32, std::bit_ceil(static_cast<std::uint64_t>(extent))));
  return {name,
          fmt::format("{} of more than {} is mostly idle: {} is {}", parameter, most, dim, extent),
          {parameter},
          [parameter, most](const Config& c) { return c[parameter] <= most; }};
}

/// Every thread loads the same number of vectors of an operand's tile.
Constraint loads_divide(const char* name, const char* extent, const char* width) {
  return {name,
          fmt::format("{} x BK elements in vectors of {} must give every thread at least one",
                      extent, width),
          {"BM", "BN", "TM", "TN", "BK", width},
          [extent, width](const Config& c) {
            return std::int64_t{c[extent]} * c["BK"] % (c[width] * threads_of(c)) == 0;
          }};
}

std::vector<Constraint> thread_constraints(const DeviceInfo& device) {
  const std::int64_t most = most_threads(device);
  return {
      {"workgroup_threads",
       fmt::format("BM/TM x BN/TN must be 32 to {} threads", most),
       {"BM", "BN", "TM", "TN"},
       [most](const Config& c) { return threads_of(c) >= 32 && threads_of(c) <= most; }},
      {"bundles",
       "bundles of LX x 32/LX threads must divide BN/TN x BM/TM",
       {"BM", "BN", "TM", "TN", "LX"},
       [](const Config& c) {
         return c["BN"] / c["TN"] % c["LX"] == 0 && c["BM"] / c["TM"] % (32 / c["LX"]) == 0;
       }},
  };
}

/// Where sums live in a GPU's registers, spilling is never worth a trial.
std::vector<Constraint> register_constraints() {
  return {
      {"registers",
       "TM x TN sums and what goes with them need more than 256 registers of a thread",
       {"BM", "BN", "TM", "TN", "BK", "STAGES"},
       [](const Config& c) { return registers_of(c) <= 256; }},
      {"register_file",
       "the threads of a workgroup need more than 65536 registers together",
       {"BM", "BN", "TM", "TN", "BK", "STAGES"},
       [](const Config& c) { return registers_of(c) * threads_of(c) <= 65536; }},
  };
}

/// A CPU keeps the sums in its cache, but compiles slowly.
Constraint code_size() {
  return {"code_size",
          "TM x TN above 128, or TM x TN x UNROLL above 256, compiles slowly for a CPU",
          {"TM", "TN", "UNROLL"},
          [](const Config& c) {
            const int sums = c["TM"] * c["TN"];
            return sums <= 128 && sums * c["UNROLL"] <= 256;
          }};
}

/// Mesa's CPU driver ends all loops of an invocation after 65535 rounds in sum, without a word.
Constraint loop_limit(const Shape& shape, bool split) {
  return {"loop_limit",
          fmt::format("the CPU driver runs 65535 rounds of loops: too few for this share of k, {}",
                      shape.k),
          split ? std::vector<std::string>{"BK", "UNROLL", "SPLIT"}
                : std::vector<std::string>{"BK", "UNROLL"},
          [k = shape.k, split](const Config& c) {
            const std::int64_t steps = ceil_div(ceil_div(k, split ? c["SPLIT"] : 1), c["BK"]);
            return steps * (1 + c["BK"] / c["UNROLL"]) < 60000;
          }};
}

std::vector<Constraint> tile_constraints(const DeviceInfo& device) {
  const std::int64_t shared = device.shared_memory_bytes;
  return {
      loads_divide("a_loads", "BM", "VA"),
      loads_divide("b_loads", "BN", "VB"),
      {"shared_memory",
       fmt::format("both tiles, STAGES x BK x (BM + BN + 2 PAD) x 4 bytes, must fit {} KiB",
                   shared / 1024),
       {"BM", "BN", "BK", "PAD", "STAGES"},
       [shared](const Config& c) { return shared_bytes(c) <= shared; }},
      {"unroll",
       "UNROLL must not exceed BK",
       {"BK", "UNROLL"},
       [](const Config& c) { return c["UNROLL"] <= c["BK"]; }},
  };
}

std::vector<Constraint> problem_constraints(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t most = most_workgroups(device);
  return {
      {"many_rows",
       fmt::format("tiles need m >= {}, m is {}; gemv serves fewer", least_tiled_rows, shape.m),
       {},
       [m = shape.m](const Config&) { return m >= least_tiled_rows; }},
      alignment("a_alignment", "VA", shape.a_stride()),
      alignment("b_alignment", "VB", shape.b_stride()),
      tile_fits("tile_m", "BM", shape.m, 'm'),
      tile_fits("tile_n", "BN", shape.n, 'n'),
      {"grid",
       fmt::format("{} x {} in tiles of BM x BN is more than {} workgroups", shape.m, shape.n,
                   most),
       {"BM", "BN"},
       [shape, most](const Config& c) {
         return ceil_div(shape.m, c["BM"]) * ceil_div(shape.n, c["BN"]) <= most;
       }},
  };
}

/// The workspace holds SPLIT copies of C in f32, and must leave room for the operands.
Constraint workspace(const Shape& shape, const DeviceInfo& device) {
  const auto most =
      static_cast<std::int64_t>(std::min(device.memory_bytes / 4, device.max_allocation_bytes));
  return {"workspace",
          fmt::format("SPLIT partial sums of {} x {} elements need more than {} MiB", shape.m,
                      shape.n, most >> 20),
          {"SPLIT"},
          [shape, most](const Config& c) {
            return c["SPLIT"] == 1 || shape.m * shape.n <= most / 4 / c["SPLIT"];
          }};
}

/// `split`: for split_k, which adds what concerns its slices.
Alternative tiled(const Shape& shape, const DeviceInfo& device, bool split = false) {
  // BM x BN  tile of C of a workgroup: reuse of A and B against the number of workgroups
  // TM x TN  of them in a thread's registers: reuse of what it reads from shared memory
  // LX       of 32 neighbouring threads along n: how their reads of shared memory coincide
  // BK       K steps in shared memory at a time: fewer barriers against more memory
  // STAGES   2: the next tiles are loaded while these are multiplied
  // PAD      elements behind each row in shared memory: spreads columns over its banks
  // VA, VB   elements of A and B in one load
  // UNROLL   K steps of straight code
  // SWIZZLE  rows of tiles that are walked together: what neighbours share in the cache
  // SUBGROUP threads that run in lockstep; 0 leaves it to the driver
  Alternative a{"tiled", {}, {}};
  a.parameters = {
      {"BM", {16, 32, 64, 128, 256}},
      {"BN", {16, 32, 64, 128, 256}},
      {"TM", {4, 8, 16}},
      {"TN", {4, 8, 16}},
      {"LX", {4, 8, 16}},
      {"BK", {8, 16, 32}},
      {"STAGES", {1, 2}},
      {"PAD", {0, 4, 8}},
      {"VA", vector_widths(shape.in)},
      {"VB", vector_widths(shape.in)},
      {"UNROLL", {1, 2, 4, 8, 16}},
      {"SWIZZLE", {1, 2, 4, 8, 16}},
      {"SUBGROUP", subgroup_sizes(device)},
  };
  a.constraints = {storage_constraint(shape, device)};
  const auto add = [&a](std::vector<Constraint> more) {
    std::move(more.begin(), more.end(), std::back_inserter(a.constraints));
  };
  add(problem_constraints(shape, device));
  add(thread_constraints(device));
  add(tile_constraints(device));
  add(device.is_cpu() ? std::vector{code_size()} : register_constraints());
  if (device.is_cpu() && !split) a.constraints.push_back(loop_limit(shape, false));
  return a;
}

Alternative split_k(const Shape& shape, const DeviceInfo& device) {
  Alternative a = tiled(shape, device, true);
  a.variant = "split_k";
  a.parameters.push_back({"SPLIT", {2, 4, 8, 16, 32}});
  a.constraints.push_back({"slices",
                           fmt::format("SPLIT x BK must not exceed k, {}", shape.k),
                           {"BK", "SPLIT"},
                           [k = shape.k](const Config& c) { return c["SPLIT"] * c["BK"] <= k; }});
  a.constraints.push_back(workspace(shape, device));
  if (device.is_cpu()) a.constraints.push_back(loop_limit(shape, true));
  return a;
}

/// What the problem's extents allow.
std::vector<Constraint> gemv_problem_constraints(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t groups = most_workgroups(device);
  return {
      {"few_rows",
       fmt::format("gemv needs m <= {}, m is {}", most_gemv_rows, shape.m),
       {},
       [m = shape.m](const Config&) { return m <= most_gemv_rows; }},
      alignment("a_alignment", "VA", shape.a_along_k ? shape.k : 1),
      alignment("b_alignment", "VB", shape.b_stride()),
      {"slices",
       fmt::format("SPLIT x UNROLL must not exceed k, {}", shape.k),
       {"UNROLL", "SPLIT"},
       [k = shape.k](const Config& c) { return c["SPLIT"] == 1 || c["SPLIT"] * c["UNROLL"] <= k; }},
      {"grid",
       fmt::format("n is more than {} workgroups wide", groups),
       {"COLS", "VB"},
       [shape, groups](const Config& c) {
         return ceil_div(shape.n, gemv_width(shape, c)) <= groups;
       }},
      workspace(shape, device),
  };
}

/// What a workgroup and its threads can hold.
std::vector<Constraint> gemv_workgroup_constraints(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t threads = most_threads(device), shared = device.shared_memory_bytes;
  return {
      {"workgroup_threads",
       fmt::format("the device allows {} threads", threads),
       {"THREADS"},
       [threads](const Config& c) { return c["THREADS"] <= threads; }},
      {"a_loads",
       shape.b_along_k ? "VA must be VB: A is read along with B" : "VA must not exceed UNROLL",
       {"VB", "VA", "UNROLL"},
       [shape](const Config& c) {
         return shape.b_along_k ? c["VA"] == c["VB"] : c["VA"] <= c["UNROLL"];
       }},
      {"registers",
       fmt::format("sums of {} rows and UNROLL loads need more than 200 registers", shape.m),
       {"VB", "UNROLL"},
       [shape](const Config& c) {
         const std::int64_t load =
             std::max<std::int64_t>(1, c["VB"] * static_cast<std::int64_t>(size_of(shape.in)) / 4);
         return shape.m * (shape.b_along_k ? 1 : c["VB"]) + c["UNROLL"] * load <= 200;
       }},
      {"columns",
       "COLS x VB columns need as many of THREADS to write them",
       {"THREADS", "COLS", "VB"},
       [shape](const Config& c) { return gemv_width(shape, c) <= c["THREADS"]; }},
      {"shared_memory",
       fmt::format("the threads' sums of a row must fit {} KiB", shared / 1024),
       {"THREADS", "COLS", "VB"},
       [shape, shared](const Config& c) { return gemv_shared_bytes(shape, c) <= shared; }},
  };
}

Alternative gemv(const Shape& shape, const DeviceInfo& device) {
  Alternative a{"gemv", {}, {}};
  const auto widths = vector_widths(shape.in);
  // COLS of a workgroup's THREADS stand side by side along n, the others along K; UNROLL loads of
  // VB elements of B are in flight in each; SPLIT workgroups share the K of the same columns.
  a.parameters = {
      {"THREADS", {64, 128, 256, 512, 1024}},
      {"COLS", {1, 2, 4, 8, 16, 32}},
      {"VB", widths},
      // Where K is contiguous in both, A is read along with B; where it is in neither, by element.
      {"VA", shape.a_along_k ? widths : std::vector<int>{1}},
      {"UNROLL", {1, 2, 4, 8, 16}},
      {"SPLIT", {1, 2, 4, 8, 16, 32}},
  };
  a.constraints = {storage_constraint(shape, device)};
  for (auto more :
       {gemv_problem_constraints(shape, device), gemv_workgroup_constraints(shape, device)}) {
    std::move(more.begin(), more.end(), std::back_inserter(a.constraints));
  }
  if (device.is_cpu()) {
    a.constraints.push_back(
        {"code_size",
         "m x VB x UNROLL above 128 multiplications compiles slowly for a CPU",
         {"VB", "UNROLL"},
         [m = shape.m](const Config& c) { return m * c["VB"] * c["UNROLL"] <= 128; }});
  }
  return a;
}

Alternative naive(const Shape& shape, const DeviceInfo& device) {
  const std::int64_t threads = most_threads(device), groups = most_workgroups(device);
  const bool runs = !device.is_cpu() || shape.k < 60000;
  return {
      "naive",
      {{"THREADS", {64, 128, 256, 512}}},
      {storage_constraint(shape, device),
       {"loop_limit",
        fmt::format("the CPU driver runs 65535 rounds of a loop: too few for k = {}", shape.k),
        {},
        [runs](const Config&) { return runs; }},
       {"workgroup_threads",
        fmt::format("the device allows {} threads", threads),
        {"THREADS"},
        [threads](const Config& c) { return c["THREADS"] <= threads; }},
       {"grid",
        fmt::format("{} elements are more than {} workgroups", shape.m * shape.n, groups),
        {"THREADS"},
        [shape, groups](const Config& c) { return shape.m * shape.n <= groups * c["THREADS"]; }}}};
}

}  // namespace

std::int64_t gemv_width(const Shape& shape, const Config& config) {
  return std::int64_t{config["COLS"]} * (shape.b_along_k ? 1 : config["VB"]);
}

std::int64_t slice_length(const Shape& shape, const Config& config) {
  const int split = config.has("SPLIT") ? config["SPLIT"] : 1;
  // A slice starts where every vector width and K step may start.
  const int step = config.variant == "gemv" ? 16 : config["BK"];
  return ceil_div(ceil_div(shape.k, split), step) * step;
}

std::vector<Alternative> alternatives(const Shape& shape, const DeviceInfo& device) {
  return {tiled(shape, device), split_k(shape, device), gemv(shape, device), naive(shape, device)};
}

}  // namespace greta::gemm
