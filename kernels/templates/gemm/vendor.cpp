#include <fmt/format.h>

#include "kernels/templates/gemm/variant.hpp"

/// GEMM by the vendor's library: hipBLASLt or cuBLASLt.
namespace greta::kernels::gemm {
namespace {

constexpr std::uint64_t mib = 1 << 20;

Alternative space(const Shape& shape, const DeviceInfo& device) {
  // RANK           position of the algorithm in the library's own ranking
  // WORKSPACE_MIB  the most memory that it may use, which decides what is ranked: slices of K need
  // it
  Alternative a{vendor_variant.data(), {}, {}};
  a.parameters = {{"RANK", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
                  {"WORKSPACE_MIB", {32, 4, 0}}};
  a.constraints = {
      {"library", "no library of matrix products is open: hipBLASLt or cuBLASLt",
       !device.matrix_library.empty()},
      {"product", "the library computes no norm, activation or gate",
       !shape.norm && shape.activation == 0 && !shape.gated},
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
  product.workspace_bytes = static_cast<std::uint64_t>(config["WORKSPACE_MIB"]) * mib;
  product.rank = static_cast<std::uint32_t>(config["RANK"]);

  // In the order of the operation's tensors: A, B, bias, residual, C.
  const std::size_t bias = 2, residual = shape.bias ? 3 : 2,
                    c = residual + (shape.residual ? 1 : 0);
  const Argument none = std::uint64_t{0};
  Launch launch;
  launch.arguments = {OperandArgument{0},
                      OperandArgument{1},
                      OperandArgument{shape.residual ? residual : c},
                      OperandArgument{c},
                      shape.bias ? Argument(OperandArgument{bias}) : none,
                      product.workspace_bytes > 0 ? Argument(WorkspaceArgument{0}) : none,
                      none,
                      none};
  KernelSource source;
  source.name = "gemm/vendor";
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
      vendor_variant.data(), "by the vendor's library, if it is installed: hipBLASLt or cuBLASLt",
      space, plan, [](const Shape&, const DeviceInfo&) { return std::vector<Config>{}; },
      [](const Shape&, const Config&) { return std::vector<Division>{}; });
}

}  // namespace greta::kernels::gemm
