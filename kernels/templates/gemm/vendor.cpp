#include <fmt/format.h>

#include "kernels/planning/library_product.hpp"
#include "kernels/templates/gemm/variant.hpp"

/// GEMM by the vendor's library: hipBLASLt or cuBLASLt.
namespace greta::kernels::gemm {
namespace {

Alternative space(const Shape& shape, const DeviceInfo& device) {
  Alternative a{vendor_variant.data(), library_parameters(), {}};
  a.constraints = {
      {"library", "no library of matrix products is open: hipBLASLt or cuBLASLt",
       !device.matrix_library.empty()},
      {"product", "the library computes no norm, activation or gate",
       !shape.norm && shape.activation == 0 && !shape.gated},
      {"packing", "the library reads rows of B, no panels", !shape.panels},
      {"one_addend", "the library adds one matrix: the residual or C's old value",
       !shape.residual || shape.beta == 0},
  };
  return a;
}

/// Returns the bytes, at most 16, that divide the addresses of all matrices.
std::uint32_t alignment_of(const Shape& shape) {
  const std::int64_t inputs = bytes_of(shape.in, shape.a_offset | shape.b_offset);
  const auto all = static_cast<std::uint32_t>(inputs | bytes_of(shape.out, shape.c_offset) | 16);
  return all & (~all + 1);  // the lowest bit of all offsets
}

LaunchPlan plan(const Shape& shape, const DeviceInfo& device, const Config& config) {
  MatrixProduct product;
  product.m = static_cast<std::uint64_t>(shape.m);
  product.n = static_cast<std::uint64_t>(shape.n);
  product.k = static_cast<std::uint64_t>(shape.k);
  product.in = shape.in;
  product.out = shape.out;
  product.transposed_a = !shape.a_along_k;
  product.transposed_b = shape.b_along_k;
  product.bias = shape.bias;
  product.batch = static_cast<std::uint64_t>(shape.groups);
  product.lda = static_cast<std::uint64_t>(shape.lda);
  product.ldb = static_cast<std::uint64_t>(shape.ldb);
  product.ldd = static_cast<std::uint64_t>(shape.ldc);
  product.alignment = alignment_of(shape);
  product.a_step = static_cast<std::uint64_t>(shape.a_step);
  product.b_step = static_cast<std::uint64_t>(shape.b_step);
  product.d_step = static_cast<std::uint64_t>(shape.c_step);
  product.alpha = shape.alpha;
  product.beta = shape.residual ? 1 : shape.beta;

  // In the order of the operation's tensors: A, B, bias, residual, C.
  LibraryOperands operands;
  std::size_t next = 2;
  if (shape.bias) operands.bias = OperandArgument{next++};
  operands.added = OperandArgument{next};
  if (shape.residual) ++next;
  operands.result = OperandArgument{next};
  return library_plan("gemm/vendor", device, config, product, operands);
}

}  // namespace

Variant vendor() {
  Variant variant = make_variant<Shape>(
      vendor_variant.data(), "by the vendor's library, if it is installed: hipBLASLt or cuBLASLt",
      space, plan, [](const Shape&, const DeviceInfo&) { return std::vector<Config>{}; },
      [](const Shape&, const Config&) { return std::vector<Division>{}; });
  variant.migrations = library_migrations();
  variant.library = &DeviceInfo::matrix_library;
  return variant;
}

}  // namespace greta::kernels::gemm
