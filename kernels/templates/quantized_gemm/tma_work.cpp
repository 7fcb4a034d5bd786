#include <algorithm>
#include <cmath>

#include "kernels/planning/cluster_units.hpp"
#include "kernels/planning/resident_work.hpp"
#include "kernels/templates/quantized_gemm/tma_tiles.hpp"

/// What launches of `tma` take, for predictions.
namespace greta::kernels::quantized_gemm::tma_tiles {
namespace {

/// Returns what a step of weights that are rounded takes besides products, in barriers: operands
/// are made for the products that follow, which hides more of it the longer products are (measured
/// on an H200).
double rounding_latencies(const Shape& shape, const Config& config) {
  if (box_bytes(shape) != 0 && in_blocks(shape.format)) {
    return shape.format == WeightFormat::q4_k ? 12 : 6;
  }
  if (in_blocks(shape.format)) return shape.format == WeightFormat::q8_0 ? 50 : 25;
  const double of_group =
      (shape.zeros ? 10 : 4.5) * std::log2(step / static_cast<double>(shape.group));
  const double exposed = std::clamp((256.0 - config["BM"]) / 128, 0.0, 1.0);
  return 4 * static_cast<double>(products_of(config)) + of_group * exposed;
}

/// Returns the latencies of a tile, in barriers. The products of a warpgroup wait for operands that
/// its threads make, which wait for the products before them, and each group of weights begins such
/// a chain. A warpgroup alone takes longer for it than each of two, and so do those of shares, of
/// which four are as slow as two (measured on an H200, cause unknown).
double latencies(const Shape& shape, const Config& config, double steps) {
  const bool rounds = config["ROUND"] != 0;
  const double of_share = warpgroups_of(config) == 4 ? 1.75 : config["SHARES"] == 2 ? 1.25 : 1;
  const double alone = warpgroups_of(config) == 1 ? 1.4 : of_share;
  if (in_blocks(shape.format) && !rounds) {
    const double made = shape.format == WeightFormat::q4_k ? 10 : 0;  // from scales and minima
    return steps * (made + (config["GROUPS"] == 1 ? 0.75 : 0.25));
  }
  const double chain = rounds ? rounding_latencies(shape, config)
                              : 5 + 3.5 * step / static_cast<double>(shape.group);
  const double stored = 0.5 * config["BM"];
  return steps * static_cast<double>(products_of(config)) * alone * chain + stored;
}

}  // namespace

KernelWork work(const Shape& shape, const DeviceInfo& device, const Config& config) {
  const double bm = config["BM"], bn = config["BN"], split = config["SPLIT"];
  const bool blocks = in_blocks(shape.format);
  const double weight =
      static_cast<double>(row_bytes(shape.format, shape.k)) / static_cast<double>(shape.k) +
      scale_bytes(shape);
  // k of sums that are scaled, and products for each weight.
  const double scaled = !blocks                              ? static_cast<double>(shape.group)
                        : shape.format == WeightFormat::q6_k ? 16
                                                             : 32;
  const bool rounds = config["ROUND"] != 0;
  const double of_weight = shape.format == WeightFormat::q4_k && !rounds ? 2 : 1;
  LaunchWork work;
  work.workgroups = expected_tiles(shape, config["BM"], config["BN"]) * split;
  work.threads = static_cast<double>(threads_of(config, device.subgroup_size));
  work.shared_bytes = static_cast<double>(shared_bytes(shape, config));
  work.registers = static_cast<double>(
      std::min<std::int64_t>(least_registers(shape, config) + 4, 65536 / threads_of(config, 32)));
  work.steps = std::ceil(static_cast<double>(ceil_div(shape.k, step)) / split);
  work.matrix_flops = 2 * bm * bn * step * work.steps * of_weight;
  // Of groups, latencies have a part of what decoding costs. A weight that is rounded takes half an
  // instruction for it.
  const double scaling = rounds ? 0.5 : (blocks ? 2 * of_weight : 1) * bm / scaled;
  const double decoding = in_super_blocks(shape.format) ? 8 : blocks ? 3 : 2;
  work.vector_flops = work.steps * bn * step * (decoding + scaling);
  work.warpgroups = true;
  work.overlapped = warpgroups_of(config) > 1;
  work.read_bytes = work.steps * step * (bm * 2 + bn * weight);
  const double written = shape.gated() ? bn / 2 : bn;
  work.written_bytes = bm * written * bytes_of(shape.out, 1.0) / split;
  // Lanes read narrow pieces of weights of fewer than 8 bits.
  const double reads = traits(shape.format).bits < 8 ? 9 : 4.5;
  work.shared_traffic = work.steps * step * (bm * 2 + bn * weight * reads + bn / 64 * bm * 2);
  // Without boxes, a lane loads pairs of bytes of blocks.
  work.loads = 3 * work.steps + (box_bytes(shape) == 0 ? work.steps * step * bn * weight / 2 : 0);
  work.barriers = latencies(shape, config, static_cast<double>(steps_of_warpgroup(shape, config)));
  if (slices_of(config) > 1) work.barriers += 2 + bm * bn / 300;  // sums in shared memory
  if (split > 1) {
    work.barriers += 8 + 3 * bm * bn / 300;  // the exchange, by its cost
    work.usable_units = usable_by_clusters(device, config["SPLIT"]);
  }
  work.ahead_bytes = work.read_bytes / work.steps * (config["STAGES"] - 1.5);
  if (config["RESIDENT"] != 0) {
    const double lines = expected_lines(shape, config["BM"]);
    make_resident(work, static_cast<double>(busy_workgroups(device)), 5,
                  std::min(1.0, lines / static_cast<double>(tiles_along_m(shape, config))));
  }
  work.unique_bytes = least_bytes(shape);
  return {work};
}

}  // namespace greta::kernels::quantized_gemm::tma_tiles
