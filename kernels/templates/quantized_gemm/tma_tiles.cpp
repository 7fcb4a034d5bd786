#include "kernels/templates/quantized_gemm/tma_tiles.hpp"

#include <algorithm>
#include <array>

#include "runtime/device/hardware/architectures.hpp"

namespace greta::kernels::quantized_gemm::tma_tiles {
namespace {

/// Returns the registers of the parts of blocks that a lane has loaded (tma_units.hip): of boxes
/// those of a unit, else of a step.
std::int64_t block_registers(const Shape& shape) {
  const bool boxes = box_bytes(shape) != 0;
  switch (shape.format) {
    case WeightFormat::q4_0:
      return boxes ? 6 : 24;
    case WeightFormat::q8_0:
      return boxes ? 10 : 40;
    case WeightFormat::q4_k:
      return 16;
    default:
      return boxes ? 34 : 52;
  }
}

/// Returns the steps whose weights a box has.
std::int64_t steps_of_box(const Shape& shape) {
  return in_blocks(shape.format) || traits(shape.format).bits == 4 ? 2 : 1;
}

/// Returns the registers of operands that a lane has of groups of weights: of half a step if
/// weights are rounded, else those of two pieces (tma_groups.hip), and one piece as stored.
std::int64_t operand_registers(const Shape& shape, bool rounds) {
  if (rounds) return step / 4;
  const std::int64_t fragments = std::min<std::int64_t>(shape.group / 32, 2);
  const std::int64_t chunks = traits(shape.format).bits == 8 ? fragments : 1;
  return fragments * 8 + chunks * 8;
}

/// Returns the registers of scales and zero points of two steps, and of where they are, of each
/// product of a warpgroup.
std::int64_t scale_registers(const Shape& shape) {
  const std::int64_t groups = step / shape.group;
  const std::int64_t words =
      ceil_div(groups * (shape.format == WeightFormat::mxfp4 ? 1 : 2), std::int64_t{4}) +
      (shape.zeros ? 1 : 0);
  const std::int64_t kinds = shape.zeros ? 2 : 1;
  const std::int64_t shifted =
      shape.k % step == 0 ? 0 : kinds;  // words beside those of the next step
  return 2 * (2 * words + shifted + 2 * kinds);
}

}  // namespace

bool offered(const Shape& shape, const DeviceInfo& device) {
  return device.language == Language::hip && has_warpgroup_products(device.architecture) &&
         bits_of(shape.in) == 16;
}

bool may_round(const Shape& shape) {
  if (shape.format == WeightFormat::mxfp4) return shape.in == DType::bf16;
  return shape.rounded;
}

std::int64_t warpgroups_of(const Config& config) {
  return std::int64_t{config["GROUPS"]} * config["SHARES"];
}

std::int64_t threads_of(const Config& config, std::int64_t wave) {
  const std::int64_t warpgroups = warpgroups_of(config);
  return (warpgroups == 1 ? 5 : warpgroups * 4 + 4) * wave;
}

std::int64_t slices_of(const Config& config) {
  return std::int64_t{config["SPLIT"]} * config["SHARES"];
}

std::int64_t box_bytes(const Shape& shape) {
  if (!in_blocks(shape.format)) return 128;
  if (row_bytes(shape.format, shape.k) % 16 != 0) return 0;
  return shape.format == WeightFormat::q8_0 ? 272 : shape.format == WeightFormat::q6_k ? 240 : 144;
}

std::int64_t line_stages(const Shape& shape, const Config& config) {
  if (box_bytes(shape) == 0) return 0;
  const std::int64_t stages = config["STAGES"];
  const std::int64_t box = steps_of_box(shape), shares = config["SHARES"];
  return box > 1 ? shares * (stages / shares / box + 1) : stages;
}

std::int64_t shared_bytes(const Shape& shape, const Config& config) {
  const std::int64_t bm = config["BM"], bn = config["BN"], stages = config["STAGES"];
  const std::int64_t lines = line_stages(shape, config);
  const std::int64_t rings = stages * bm * step * 2 + lines * bn * box_bytes(shape);
  const std::int64_t barriers = (stages + lines) * 16;
  if (slices_of(config) > 1) {
    return std::max(rings, config["SHARES"] * bm * (bn + 4) * 4) + barriers;
  }
  const std::int64_t rows = bm % 32 == 0 ? 32 : bm % 16 == 0 ? 16 : 8;
  const std::int64_t stored = rows * (bytes_of(shape.out, product_cols) + 16);  // of a warpgroup
  return rings + config["GROUPS"] * stored + barriers;
}

std::int64_t steps_of_warpgroup(const Shape& shape, const Config& config) {
  const std::int64_t of_slice = ceil_div(ceil_div(shape.k, step), std::int64_t{config["SPLIT"]});
  const std::int64_t box = steps_of_box(shape);
  const std::int64_t boxes = ceil_div(ceil_div(of_slice, box), std::int64_t{config["SHARES"]});
  return std::min(of_slice, boxes * box);
}

std::int64_t products_of(const Config& config) {
  return config["BN"] / config["GROUPS"] / product_cols;
}

std::int64_t least_registers(const Shape& shape, const Config& config) {
  constexpr std::int64_t addresses = 40, beside_scaled_sums = 16;  // by NVRTC
  const std::int64_t products = products_of(config);
  const bool rounds = config["ROUND"] != 0;
  const std::int64_t of_product = config["BM"] / 2,
                     sums = of_product * (products + (rounds ? 0 : 1));
  if (in_blocks(shape.format)) {
    const bool two_units = !rounds && !in_super_blocks(shape.format) && box_bytes(shape) != 0;
    return sums + 16 + block_registers(shape) +
           (two_units ? of_product + addresses / 2 : addresses);
  }
  return sums + operand_registers(shape, rounds) + products * scale_registers(shape) +
         (rounds ? addresses - 4 : beside_scaled_sums);
}

bool has_registers(const Shape& shape, const Config& config) {
  // By warpgroups: six have none. Two shares leave some to the warpgroup that copies (tma.hip).
  static constexpr std::array<std::int64_t, 7> most{0, 255, 240, 160, 112, 0, 0};
  const std::int64_t left = warpgroups_of(config) == 2 ? (config["SHARES"] - 1) * 8 : 0;
  // ptxas wants an instruction's sums and addresses to fit what a thread has at launch.
  const std::int64_t at_launch = 65536 / threads_of(config, 32) / 8 * 8;
  const std::int64_t own = most[static_cast<std::size_t>(warpgroups_of(config))] - left;
  return least_registers(shape, config) <= own && config["BM"] / 2 + 30 <= at_launch;
}

std::int64_t tiles_along_m(const Shape& shape, const Config& c) {
  return launched_lines(shape, std::int64_t{c["BM"]});
}

std::int64_t tiles_along_n(const Shape& shape, const Config& c) {
  return ceil_div(shape.products(), std::int64_t{c["BN"]});
}

std::int64_t filled_tiles(const Shape& shape, const Config& c) {
  return filled_lines(shape, c["BM"]) * tiles_along_n(shape, c);
}

}  // namespace greta::kernels::quantized_gemm::tma_tiles
