#include <fmt/format.h>

#include <string_view>

#include "kernels/planning/library_product.hpp"
#include "kernels/templates/scaled_gemm/variant.hpp"

/// Scaled products of fp8 by the vendor's library: cuBLASLt.
namespace greta::kernels::scaled_gemm {
namespace {

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
  Alternative a{vendor_variant.data(), library_parameters(), {}};
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

  // In the order of the operation's tensors: A, B, scales_a, scales_b, C.
  return library_plan("scaled_gemm/vendor", device, config, product,
                      {.added = 4, .result = 4, .scales_a = 2, .scales_b = 3});
}

}  // namespace

Variant vendor() {
  Variant variant = make_variant<Shape>(
      vendor_variant.data(), "e4m3 by the vendor's library, if it is installed: cuBLASLt", space,
      plan, [](const Shape&, const DeviceInfo&) { return std::vector<Config>{}; },
      [](const Shape&, const Config&) { return std::vector<Division>{}; });
  variant.migrations = library_migrations();
  variant.library = &DeviceInfo::matrix_library;
  return variant;
}

}  // namespace greta::kernels::scaled_gemm
