#include "kernels/templates/gemm/tma_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "kernels/templates/gemm/space.hpp"

namespace greta::kernels::gemm {
namespace {

constexpr int part_columns = 64;                      // that a warpgroup stores at a time
constexpr std::int64_t quarter = warpgroup_rows / 4;  // of an instruction's rows, a wave's

/// Returns the bytes of f32 sums whose rows do not begin in the same banks.
std::int64_t pitched(std::int64_t rows, std::int64_t width) {
  return rows * (width + 8) * 4;
}

}  // namespace

TmaKernel::TmaKernel(const Shape& shape, const DeviceInfo& device)
    : shape_(shape),
      matrix_(shape, device),
      offered_(device.language == Language::hip && matrix_.offers_warpgroups()) {}

int TmaKernel::groups_of_tile(const Config& c) {
  return c["PINGPONG"] != 0 ? 1 : c["GROUPS"];
}

int TmaKernel::wm(const Config& c) {
  return swapped(c) ? c["BM"] : c["BM"] / groups_of_tile(c);
}

int TmaKernel::wn(const Config& c) {
  return swapped(c) ? c["BN"] / groups_of_tile(c) : c["BN"];
}

int TmaKernel::piece_rows(const Config& c) {  // as equal_part() in warpgroup_tile.hip
  const int rows = wm(c);
  int part = std::min(rows, 64);
  while (rows % part != 0) part -= 8;
  return part;
}

bool TmaKernel::has_parts(const Config& c) {
  return (swapped(c) ? c["BN"] : c["BM"]) % (groups_of_tile(c) * warpgroup_rows) == 0;
}

std::int64_t TmaKernel::clusters_along_m(const Shape& shape, const Config& c) {
  return launched_lines(shape, std::int64_t{c["BM"]} * c["CLUSTER_M"]);
}

std::int64_t TmaKernel::clusters_along_n(const Shape& shape, const Config& c) {
  return ceil_div(shape.products(), std::int64_t{c["BN"]} * c["CLUSTER_N"]);
}

std::int64_t TmaKernel::clusters(const Shape& shape, const Config& c) {
  return clusters_along_m(shape, c) * clusters_along_n(shape, c);
}

std::int64_t TmaKernel::threads(const Config& c) const {
  const std::int64_t groups = c["GROUPS"];
  return (groups == 1 ? 5 : groups * 4 + 4) * wave();
}

std::int64_t TmaKernel::lines_a(const Config& c) const {
  return all_lines_a(c) / c["CLUSTER_N"];
}

std::int64_t TmaKernel::lines_b(const Config& c) const {
  return all_lines_b(c) / c["CLUSTER_M"];
}

std::int64_t TmaKernel::all_lines_a(const Config& c) const {
  return shape_.a_along_k ? c["BM"] : c["BK"];
}

std::int64_t TmaKernel::all_lines_b(const Config& c) const {
  return shape_.b_along_k ? c["BN"] : c["BK"];
}

std::int64_t TmaKernel::tile_bytes(bool along_k, std::int64_t span, std::int64_t bk) const {
  constexpr std::int64_t panel = 64;  // elements
  const std::int64_t lines = along_k ? span : bk;
  return lines * round_up(along_k ? bk : span, panel) * 2;
}

std::int64_t TmaKernel::stages_bytes(const Config& c) const {
  const std::int64_t bk = c["BK"];
  return c["STAGES"] *
         (tile_bytes(shape_.a_along_k, c["BM"], bk) + tile_bytes(shape_.b_along_k, c["BN"], bk));
}

std::int64_t TmaKernel::exchange_bytes(const Config& c) const {
  const std::int64_t bm = c["BM"], bn = c["BN"], barriers = c["STAGES"] * std::int64_t{16};
  const std::int64_t received = 4 * ceil_div(bm, c["SPLIT"]) * bn * (c["SPLIT"] - 1);
  const std::int64_t tiles = stages_bytes(c), sums = pitched(bm, bn);
  return exchanged_bytes(tiles, sums, received) + barriers;
}

std::int64_t TmaKernel::own_bytes(const Config& c, bool packed) const {
  const std::int64_t bn = c["BN"], tiles = stages_bytes(c);
  const std::int64_t barriers = c["STAGES"] * (c["DYNAMIC"] != 0 ? 24 : 16) +
                                (c["PINGPONG"] != 0 ? c["GROUPS"] * 8 : 0) +
                                (c["STREAM_K"] != 0 ? 8 : 0);
  const std::int64_t columns = c["RESIDENT"] != 0 ? 32 : 64, waves = c["GROUPS"] * std::int64_t{4};
  const std::int64_t sums =
      packed ? waves * quarter *
                   (std::min<std::int64_t>(bn, part_columns) / (shape_.gated ? 2 : 1) + 8) * 2
      : swapped(c) ? pitched(waves * piece_rows(c), quarter)
                   : pitched(waves * quarter, std::min(bn, columns));
  return (c["RESIDENT"] != 0 ? tiles + sums : std::max(tiles, sums)) + barriers;
}

std::int64_t TmaKernel::shared_bytes(const Config& c) const {
  return c["FOLD"] == 2 ? exchange_bytes(c) : own_bytes(c, packed(c));
}

std::vector<Constraint> TmaKernel::shared_constraints(std::int64_t limit) const {
  // Two rules, as a space is quick to count where each rule has few combinations of values. Slices
  // need RESIDENT=0, where the sums are at most 96 KiB, less than devices with these instructions
  // have.
  return {
      {"shared_memory",
       fmt::format("STAGES of both tiles, with RESIDENT also sums, must fit {} KiB", limit / 1024),
       {{"BM", "BN", "BK", "GROUPS", "PINGPONG", "STAGES", "RESIDENT", "DYNAMIC", "STREAM_K"},
        [kernel = *this, limit](const Config& c) {
          return kernel.own_bytes(c, kernel.packs(c)) * std::max(1, c["RESIDENT"]) <= limit;
        }}},
      {"shared_exchange",
       fmt::format("the sums that FOLD=2 exchanges must fit {} KiB", limit / 1024),
       {{"BM", "BN", "BK", "STAGES", "SPLIT", "FOLD"}, [kernel = *this, limit](const Config& c) {
          return c["FOLD"] != 2 || kernel.exchange_bytes(c) <= limit;
        }}}};
}

bool TmaKernel::packs(const Shape& shape, const Config& c) {
  const bool whole_units = !shape.gated || c["BN"] % 32 == 0;
  return bits_of(shape.out) == 16 && shape.c_unit() % 8 == 0 && shape.beta == 0 && !swapped(c) &&
         whole_units;
}

bool TmaKernel::packed(const Config& c) const {
  return c["SPLIT"] == 1 && packs(c);
}

std::int64_t TmaKernel::least_registers(const Config& c) const {
  constexpr std::int64_t addresses = 28;
  return std::int64_t{wm(c)} * wn(c) / (4 * wave()) + addresses;
}

std::int64_t TmaKernel::launch_registers(const Config& c) const {
  return 65536 / threads(c) / 8 * 8;
}

int TmaKernel::parts(const Config& c) {
  return wm(c) / warpgroup_rows * ceil_div(wn(c), part_columns);
}

int TmaKernel::early_parts(const Config& c) const {
  if (!shape_.residual || !packed(c)) return 0;
  constexpr int others = 64;   // registers beside sums
  constexpr int of_two = 200;  // of each thread where two workgroups of 160 run at once
  const int most = std::min(static_cast<int>(register_limit(c)), c["RESIDENT"] == 2 ? of_two : 255);
  const int room = most - wm(c) * wn(c) / (4 * wave()) - others;
  return std::clamp(room / (std::min(wn(c), part_columns) / 4), 0, parts(c));
}

bool TmaKernel::has_registers(const Config& c) const {
  // ptxas wants an instruction's sums and addresses to fit what a thread has at launch.
  constexpr std::int64_t of_instruction = 26;
  return least_registers(c) <= register_limit(c) &&
         (swapped(c) ? wm(c) : wn(c)) / 2 + of_instruction <= launch_registers(c);
}

std::int64_t TmaKernel::register_limit(const Config& c) const {
  static constexpr std::array<std::int64_t, 5> of_consumers{0, 255, 240, 160, 112};
  return of_consumers[static_cast<std::size_t>(c["GROUPS"])];
}

}  // namespace greta::kernels::gemm
