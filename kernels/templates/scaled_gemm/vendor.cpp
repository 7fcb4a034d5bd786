#include <fmt/format.h>

#include <string_view>

#include "kernels/templates/scaled_gemm/plan.hpp"
#include "kernels/templates/scaled_gemm/variant.hpp"

/// Scaled products of fp8 by the vendor's library: cuBLASLt.
namespace greta::kernels::scaled_gemm {
namespace {

constexpr std::uint64_t mib = 1 << 20;

/// Returns whether the library has scales for fp8 on this device: cuBLASLt from sm_89 on, and
/// hip-host's library.
bool scales_tensors(const DeviceInfo& device) {
  if (device.matrix_library.empty() || device.matrix_library.starts_with("hipBLASLt")) return false;
  const std::string_view name = device.architecture;
  return device.is_cpu() || name == "sm_89" || name == "sm_90" || name == "sm_100" ||
         name == "sm_120";
}

bool scales_rows(const DeviceInfo& device) {
  return scales_tensors(device) && (device.is_cpu() || device.architecture == "sm_90");
}

Alternative space(const Shape& shape, const DeviceInfo& device) {
  // RANK           position of the algorithm in the library's own ranking
  // WORKSPACE_MIB  the most memory that it may use, which decides what is ranked: slices of K need
  // it
  Alternative a{vendor_variant.data(), {}, {}};
  a.parameters = {{"RANK", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
                  {"WORKSPACE_MIB", {32, 4, 0}}};
  constexpr std::int64_t alignment = 16;  // bytes, of the library's rows of fp8 products
  a.constraints = {
      {"library", "no library with scales of fp8 is open: cuBLASLt, on sm_89 and later",
       scales_tensors(device)},
      {"format", "the library multiplies two matrices of e4m3, and scales no int8",
       shape.format == ByteFormat::e4m3},
      {"scales_of_rows", "the library has scales of rows on sm_90",
       shape.scales != Scales::row || scales_rows(device)},
      {"scales_of_blocks",
       "the library has scales of blocks in another order: A's by columns, and B's rows padded",
       shape.scales != Scales::block},
      {"alignment", fmt::format("rows of C must be multiples of {} bytes", alignment),
       bytes_of(shape.out, shape.n) % alignment == 0},
      {"gate", "the library computes no gates", !shape.gated()},
  };
  return a;
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  MatrixProduct product;
  product.m = static_cast<std::uint64_t>(shape.m);
  product.n = static_cast<std::uint64_t>(shape.n);
  product.k = static_cast<std::uint64_t>(shape.k);
  product.in = DType::u8;
  product.out = shape.out;
  product.transposed_b = true;
  product.scales = shape.scales == Scales::row ? MatrixScales::row : MatrixScales::tensor;
  product.workspace_bytes = static_cast<std::uint64_t>(config["WORKSPACE_MIB"]) * mib;
  product.rank = static_cast<std::uint32_t>(config["RANK"]);

  // In the order of the operation's tensors: A, B, scales_a, scales_b, C.
  const Argument none = std::uint64_t{0};
  Launch launch;
  launch.arguments = {OperandArgument{0},
                      OperandArgument{1},
                      OperandArgument{4},
                      OperandArgument{4},
                      none,
                      product.workspace_bytes > 0 ? Argument(WorkspaceArgument{0}) : none,
                      OperandArgument{2},
                      OperandArgument{3}};
  KernelSource source;
  source.name = "scaled_gemm/vendor";
  source.language = device.language;
  source.argument_bytes = sizeof(MatrixProductArguments);
  source.product = product;
  LaunchPlan plan;
  plan.workspace_bytes = product.workspace_bytes;
  plan.sources.push_back(std::move(source));
  plan.launches.push_back(std::move(launch));
  return plan;
}

}  // namespace

Variant vendor() {
  return make_variant<Shape>(
      vendor_variant.data(), "e4m3 by the vendor's library, if it is installed: cuBLASLt", space,
      plan, [](const Shape&, const DeviceInfo&) { return std::vector<Config>{}; },
      [](const Shape&, const Config&) { return std::vector<Division>{}; });
}

}  // namespace greta::kernels::scaled_gemm
