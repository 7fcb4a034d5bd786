#include <array>
#include <string>

#include "runtime/pipeline/compute/operations.hpp"
#include "runtime/pipeline/compute/prepared.hpp"
#include "runtime/pipeline/compute/request.hpp"
#include "runtime/pipeline/compute/stored_weights.hpp"

/// The operations that convert operands of products: to and from quantised numbers, and from one
/// packing to another.
namespace greta::runtime {

Result<void> Operations::dequantize(const Tensor& b, const Tensor& out,
                                    const DequantizeOptions& options) {
  if (b && b.shape().rank() != 2) return bad_rank("dequantize", "B", b, "[rows, bytes of a row]");
  Problem problem = problem_of("dequantize", out.dtype(), out.dtype(),
                               {{"rows", rows_of(out)}, {"cols", cols_of(out)}});
  if (auto good = set_weights(problem, options, "cols"); !good) return good;
  if (options.panels) set(problem, "packing", "panels");
  Given given;
  given.add(b);
  given.add_if(options.scales);
  given.add_if(options.zeros);
  given.add(out);
  return start(problem, given);
}

namespace {

/// Returns the problem of panels of rows, of several matrices one after the other.
Result<Problem> panels_of_rows(const Tensor& rows, const Tensor& b, const RepackOptions& options) {
  if (b && b.shape().rank() == 3 && b.shape()[1] % kernels::panel_rows != 0) {
    return refused("repack_weights", "rows of each matrix must be whole panels of 16");
  }
  const DType type = b.dtype();
  const bool numbers = type == DType::f16 || type == DType::bf16;
  const auto& format = kernels::traits(options.format);
  if (!numbers && (kernels::in_blocks(options.format) || rows.dtype() != type)) {
    return refused("repack_weights", "rows are int4, int8, mxfp4, f16 or bf16");
  }
  const std::int64_t k = numbers ? cols_of(b) : cols_of(b) * 8 / format.bits;
  Problem problem =
      problem_of("repack_weights", DType::f16, DType::f16, {{"n", rows_of(b)}, {"k", k}});
  set(problem, "packing", "rows");
  const std::string weights(numbers ? to_string(type) : format.name);
  if (weights != "int4") set(problem, "weights", weights);
  set(problem, "to", "panels");
  return problem;
}

}  // namespace

Result<void> Operations::repack_weights(const Tensor& qweight, const Tensor& qscales,
                                        const Tensor& b, const Tensor& scales,
                                        const RepackOptions& options) {
  const bool from_rows = options.packing == kernels::WeightPacking::rows;
  const std::size_t rank = b ? b.shape().rank() : 2;
  if (rank != 2 && !(from_rows && rank == 3)) {
    return bad_rank("repack_weights", "B", b, "[n, bytes of a row], of rows also [groups, n, ..]");
  }
  if (from_rows) {
    if (qscales || scales || options.qzeros || options.zeros || options.order) {
      return refused("repack_weights", "of rows B alone is repacked, their scales stay");
    }
    const Result<Problem> problem = panels_of_rows(qweight, b, options);
    if (!problem) return problem.failure();
    return start(*problem, std::array{qweight, b});
  }
  if (static_cast<bool>(options.qzeros) != static_cast<bool>(options.zeros)) {
    return refused("repack_weights", "qzeros and zeros are given together");
  }
  const bool bytes = options.format == kernels::WeightFormat::int8;
  if (!bytes && options.format != kernels::WeightFormat::int4) {
    return refused("repack_weights", "weights become int4 or int8");
  }
  Problem problem = problem_of("repack_weights", qscales.dtype(), scales.dtype(),
                               {{"n", rows_of(b)}, {"k", cols_of(b) * (bytes ? 1 : 2)}});
  if (options.packing != kernels::WeightPacking::awq) {
    set(problem, "packing", std::string(kernels::to_string(options.packing)));
  }
  // A group's length follows from the scales of the result, as in products with it.
  struct {
    kernels::WeightFormat format;
    Tensor scales, zeros;
  } const result{options.format, scales, options.zeros};
  if (auto good = set_weights(problem, result, "k"); !good) return good;
  if (options.order) set(problem, "order", "given");
  if (options.panels) set(problem, "to", "panels");
  Given given;
  for (const Tensor& one : {qweight, qscales}) given.add(one);
  given.add_if(options.qzeros);
  given.add_if(options.order);
  for (const Tensor& one : {b, scales}) given.add(one);
  given.add_if(options.zeros);
  return start(problem, given);
}

Result<void> Operations::quantize(const Tensor& x, const Tensor& q, const Tensor& scales,
                                  const QuantizeOptions& options) {
  const bool weight = static_cast<bool>(options.weight), bias = static_cast<bool>(options.bias);
  const bool norm = options.layernorm || weight, added = static_cast<bool>(options.residual);
  const std::int64_t cols = cols_of(q) * 8 / kernels::traits(options.format).bits;
  const bool packed = x && q && cols_of(x) != cols, gated = packed || options.up;
  if (added != static_cast<bool>(options.sum) || (added && !norm)) {
    return refused("quantize", "residual and sum are given together, with a weight");
  }
  if ((options.layernorm && added) || (bias && !(options.layernorm && weight))) {
    return refused("quantize", "layernorm has no residual, and a bias is given with its weight");
  }
  if (gated && (norm || (packed && options.up))) {
    return refused("quantize", "gate and up are two operands, or one of 2 cols, without a norm");
  }
  Problem problem =
      problem_of("quantize", x.dtype(), q.dtype(), {{"rows", rows_of(x)}, {"cols", cols}});
  if (options.format != kernels::ByteFormat::e4m3) {
    set(problem, "format", std::string(kernels::to_string(options.format)));
  }
  if (options.scales == ScaleSharing::block) set(problem, "scales", "block");
  if (options.scales == ScaleSharing::tensor) set(problem, "scales", "tensor");
  if (options.scales == ScaleSharing::mx) set(problem, "scales", "mx");
  if (norm) {
    set(problem, "fused", options.layernorm ? "layernorm" : added ? "add_rmsnorm" : "rmsnorm");
  }
  if (gated) set(problem, "fused", "silu_mul");
  if (packed) set(problem, "layout", "packed");
  if (options.layernorm && !bias) set(problem, "affine", weight ? "weight" : "none");
  if (norm && options.epsilon != 1e-5F) set(problem, "epsilon", number(options.epsilon));
  set_stride(problem, "x_stride", x);
  set_stride(problem, "q_stride", q);
  Given given;
  given.add(x);
  for (const Tensor& one : {options.up, options.residual, options.weight, options.bias})
    given.add_if(one);
  if (options.scales == ScaleSharing::tensor) given.add(scales);
  given.add_if(options.sum);
  given.add(q);
  if (options.scales != ScaleSharing::tensor) given.add(scales);
  return start(problem, given);
}

}  // namespace greta::runtime
