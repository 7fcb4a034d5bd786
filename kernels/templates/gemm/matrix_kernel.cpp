#include "kernels/templates/gemm/matrix_kernel.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/planning/workspace.hpp"
#include "kernels/templates/gemm/space.hpp"

namespace greta::kernels::gemm {
namespace {

/// Returns the widths in bytes of the instructions that load to shared memory directly.
std::vector<int> copy_widths(const DeviceInfo& device, MatrixCores cores) {
  if (cores == MatrixCores::mma) return {4, 8, 16};
  if (device.architecture.ends_with("gfx942")) return {4};
  if (device.architecture.ends_with("gfx950")) return {4, 16};
  return {};
}

}  // namespace

const std::vector<int>& MatrixKernel::slice_counts() const {
  static const std::vector<int> all{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 32};
  static const std::vector<int> few{1, 2, 3, 4, 6, 8, 12, 16, 32};
  return offers_warpgroups() || has_large_parts() ? all : few;
}

MatrixKernel::MatrixKernel(const Shape& shape, const DeviceInfo& device)
    : shape_(shape),
      cores_(matrix_cores(device.architecture)),
      thread_registers_(thread_registers(device)),
      workgroup_registers_(workgroup_registers(device)),
      wave_(static_cast<int>(device.subgroup_size)),
      element_bytes_(bytes_of(shape.in, 1)),
      chunk_(16 / element_bytes_),
      bank_row_(device.architecture.ends_with("gfx950") ? 16 : 8),
      splits_(shape.tf32x3 && shape.in == DType::f32 && device.language == Language::hip &&
              cores_ == MatrixCores::mma) {
  for (const MatrixOperation& operation : device.matrix_operations) {
    if (operation.input != shape.in) continue;
    products_.push_back(static_cast<int>(operation.m));
  }
  if (splits()) products_.push_back(16);
  std::sort(products_.begin(), products_.end());
  products_.erase(std::unique(products_.begin(), products_.end()), products_.end());
  const bool transposes = !reads_transpose() && !(shape.a_along_k && shape.b_along_k);
  if (transposes && element_bytes_ == 2 && !products_.empty()) {
    turning_ = has_turning_reads(device.architecture)   ? 1
               : has_turning_loads(device.architecture) ? 2
                                                        : 0;
  }
  if (transposes && turning_ != 1) return;
  for (const int bytes : copy_widths(device, cores_)) {
    if (bytes >= element_bytes_) copies_.push_back(bytes / element_bytes_);
  }
}

bool MatrixKernel::offers_warpgroups() const {
  return !products_.empty() && products_.back() == warpgroup_rows;
}

Config MatrixKernel::with_parts(Config config) const {
  const int rows = wm(config), columns = wn(config);
  for (auto& [name, value] : config.values) {
    if (name == "WM") value = rows;
    if (name == "WN") value = columns;
  }
  return config;
}

std::int64_t MatrixKernel::part_threads(const Config& c) const {
  return by_warpgroups(c) ? 4 * wave_ : wave_;
}

std::int64_t MatrixKernel::threads(const Config& c) const {
  const std::int64_t parts = std::int64_t{c["BM"]} / wm(c) * (c["BN"] / wn(c));
  // Another constraint rejects 0 parts.
  return std::max<std::int64_t>(1, parts) * part_threads(c);
}

int MatrixKernel::depth(int product) const {
  if (cores_ == MatrixCores::mma) return 2 * chunk_;
  return cores_ == MatrixCores::mfma ? 64 / product * chunk_ : 16;
}

std::int64_t MatrixKernel::instructions(const Config& c) const {
  const int product = c["INSTR"];
  if (by_warpgroups(c)) {
    return std::int64_t{swapped(c) ? wn(c) : wm(c)} / product * (c["BK"] / depth(product));
  }
  const std::int64_t products =
      std::int64_t{c["WM"]} / product * (c["WN"] / product) * (c["BK"] / depth(product));
  if (cores_ == MatrixCores::mfma) return products * (element_bytes_ == 4 ? 4 : 2);
  return products * (cores_ == MatrixCores::mma ? 2 : 1) * (splits() ? 3 : 1);
}

std::int64_t MatrixKernel::turn_instructions(const Config& c) const {
  if (cores_ == MatrixCores::mma) return instructions(c);
  return instructions(c) * std::max(2, c["STAGES"]);  // the loop names its stages
}

std::int64_t MatrixKernel::stored_span(const Config& c, bool along_k, const char* span) const {
  const int extent = c[span];
  if (!by_warpgroups(c) || along_k) return extent;
  if (extent > 32) return round_up(extent, 64);
  return extent > 16 ? 32 : 16;
}

double MatrixKernel::units(const Config& c, bool along_k, const char* span, const char* vec) const {
  const double elements = static_cast<double>(stored_span(c, along_k, span)) * c["BK"];
  const double unit = static_cast<double>(c[vec]) * (turned(c, along_k) ? chunk_ : 1);
  return elements / unit / static_cast<double>(threads(c));
}

double MatrixKernel::units_a(const Config& c) const {
  return units(c, shape_.a_along_k, "BM", "VA");
}

double MatrixKernel::units_b(const Config& c) const {
  if (direct(c)) return 0;
  return units(c, shape_.b_along_k, "BN", "VB");
}

std::int64_t MatrixKernel::loads_a(const Config& c) const {
  return std::llround(std::ceil(units_a(c))) * (turned(c, shape_.a_along_k) ? chunk_ : 1);
}

std::int64_t MatrixKernel::loads_b(const Config& c) const {
  return std::llround(std::ceil(units_b(c))) * (turned(c, shape_.b_along_k) ? chunk_ : 1);
}

std::int64_t MatrixKernel::tile_bytes(const Config& c, bool along_k, const char* span) const {
  const bool tile_along_k = along_k || !(reads_transpose() || turns_by_reads(c));
  const std::int64_t extent = stored_span(c, along_k, span);
  const std::int64_t lines = tile_along_k ? extent : c["BK"];
  const std::int64_t chunks = (tile_along_k ? c["BK"] : extent) / chunk_ + c["PAD"];
  return lines * chunks * 16;
}

std::int64_t MatrixKernel::b_tile_bytes(const Config& c) const {
  if (direct(c)) return 0;
  if (has_panels()) return std::int64_t{c["BN"]} * c["BK"] / chunk_ * 16;
  return tile_bytes(c, shape_.b_along_k, "BN");
}

std::int64_t MatrixKernel::tiles_bytes(const Config& c) const {
  return c["STAGES"] * (tile_bytes(c, shape_.a_along_k, "BM") + b_tile_bytes(c));
}

std::int64_t MatrixKernel::sums_bytes(std::int64_t lines, std::int64_t width) const {
  const std::int64_t pitch = cores_ == MatrixCores::mma      ? width + 8
                             : cores_ != MatrixCores::wmma11 ? width + 4
                             : width % 32 == 0               ? width + 16
                                                             : width;
  return lines * pitch * 4;
}

int MatrixKernel::sum_columns() const {
  return shape_.residual && shape_.c_unit() % 4 != 0 ? 32 : 64;
}

std::int64_t MatrixKernel::sums_bytes(const Config& c) const {
  constexpr int quarter = warpgroup_rows / 4;  // rows of a wave in a warpgroup instruction
  const std::int64_t width = swapped(c) ? quarter : std::min<std::int64_t>(wn(c), sum_columns());
  const std::int64_t piece = swapped(c) ? wm(c) : by_warpgroups(c) ? quarter : c["INSTR"];
  return sums_bytes(threads(c) / wave_ * piece, width);
}

std::int64_t exchanged_bytes(std::int64_t tiles, std::int64_t sums, std::int64_t received) {
  constexpr std::int64_t barrier = 16, small = 16384;
  if (received <= small) return std::max(tiles, sums) + panels_part(barrier + received);
  return std::max(tiles, sums + received) + panels_part(barrier);
}

std::int64_t MatrixKernel::cluster_bytes(const Config& c) const {
  const std::int64_t tiles = tiles_bytes(c), sums = sums_bytes(c["BM"], c["BN"]);
  const std::int64_t share = ceil_div(c["BM"], c["SPLIT"]);  // rows of a slice, at most
  const std::int64_t received = 4 * share * c["BN"] * (c["SPLIT"] - 1);
  return exchanged_bytes(tiles, sums, received);
}

std::int64_t MatrixKernel::shared_bytes(const Config& c) const {
  return c["FOLD"] == 2 ? cluster_bytes(c) : std::max(tiles_bytes(c), sums_bytes(c));
}

std::int64_t MatrixKernel::fragment_registers() const {
  return cores_ == MatrixCores::wmma11 || splits() ? 8 : 4;
}

std::int64_t MatrixKernel::sum_registers(const Config& c) const {
  return std::int64_t{wm(c)} * wn(c) / part_threads(c);
}

std::int64_t MatrixKernel::loaded_registers(const Config& c) const {
  if (c["ASYNC"] != 0) return 0;
  const auto words = [this](int vec) {
    return std::max<std::int64_t>(1, vec * element_bytes_ / 4);
  };
  return loads_a(c) * words(c["VA"]) + loads_b(c) * words(c["VB"]);
}

std::int64_t MatrixKernel::least_registers(const Config& c) const {
  // Operands are in shared memory. With fewer for addresses, compilers fail or spill the sums.
  constexpr std::int64_t addresses = 28;
  if (by_warpgroups(c)) return sum_registers(c) + addresses;
  return sum_registers(c) + loaded_registers(c) + 2 * fragment_registers() +
         2 * direct_registers(c);
}

std::int64_t MatrixKernel::direct_registers(const Config& c) const {
  if (!direct(c)) return 0;
  return std::int64_t{c["WN"]} / c["INSTR"] * (c["BK"] / depth(c["INSTR"])) * fragment_registers();
}

std::int64_t MatrixKernel::place_registers(const Config& c, bool along_k, const char* span,
                                           const char* extent) const {
  const int product = c["INSTR"];
  const std::int64_t tile = tile_bytes(c, along_k, span);
  const std::int64_t reached = std::max<std::int64_t>(1, 65536 / tile);  // by instructions' offsets
  const bool across = !along_k && turns_by_reads(c);
  // Chunks of a bank row trade places, so each that a lane reads needs an address.
  const std::int64_t chunks = (across ? c[span] : c["BK"]) / chunk_;
  const std::int64_t apart = across                          ? product / chunk_
                             : cores_ == MatrixCores::mfma   ? 64 / product
                             : cores_ == MatrixCores::wmma11 ? 1
                                                             : 2;
  const std::int64_t in_row = c["PAD"] != 0 ? 1 : std::min(chunks, bank_row_) / apart;
  const std::int64_t lines = turned(c, along_k) ? c[extent] / product : 1;
  return ceil_div<std::int64_t>(c["STAGES"], reached) * std::max<std::int64_t>(1, in_row) * lines;
}

std::int64_t MatrixKernel::registers(const Config& c) const {
  if (by_warpgroups(c)) return sum_registers(c) + 32;
  const int product = c["INSTR"];
  const std::int64_t in_shared = c["WM"] + (direct(c) ? 0 : c["WN"]);
  // Compilers copy some of many fragments of two K steps.
  const std::int64_t of_steps = 2 * direct_registers(c);
  const std::int64_t fragments = in_shared / product * c["FRAGMENTS"] * fragment_registers() +
                                 of_steps + std::max<std::int64_t>(0, of_steps - 32);
  const std::int64_t loaded = loaded_registers(c);
  if (cores_ == MatrixCores::mma) {
    // Address registers: one per fragment and depth.
    const std::int64_t addresses = 2 * (c["BK"] / depth(product)) + 8;
    return sum_registers(c) + fragments + loaded + addresses + 40;
  }
  // Address registers: of fragments, and one for each unit of loads. What is left over, and what
  // many loads take in addition, was measured: results/2026-11-24-amd-gemm-loops.
  const std::int64_t of_b = direct(c)      ? c["WN"] / product
                            : has_panels() ? 1
                                           : place_registers(c, shape_.b_along_k, "BN", "WN");
  const std::int64_t addresses = place_registers(c, shape_.a_along_k, "BM", "WM") + of_b +
                                 std::llround(std::ceil(units_a(c)) + std::ceil(units_b(c)));
  const bool of_a = turned(c, shape_.a_along_k), transposes = of_a || turned(c, shape_.b_along_k);
  const bool both = of_a && turned(c, shape_.b_along_k);
  return sum_registers(c) + fragments + loaded + std::max<std::int64_t>(0, loaded - 24) +
         addresses +
         (turns_by_reads(c)                       ? 26
          : both && cores_ == MatrixCores::wmma12 ? 40
          : transposes                            ? 30
                                                  : 18);
}

std::int64_t MatrixKernel::register_limit(const Config& c) const {
  return std::min(thread_registers_, workgroup_registers_ / threads(c));
}

}  // namespace greta::kernels::gemm
