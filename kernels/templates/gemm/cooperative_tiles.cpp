#include "kernels/templates/gemm/cooperative_tiles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/planning/device_limits.hpp"

namespace greta::kernels::gemm {
namespace {

constexpr int chunk = 8;  // elements in 16 bytes; operands are f16 or bf16

/// Returns the columns of the accumulators that are staged through shared memory at a time.
auto piece_of(const auto& c) {
  return min(c["WN"], 64);
}

/// Returns the number of products of an element of A with a weight.
std::int64_t parts_of(const Config& config) {
  return config.has("PARTS") ? config["PARTS"] : 1;
}

/// Every thread loads the same number of chunks of an operand's tile.
Constraint loads_divide(const char* name, const char* extent) {
  return {
      name,
      fmt::format("{} x BK elements in chunks of 8 must give every thread at least one", extent),
      p[extent] * p["BK"] % (chunk * cooperative_threads(p)) == 0};
}

}  // namespace

std::int64_t CooperativeTiles::shared_bytes(const Config& c, const MatrixOperation& o) const {
  const auto tile = [&c](bool along_k, const char* span) {
    const std::int64_t lines = along_k ? c[span] : c["BK"], length = along_k ? c["BK"] : c[span];
    return lines * (length / chunk + c["PAD"]) * 16;
  };
  const std::int64_t stage = tile(a_along_k, "BM") + parts_of(c) * tile(b_along_k, "BN");
  const std::int64_t piece = std::int64_t{o.m} * (piece_of(c) / 4 + 1) * 16;
  return std::max(c["STAGES"] * stage, subgroups_of(c) * piece);
}

std::int64_t CooperativeTiles::registers(const Config& c, const MatrixOperation& o) const {
  const std::int64_t lanes = c["SUBGROUP"];
  const std::int64_t levels = parts_of(c) > 1 ? 2 : 1;  // sums of a step, and of all
  const std::int64_t sums = levels * c["WM"] * c["WN"] / lanes;
  const std::int64_t fragments = (std::int64_t{c["WM"]} + 2 * o.n) * o.k / 2 / lanes;
  return sums + fragments + loaded(c) + 40;
}

std::vector<Constraint> cooperative_constraints(const CooperativeTiles& tiles,
                                                const DeviceInfo& device,
                                                const std::vector<MatrixOperation>& list) {
  const std::int64_t threads = most_threads(device), shared = device.shared_memory_bytes;
  const std::int64_t file = register_file(device);
  const auto read_by = [&](std::vector<std::string> names) {
    names.insert(names.end(), tiles.further.begin(), tiles.further.end());
    return names;
  };
  return {
      {"waves",
       "products of INSTR must divide WM x WN and BK, and WM and WN must not exceed BM and BN",
       {{"BM", "BN", "WM", "WN", "BK", "INSTR"},
        [list](const Config& c) {
          const MatrixOperation o = product_of(list, c["INSTR"]);
          const auto divides = [](std::int64_t part, std::int64_t whole) {
            return whole % part == 0;
          };
          return c["WM"] <= c["BM"] && c["WN"] <= c["BN"] && divides(o.m, c["WM"]) &&
                 divides(o.n, piece_of(c)) && divides(o.k, c["BK"]);
        }}},
      {"workgroup_threads",
       fmt::format("BM/WM x BN/WN subgroups must not be more than {} threads", threads),
       cooperative_threads(p) <= threads},
      loads_divide("a_loads", "BM"),
      loads_divide("b_loads", "BN"),
      {"writes",
       "every lane must write the same number of fours of a product's rows",
       {{"WN", "INSTR", "SUBGROUP"},
        [list](const Config& c) {
          const std::int64_t rows = product_of(list, c["INSTR"]).m;
          return rows * piece_of(c) % (4 * c["SUBGROUP"]) == 0;
        }}},
      {"shared_memory",
       fmt::format("STAGES of both tiles must fit {} KiB, as must INSTR rows of the sums",
                   shared / 1024),
       {read_by({"BM", "BN", "WM", "WN", "BK", "INSTR", "PAD", "STAGES"}),
        [=](const Config& c) {
          return tiles.shared_bytes(c, product_of(list, c["INSTR"])) <= shared;
        }}},
      {"registers",
       "sums, fragments and what is loaded need more than 255 registers of a thread",
       {read_by({"BM", "BN", "WM", "WN", "BK", "INSTR", "SUBGROUP"}),
        [=](const Config& c) { return tiles.registers(c, product_of(list, c["INSTR"])) <= 255; }}},
      {"register_file",
       fmt::format("the threads of a workgroup need more than {} registers together", file),
       {read_by({"BM", "BN", "WM", "WN", "BK", "INSTR", "SUBGROUP"}),
        [=](const Config& c) {
          return tiles.registers(c, product_of(list, c["INSTR"])) * cooperative_threads(c) <= file;
        }}},
  };
}

std::vector<Constraint> tiles_cpu_constraints(const CooperativeTiles& tiles,
                                              const DeviceInfo& device,
                                              const std::vector<MatrixOperation>& products,
                                              std::int64_t k, bool has_slices) {
  std::vector<std::string> read{"WM", "WN", "BK"};
  read.insert(read.end(), tiles.further.begin(), tiles.further.end());
  if (has_slices) read.emplace_back("SPLIT");
  const auto loop_of = [=](const Config& c, const MatrixOperation& o) {
    const std::int64_t bk = c["BK"], slices = has_slices ? c["SPLIT"] : 1;
    const std::int64_t blocks = c["WM"] / o.m * (c["WN"] / o.n), parts = parts_of(c);
    return CooperativeLoop{.steps = ceil_div(ceil_div(k, slices), bk),
                           .products = blocks * (bk / o.k) * parts,
                           .others = parts > 1 ? 2 * blocks : 0};
  };
  return cooperative_cpu_constraints(device, products, std::move(read), loop_of, k);
}

void set_cooperative_work(LaunchWork& work, const CooperativeTiles& tiles, const Config& config,
                          const MatrixOperation& o) {
  const double bm = config["BM"], bn = config["BN"], bk = config["BK"];
  const double wm = config["WM"], wn = config["WN"];
  const auto parts = static_cast<double>(parts_of(config));
  work.threads = cooperative_threads(config);
  work.shared_bytes = static_cast<double>(tiles.shared_bytes(config, o));
  work.registers = beside_matrices * static_cast<double>(tiles.registers(config, o));
  work.matrix_flops = 2 * bm * bn * bk * work.steps * parts;
  if (parts > 1) work.vector_flops += bm * bn * work.steps;
  // A fragment of A serves all columns of a subgroup's part; those of B are read for each row.
  const double read = subgroups_of(config) * (wm + parts * wn * std::max(1.0, wm / (2.0 * o.m)));
  work.shared_traffic = 2 * work.steps * bk * (bm + parts * bn + read);
  // Rows of a power of two bytes begin in the same banks.
  work.conflicts = config["PAD"] != 0 ? 1 : std::clamp(bk / 16, 1.0, 8.0);
  work.overlapped = config["STAGES"] > 1;
  work.barriers = work.steps * (work.overlapped ? 1 : 2);
}

}  // namespace greta::kernels::gemm
