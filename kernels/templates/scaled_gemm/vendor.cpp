#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/library_product.hpp"
#include "kernels/planning/workspace.hpp"
#include "kernels/templates/scaled_gemm/plan.hpp"
#include "kernels/templates/scaled_gemm/variant.hpp"

/// Scaled products of fp8 and int8 by the vendor's library: cuBLASLt.
namespace greta::kernels::scaled_gemm {
namespace {

/// Returns whether the library is used for scaled products: cuBLASLt and hip-host's are.
bool opened(const DeviceInfo& device) {
  return !device.matrix_library.empty() && !device.matrix_library.starts_with("hipBLASLt");
}

/// Returns whether the library multiplies fp8 on this device: cuBLASLt from sm_89 on.
bool multiplies_fp8(const DeviceInfo& device) {
  const std::string_view name = device.architecture;
  return device.is_cpu() || name == "sm_89" || name == "sm_90" || name == "sm_100" ||
         name == "sm_120";
}

/// Returns whether it has a scale for each row, or block, of fp8.
bool has_many_scales(const DeviceInfo& device) {
  return device.is_cpu() || device.architecture == "sm_90";
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  Alternative a{vendor_variant.data(), library_parameters(), {}};
  constexpr std::int64_t row_bytes = 16, of_four = 4;
  const bool integers = shape.integers(), blocks = shape.scales == Scales::block;
  const std::int64_t most = most_workspace(device);
  a.constraints = {
      {"library", "no library of scaled products is open: cuBLASLt, of fp8 on sm_89 and later",
       opened(device) && (integers || multiplies_fp8(device))},
      {"format", "the library multiplies two matrices of e4m3, or of int8",
       integers || shape.format == ByteFormat::e4m3},
      {"scales_mx", "the library multiplies no numbers with scales mx", !shape.mx()},
      {"scales_of_rows", "the library has scales of rows on sm_90",
       integers || shape.scales != Scales::row || has_many_scales(device)},
      {"scales_of_blocks", "the library has scales of blocks on sm_90, of e4m3",
       !blocks || (!integers && has_many_scales(device))},
      {"rows_of_blocks", fmt::format("with scales of blocks, m must be a multiple of {}", of_four),
       !blocks || shape.m % of_four == 0},
      {"alignment",
       integers ? fmt::format("n must be a multiple of {}", of_four)
                : fmt::format("rows of C must be multiples of {} bytes", row_bytes),
       integers ? shape.n % of_four == 0 : bytes_of(shape.out, shape.n) % row_bytes == 0},
      {"workspace", fmt::format("sums of integers need more than {} MiB", most >> 20),
       !integers || shape.m * shape.n <= most / 4},
      {"gate", "the library computes no gates", !shape.gated()},
  };
  return a;
}

constexpr std::int64_t threads = 256;  ///< of GRETA's own launches

/// Return the operands in the order of the operation's tensors: A, B, scales_a, scales_b, C.
Argument scales_a() {
  return OperandArgument{2};
}
Argument scales_b() {
  return OperandArgument{3};
}
Argument result() {
  return OperandArgument{4};
}

/// Adds a part to the workspace.
WorkspaceArgument allocate(std::uint64_t& workspace_bytes, std::int64_t bytes) {
  const WorkspaceArgument part{workspace_bytes};
  workspace_bytes += workspace_part(static_cast<std::uint64_t>(bytes));
  return part;
}

/// Adds a kernel and returns its launch.
Launch add_kernel(LaunchPlan& plan, const DeviceInfo& device, std::string_view path,
                  Defines defines, std::int64_t workgroups, std::vector<Argument> arguments) {
  defines.emplace_back("THREADS", std::to_string(threads));
  KernelSource source = kernel_source(device, path, defines, threads, arguments);
  Launch launch;
  launch.source = plan.sources.size();
  launch.grid = grid(device, source, static_cast<std::uint64_t>(workgroups));
  launch.arguments = std::move(arguments);
  plan.sources.push_back(std::move(source));
  return launch;
}

MatrixProduct product_of(const Shape& shape) {
  MatrixProduct product;
  product.m = static_cast<std::uint64_t>(shape.m);
  product.n = static_cast<std::uint64_t>(shape.n);
  product.k = static_cast<std::uint64_t>(shape.k);
  product.transposed_b = true;
  product.in = shape.integers() ? DType::i8 : DType::u8;
  product.out = shape.integers() ? DType::i32 : shape.out;
  if (shape.integers()) return product;
  product.scales = shape.scales == Scales::row     ? MatrixScales::row
                   : shape.scales == Scales::block ? MatrixScales::block
                                                   : MatrixScales::tensor;
  return product;
}

constexpr const char* name = "scaled_gemm/vendor";

/// Ahead of the product, a launch arranges the scales as the library reads them
/// (MatrixScales::block).
LaunchPlan plan_of_blocks(const Shape& shape, const DeviceInfo& device, const Config& config) {
  constexpr std::int64_t tile = 32;
  const std::int64_t blocks = shape.scale_columns(), lines = shape.scale_rows_b();
  const std::int64_t tiles = ceil_div(shape.m, tile) * ceil_div(blocks, tile);
  std::uint64_t bytes = library_workspace(config);
  const WorkspaceArgument by_columns = allocate(bytes, shape.m * blocks * 4);
  const WorkspaceArgument in_fours =
      allocate(bytes, lines * ceil_div(blocks, std::int64_t{4}) * 16);
  LaunchPlan plan = library_plan(
      name, device, config, product_of(shape),
      {.added = result(), .result = result(), .scales_a = by_columns, .scales_b = in_fours});
  plan.workspace_bytes = bytes;
  Launch first = add_kernel(
      plan, device, "scaled_gemm/block_scales", {{"TILE", std::to_string(tile)}}, tiles + lines,
      {scales_a(), scales_b(), by_columns, in_fours, static_cast<std::uint32_t>(shape.m),
       static_cast<std::uint32_t>(blocks), static_cast<std::uint32_t>(tiles)});
  plan.launches.insert(plan.launches.begin(), std::move(first));
  return plan;
}

/// The library computes sums, and a launch after it C from these.
LaunchPlan plan_of_integers(const Shape& shape, const DeviceInfo& device, const Config& config) {
  constexpr std::int64_t neighbours = 4;
  std::uint64_t bytes = library_workspace(config);
  const WorkspaceArgument sums = allocate(bytes, shape.m * shape.n * 4);
  LaunchPlan plan =
      library_plan(name, device, config, product_of(shape), {.added = sums, .result = sums});
  plan.workspace_bytes = bytes;
  Defines defines = problem_defines(shape);
  defines.emplace_back("VEC", std::to_string(neighbours));
  defines.emplace_back("ITEMS", "1");
  plan.launches.push_back(
      add_kernel(plan, device, "scaled_gemm/scale_sums", std::move(defines),
                 ceil_div(shape.m * shape.n / neighbours, threads),
                 {sums, scales_a(), scales_b(), result(), static_cast<std::uint32_t>(shape.m),
                  static_cast<std::uint32_t>(shape.n)}));
  return plan;
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  if (shape.integers()) return plan_of_integers(shape, device, config);
  if (shape.scales == Scales::block) return plan_of_blocks(shape, device, config);
  return library_plan(
      name, device, config, product_of(shape),
      {.added = result(), .result = result(), .scales_a = scales_a(), .scales_b = scales_b()});
}

}  // namespace

Variant vendor() {
  Variant variant = make_variant<Shape>(
      vendor_variant.data(), "e4m3 and int8 by the vendor's library, if it is installed: cuBLASLt",
      space, plan, [](const Shape&, const DeviceInfo&) { return std::vector<Config>{}; },
      [](const Shape& shape, const Config&) {
        std::vector<Division> list;  // the library reads lines of whole fours of scales
        if (shape.scales == Scales::block)
          list.push_back({"blocks of k", shape.scale_columns(), 4});
        return list;
      });
  variant.migrations = library_migrations();
  variant.library = &DeviceInfo::matrix_library;
  return variant;
}

}  // namespace greta::kernels::scaled_gemm
