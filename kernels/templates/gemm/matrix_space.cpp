#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kernels/templates/gemm/alignment.hpp"
#include "kernels/templates/gemm/matrix_kernel.hpp"
#include "kernels/templates/gemm/space.hpp"

namespace greta::kernels::gemm {
namespace {

constexpr std::int64_t most_loads = 16;  // per thread, operand and stage

const Expression by_warpgroups = p["INSTR"] == warpgroup_rows;  // as in MatrixKernel

std::vector<Constraint> problem_constraints(const Shape& shape, const DeviceInfo& device,
                                            const MatrixKernel& kernel) {
  const bool lines_fit = bytes_of(shape.in, std::max(shape.a_stride(), shape.b_stride())) <
                         (std::int64_t{1} << 31) / 256;
  std::vector<Constraint> list{
      {"matrix_cores",
       fmt::format("the device has no matrix operations on {}", to_string(shape.in)),
       (!kernel.products().empty())},
      {"many_rows",
       fmt::format("tiles need m >= {}{}, m is {}; gemv serves fewer", least_tiled_rows,
                   kernel.offers_warpgroups() ? " or INSTR=64" : "", shape.m),
       shape.grouped() || shape.m >= least_tiled_rows || by_warpgroups},
      {"offsets", "256 lines of A or B are more than 2 GiB", lines_fit},
      tile_fits("tile_m", "BM", shape.m, 'm'),
      tile_fits("tile_n", "BN", shape.products(), 'n'),
      grid_of_tiles(shape, device),
  };
  if (shape.tf32x3) {
    list.push_back(plain_product(shape));
  } else {
    append(list, tiled_product(shape, true));
  }
  return list;
}

/// Tiles that are transposed when they are written can use narrow loads as well.
std::vector<Constraint> width_constraints(const Shape& shape, const MatrixKernel& kernel) {
  const int copy = kernel.copies().empty() ? 0 : kernel.copies().back();
  std::vector<Constraint> list;
  const auto add = [&](const char* name, const char* parameter, bool along_k, std::int64_t stride) {
    const bool transposed = !along_k && !kernel.reads_transpose();
    if (transposed && kernel.turning() != 1) return;
    Constraint wide = wide_enough(name, parameter, shape.in, stride, copy);
    if (transposed) wide.condition = p["TURN"] == 0 || *wide.condition.expression();
    list.push_back(std::move(wide));
  };
  add("a_width", "VA", shape.a_along_k, shape.a_unit());
  add("b_width", "VB", shape.b_along_k, shape.b_unit());
  return list;
}

/// Returns the names of parameters that a function reads, with TURN and DIRECT if there are these
/// parameters.
std::vector<std::string> with_further(const MatrixKernel& kernel, std::vector<std::string> names) {
  if (kernel.turning() != 0) names.push_back("TURN");
  if (kernel.offers_direct()) names.push_back("DIRECT");
  return names;
}

/// Returns whether parts of this extent make up the tile: of whole products, or with warpgroup
/// instructions one part or several of whole panels of 64.
bool has_parts(const Config& c, const char* tile, const char* extent) {
  const int whole = c[tile], part = c[extent], product = c["INSTR"];
  if (product == warpgroup_rows && part >= whole) return part == whole_part(whole);
  return whole % part == 0 && part % product == 0;
}

std::vector<Constraint> tile_constraints(const DeviceInfo& device, const MatrixKernel& kernel) {
  const std::int64_t threads = most_threads(device), shared = device.shared_memory_bytes;
  const std::string but_for_warpgroups =
      kernel.offers_warpgroups()
          ? "; with INSTR=64 it must be the least value that is not less, or a multiple of 64 that "
            "divides it"
          : "";
  return {
      {"rows_of_waves",
       fmt::format("WM must divide BM, and INSTR WM{}", but_for_warpgroups),
       {{"BM", "WM", "INSTR"}, [](const Config& c) { return has_parts(c, "BM", "WM"); }}},
      {"columns_of_waves",
       fmt::format("WN must divide BN, and INSTR WN{}", but_for_warpgroups),
       {{"BN", "WN", "INSTR"}, [](const Config& c) { return has_parts(c, "BN", "WN"); }}},
      {"long_waves",
       fmt::format("WM and WN must not differ by a factor of more than 4{}: such waves read too "
                   "much",
                   kernel.offers_warpgroups() ? ", but for WN=64 with INSTR=64" : ""),
       (p["WM"] <= 4 * p["WN"] && p["WN"] <= 4 * p["WM"]) ||
           (by_warpgroups && p["BM"] < warpgroup_rows && p["WN"] == warpgroup_rows)},
      {"workgroup_threads",
       fmt::format("BM/WM x BN/WN subgroups (size {}{}) must not be more than {} threads",
                   kernel.wave(), kernel.offers_warpgroups() ? ", with INSTR=64 128" : "", threads),
       {{"BM", "BN", "WM", "WN", "INSTR"},
        [=](const Config& c) { return kernel.threads(c) <= threads; }}},
      {"depth",
       "BK must be a multiple of the k of a product, with FRAGMENTS=2 an even one",
       {{"BK", "INSTR", "FRAGMENTS"},
        [=](const Config& c) {
          return c["BK"] % (kernel.depth(c["INSTR"]) * c["FRAGMENTS"]) == 0;
        }}},
      {"shared_memory",
       fmt::format("STAGES of both tiles must fit {} KiB", shared / 1024),
       {with_further(kernel, {"BM", "BN", "BK", "INSTR", "PAD", "STAGES"}),
        [=](const Config& c) { return kernel.tiles_bytes(c) <= shared; }}},
      {"shared_sums",
       fmt::format("INSTR rows of each wave's sums must fit {} KiB", shared / 1024),
       {{"BM", "BN", "WM", "WN", "INSTR"},
        [=](const Config& c) { return kernel.sums_bytes(c) <= shared; }}},
      {"code_size",
       "a K step of more than 512 matrix instructions, or a loop of more than 1024, compiles "
       "slowly",
       {{"BM", "BN", "WM", "WN", "BK", "INSTR", "STAGES"},
        [=](const Config& c) {
          return kernel.instructions(c) <= 512 && kernel.turn_instructions(c) <= 1024;
        }}},
  };
}

std::vector<Constraint> load_constraints(const MatrixKernel& kernel) {
  const auto copied = [&](const Expression& elements) {
    Expression any = false;
    for (const int known : kernel.copies()) any = any || elements == known;
    return any;
  };
  const std::string copies =
      kernel.copies().empty()
          ? "the device can't load these tiles to shared memory past the registers"
          : fmt::format("ASYNC needs PAD=0, and VA and VB of {}{}",
                        fmt::join(kernel.copies(), ", "),
                        kernel.turning() == 1 ? ", and TURN=1" : "");
  Expression b_copied = copied(p["VB"]);
  if (kernel.offers_direct()) b_copied = b_copied || p["DIRECT"] != 0;
  Expression copies_fit = p["PAD"] == 0 && copied(p["VA"]) && b_copied;
  if (kernel.turning() == 1) copies_fit = copies_fit && p["TURN"] == 1;
  const auto whole = [](double units) { return units == static_cast<double>(std::int64_t(units)); };
  return {
      {"stages", "STAGES is 1 or 2, with ASYNC at least 2",
       select(p["ASYNC"] != 0, p["STAGES"] >= 2, p["STAGES"] <= 2)},
      {"copies", copies, p["ASYNC"] == 0 || copies_fit},
      {"equal_copies",
       "ASYNC needs the same number of copies in every thread",
       {with_further(kernel, {"BM", "BN", "BK", "WM", "WN", "INSTR", "VA", "VB", "ASYNC"}),
        [=](const Config& c) {
          return c["ASYNC"] == 0 || !kernel.counts_copies() ||
                 (whole(kernel.units_a(c)) && whole(kernel.units_b(c)));
        }}},
      {"loads",
       fmt::format("a thread must not have more than {} loads of A or B in a K step", most_loads),
       {with_further(kernel, {"BM", "BN", "BK", "WM", "WN", "INSTR", "VA", "VB"}),
        [=](const Config& c) {
          return kernel.loads_a(c) <= most_loads && kernel.loads_b(c) <= most_loads;
        }}},
      {"registers",
       "sums, loads in flight and a product's operands need more registers than a thread has",
       {with_further(kernel, {"BM", "BN", "BK", "WM", "WN", "INSTR", "VA", "VB", "ASYNC"}),
        [=](const Config& c) { return kernel.least_registers(c) <= kernel.register_limit(c); }}},
  };
}

/// Returns the constraints of TURN: reads reach all parts of a wave's lines from few registers, if
/// their number is a power of two; loads turn 8 x 8 elements.
std::vector<Constraint> turn_constraints(const Shape& shape, const MatrixKernel& kernel) {
  std::vector<Constraint> list;
  if (kernel.turning() == 0) return list;
  const auto add = [&](const char* name, const char* extent, const char* width, bool along_k) {
    if (along_k) return;
    if (kernel.turning() == 2) {
      list.push_back(
          {name, fmt::format("TURN=2 needs {}=8", width), p["TURN"] == 0 || p[width] == 8});
      return;
    }
    Expression power = false;
    for (const int value : {16, 32, 64, 128}) power = power || p[extent] == value;
    list.push_back(
        {name, fmt::format("TURN=1 needs a power of two as {}", extent), p["TURN"] == 0 || power});
  };
  add("turned_rows", "WM", "VA", shape.a_along_k);
  add("turned_columns", "WN", "VB", shape.b_along_k);
  return list;
}

/// Returns the constraints of an operand B in panels: of the ways to read it.
std::vector<Constraint> panel_constraints(const Shape& shape, const MatrixKernel& kernel) {
  if (!kernel.has_panels()) return {};
  std::vector<Constraint> list;
  if (kernel.offers_warpgroups()) {
    list.push_back(
        {"panels", "INSTR=64 reads B's rows in an order of its own, no panels", !by_warpgroups});
  }
  if (shape.gated) {
    list.push_back({"panels_of_gates", "BN must be a multiple of 32: 16 gates and their ups",
                    p["BN"] % 32 == 0});
  }
  if (!kernel.offers_direct()) return list;
  Expression direct = p["VB"] == 8 && p["STAGES"] <= 2;
  if (kernel.offers_pingpong()) direct = direct && p["PINGPONG"] == 0;
  list.push_back(
      {"direct",
       fmt::format("DIRECT=1 needs VB=8 and STAGES of at most 2{}: a K step's loads of 16 "
                   "bytes are under way",
                   kernel.offers_pingpong() ? ", and PINGPONG=0" : ""),
       p["DIRECT"] == 0 || direct});
  return list;
}

/// Returns the constraints of PINGPONG: two groups of waves, each with a wave or more on every
/// SIMD, and two phases of a K step.
std::vector<Constraint> pingpong_constraints(const MatrixKernel& kernel) {
  if (!kernel.offers_pingpong()) return {};
  constexpr int simds = 4;
  return {
      {"pingpong_loads",
       "PINGPONG=1 needs FRAGMENTS=1, INTERLEAVE=0 and 2 STAGES or more: what is read and loaded "
       "is used after the next barrier",
       p["PINGPONG"] == 0 || (p["FRAGMENTS"] == 1 && p["INTERLEAVE"] == 0 && p["STAGES"] >= 2)},
      {"pingpong_waves",
       fmt::format("PINGPONG=1 needs {} subgroups or a multiple of them", 2 * simds),
       {{"BM", "BN", "WM", "WN", "INSTR", "PINGPONG"},
        [=](const Config& c) {
          return c["PINGPONG"] == 0 || kernel.threads(c) / kernel.wave() % (2 * simds) == 0;
        }}},
      {"pingpong_phases",
       "PINGPONG=1 needs a BK of two products' k, or a WM of two products",
       {{"BK", "WM", "INSTR", "PINGPONG"},
        [=](const Config& c) {
          return c["PINGPONG"] == 0 || c["BK"] >= 2 * kernel.depth(c["INSTR"]) ||
                 c["WM"] >= 2 * c["INSTR"];
        }}},
  };
}

/// Returns the constraints of warpgroup instructions, and of the values that only they support.
std::vector<Constraint> warpgroup_constraints(const MatrixKernel& kernel) {
  if (!kernel.offers_warpgroups()) return {};
  const auto any_of = [](const char* parameter, const std::vector<int>& values) {
    Expression any = false;
    for (const int value : values) any = any || p[parameter] == value;
    return any;
  };
  const std::vector<int> extents{16, 32, 64, 128, 256}, slices{1, 2, 4, 8, 16, 32};
  return {
      {"warpgroup_copies",
       "INSTR=64 needs VA=8 VB=8 PAD=0 ASYNC=1 FRAGMENTS=1 and 3 STAGES or more: products read "
       "shared memory where copies put it, and two K steps' are under way",
       !by_warpgroups || (p["VA"] == 8 && p["VB"] == 8 && p["PAD"] == 0 && p["ASYNC"] == 1 &&
                          p["FRAGMENTS"] == 1 && p["STAGES"] >= 3)},
      {"warpgroup_tiles",
       "INSTR=64 needs BK of 64 or 128; and with BM of less than 64, whose parts have 64 columns, "
       "BN and WN that are multiples of 64",
       !by_warpgroups || (p["BK"] >= 64 &&
                          (p["BM"] >= warpgroup_rows || (p["BN"] % 64 == 0 && p["WN"] % 64 == 0)))},
      {"wave_tiles",
       "BM and BN other than powers of two from 16 on, WN of more than 128 and 6 STAGES need "
       "INSTR=64, which is faster",
       by_warpgroups ||
           (any_of("BM", extents) && any_of("BN", extents) && p["WN"] <= 128 && p["STAGES"] <= 5)},
      {"wave_slices", "SPLIT other than powers of two needs INSTR=64, which is faster",
       by_warpgroups || any_of("SPLIT", slices)},
      {"wave_walk", "WALK=1 needs INSTR=64, which is faster", by_warpgroups || p["WALK"] == 0},
  };
}

/// FOLD adds slices in the same launch, so it requires SPLIT.
std::vector<Constraint> fold_constraints(const DeviceInfo& device, const MatrixKernel& kernel) {
  const std::int64_t shared = device.shared_memory_bytes;
  std::vector<Constraint> list{fold_constraint()};
  if (!has_clusters(device.architecture)) return list;
  list.push_back(
      {"cluster_memory",
       fmt::format("with FOLD=2, all sums of a tile, or the STAGES of both tiles, must "
                   "fit {} KiB with what other slices send",
                   shared / 1024),
       {{"BM", "BN", "BK", "INSTR", "PAD", "STAGES", "SPLIT", "FOLD"},
        [=](const Config& c) { return c["FOLD"] != 2 || kernel.cluster_bytes(c) <= shared; }}});
  return list;
}

/// Returns BM, BN, WM and WN with their values. Warpgroup instructions have any multiple of 8
/// columns, or with swapped operands rows.
std::vector<Parameter> tile_parameters(const MatrixKernel& kernel) {
  if (kernel.has_large_parts()) {
    return {{"BM", {16, 32, 48, 64, 96, 128, 192, 256}},
            {"BN", {16, 32, 48, 64, 96, 128, 192, 256}},
            {"WM", {16, 32, 48, 64, 96, 128}},
            {"WN", {16, 32, 48, 64, 96, 128}}};
  }
  if (!kernel.offers_warpgroups()) {
    return {{"BM", {16, 32, 64, 96, 128, 256}},
            {"BN", {16, 32, 48, 64, 96, 128, 256}},
            {"WM", {16, 32, 64, 128}},
            {"WN", {16, 32, 48, 64, 128}}};
  }
  std::vector<int> columns;
  for (int column = 16; column <= 256; column += 16) columns.push_back(column);
  return {{"BM", {8, 16, 24, 32, 40, 48, 64, 128, 192, 256}},
          {"BN", columns},
          {"WM", {16, 32, 64, 128}},
          {"WN", {16, 32, 64, 128, 192, 256}}};
}

/// Returns the parameters of the main loop that only some AMD GPUs have.
std::vector<Parameter> schedules(const MatrixKernel& kernel) {
  // PRIORITY    on CDNA, waves issue first while they multiply: others then load or read
  // INTERLEAVE  on AMD, matrix instructions that the compiler puts between two accesses to memory;
  //             0: accesses and products stay in the order of the source
  // PINGPONG    on CDNA, half of the waves multiply while the other half reads and loads
  // TURN        1: on gfx950, reads from shared memory transpose tiles, so that loads can write
  //             them there past the registers; 2: on gfx12, loads transpose them; 0: tiles are
  //             transposed in registers
  // DIRECT      on AMD, of B in panels: 1: its fragments are loaded to registers, a K step ahead,
  //             and not through shared memory
  std::vector<Parameter> list;
  if (kernel.offers_pingpong()) list.push_back({"PRIORITY", {0, 1}});
  if (kernel.offers_interleaving()) list.push_back({"INTERLEAVE", {0, 1, 2, 4}});
  if (kernel.offers_pingpong()) list.push_back({"PINGPONG", {0, 1}});
  if (kernel.turning() != 0) list.push_back({"TURN", {0, kernel.turning()}});
  if (kernel.offers_direct()) list.push_back({"DIRECT", {0, 1}});
  return list;
}

}  // namespace

Alternative matrix_space(const Shape& shape, const DeviceInfo& device) {
  const MatrixKernel kernel(shape, device);
  // BM x BN   tile of C per workgroup: reuse of A and B versus number of workgroups
  // WM x WN   part of the tile per wave (INSTR=64: per four waves, and the whole tile if it is
  //           smaller): reuse of shared memory reads
  // BK        K steps per stage in shared memory: fewer barriers versus more memory
  // INSTR     extent of the matrix instruction: large ones read less, small ones leave the compiler
  //           freedom; 64: warpgroup instructions, which read shared memory directly, with 64 rows
  //           and WN columns, or for WM < 64 with 64 columns and WM rows
  // VA, VB    elements of A and B per load
  // PAD       16-byte chunks of padding per row in shared memory; 0: rows are swizzled instead
  // STAGES    stages in shared memory: loads in flight, and barriers per stage
  // ASYNC     asynchronous loads from global to shared memory, without registers
  // FRAGMENTS 2: double-buffered fragments
  // SWIZZLE   rows of tiles that are rasterised together, for L2 reuse
  // WALK      0: SWIZZLE counts rows of tiles, which are walked column by column; 1: columns
  // XCDS      dies that workgroups are dealt to in turn, each of which has neighbouring tiles
  // SPLIT     split-K: more workgroups for small C
  // FOLD      how slices are added; 0: a second launch; 1: the last slice to finish adds all;
  //           2: the slices of a tile form a cluster and exchange partial sums
  // ALIGN     unaligned operands are first copied to aligned rows, for wide loads
  Alternative a{"matrix", tile_parameters(kernel), {}};
  const std::vector<Parameter> others{
      {"BK", {16, 32, 64, 128}},
      {"INSTR", kernel.products().empty() ? std::vector<int>{16} : kernel.products()},
      {"VA", vector_widths(shape.in)},
      {"VB", vector_widths(shape.in)},
      {"PAD", {0, 1}},
      {"STAGES", kernel.offers_warpgroups() ? std::vector<int>{1, 2, 3, 4, 5, 6}
                                            : std::vector<int>{1, 2, 3, 4, 5}},
      {"ASYNC", {0, 1}},
      {"FRAGMENTS", {1, 2}},
      {"SWIZZLE", {1, 4, 8, 16}},
      {"WALK", {0, 1}},
      {"XCDS", die_counts(device)},
      {"SPLIT", kernel.slice_counts()},
      {"FOLD",
       has_clusters(device.architecture) ? std::vector<int>{0, 1, 2} : std::vector<int>{0, 1}},
      {"ALIGN", {0, 1}},
  };
  a.parameters.insert(a.parameters.end(), others.begin(), others.end());
  const std::vector<Parameter> further = schedules(kernel);
  a.parameters.insert(a.parameters.end(), further.begin(), further.end());
  a.constraints = {storage_constraint(shape.in, shape.out, device)};
  append(a.constraints, problem_constraints(shape, device, kernel));
  append(a.constraints, alignment_constraints(shape));
  append(a.constraints, width_constraints(shape, kernel));
  append(a.constraints, tile_constraints(device, kernel));
  append(a.constraints, warpgroup_constraints(kernel));
  append(a.constraints, load_constraints(kernel));
  append(a.constraints, turn_constraints(shape, kernel));
  append(a.constraints, panel_constraints(shape, kernel));
  append(a.constraints, pingpong_constraints(kernel));
  append(a.constraints, slice_constraints(shape, device));
  append(a.constraints, fold_constraints(device, kernel));
  a.constraints.push_back(walk_constraint(shape));
  return a;
}

}  // namespace greta::kernels::gemm
