#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <utility>

#include "runtime/pipeline/compute/operations.hpp"
#include "runtime/pipeline/compute/prepared.hpp"
#include "runtime/pipeline/compute/request.hpp"
#include "runtime/pipeline/compute/stored_weights.hpp"

/// The operations that multiply matrices.
namespace greta::runtime {
namespace {

std::string epilogue(const GemmOptions& options) {
  std::string list;
  const auto add = [&list](const char* word) {
    list += (list.empty() ? "" : ",") + std::string(word);
  };
  if (options.bias) add("bias");
  if (options.residual) add("residual");
  if (options.activation == Activation::silu) add("silu");
  if (options.activation == Activation::gelu) add("gelu");
  if (options.activation == Activation::swiglu) add("swiglu");
  if (options.activation == Activation::geglu) add("geglu");
  return list;
}

bool is_gated(Activation activation) {
  return activation == Activation::swiglu || activation == Activation::geglu;
}

Failure odd_columns(const char* operation, std::int64_t columns) {
  return refused(operation, fmt::format("B has {} columns, but gates need as many others beside "
                                        "them",
                                        columns));
}

/// Sets where a matrix of gemm is: its leading dimension, the distance of a batch's matrices, and
/// how all of these are aligned. `tensors`: those that are placed alike.
void set_matrix(Problem& problem, char matrix, std::int64_t batch,
                std::initializer_list<Tensor> tensors) {
  const Tensor& first = *tensors.begin();
  if (!first) return;  // which start() reports
  const std::size_t rank = first.shape().rank();
  const std::string of(1, matrix);
  if (batch == 1 || rank < 3) {
    set_stride(problem, ("ld" + of).c_str(), first);
  } else {
    const std::int64_t lines = first.shape()[rank - 2], cols = cols_of(first);
    const std::int64_t stride = lines > 1 ? first.stride(rank - 2) : cols;
    if (stride != cols) set(problem, ("ld" + of).c_str(), std::to_string(stride));
    if (first.stride(0) != lines * stride)
      set(problem, (of + "_batch_stride").c_str(), std::to_string(first.stride(0)));
  }
  std::size_t places = alignment_of(first.dtype());
  for (const Tensor& tensor : tensors) places |= tensor ? tensor.place() : 0;
  const std::size_t aligned = std::size_t{1} << std::countr_zero(places);
  const auto element = bytes_of(first.dtype(), std::size_t{1});
  if (aligned < alignment_of(first.dtype()) && aligned >= element) {
    set(problem, (of + "_offset").c_str(), std::to_string(aligned / element));
  }
}

/// Normalises A's rows first.
void set_norm(Problem& problem, float epsilon) {
  set(problem, "prologue", "rmsnorm");
  if (epsilon != 1e-5F) set(problem, "epsilon", number(epsilon));
}

void set_layout(Problem& problem, Layout layout) {
  static constexpr std::array<const char*, 4> names{"nn", "nt", "tn", "tt"};
  if (layout != Layout::nn) set(problem, "layout", names.at(static_cast<std::size_t>(layout)));
}

}  // namespace

Result<void> Operations::gemm(const Tensor& a, const Tensor& b, const Tensor& c,
                              const GemmOptions& options) {
  const bool a_transposed = options.layout == Layout::tn || options.layout == Layout::tt;
  const bool b_transposed = options.layout == Layout::nt || options.layout == Layout::tt;
  const bool batched = b && b.shape().rank() == 3;
  if (a && batched && a.shape().rank() != 3) {
    return bad_rank("gemm", "A", a, a_transposed ? "[batch, k, m]" : "[batch, m, k]");
  }
  if (a && a_transposed && !batched && a.shape().rank() != 2) {
    return bad_rank("gemm", "A", a, "[k, m]");
  }
  if (b && b.shape().rank() != 2 && !batched) {
    return bad_rank("gemm", "B", b, b_transposed ? "[n, k]" : "[k, n]");
  }
  const std::int64_t batch = batched ? b.shape()[0] : 1;
  const bool gated = is_gated(options.activation);
  const std::int64_t products = !b ? 1 : b.shape()[b.shape().rank() - (b_transposed ? 2 : 1)];
  const std::int64_t n = gated ? products / 2 : products;
  if (gated && products % 2 != 0) return odd_columns("gemm", products);
  Problem problem = problem_of("gemm", a.dtype(), c.dtype(),
                               {{"m", a_transposed ? cols_of(a) : rows_of(a) / batch},
                                {"n", n},
                                {"k", a_transposed ? rows_of(a) / batch : cols_of(a)}});
  if (batch > 1) problem.dims.emplace_back("batch", batch);
  set_layout(problem, options.layout);
  if (std::string list = epilogue(options); !list.empty())
    set(problem, "epilogue", std::move(list));
  if (options.norm_weight) set_norm(problem, options.norm_epsilon);
  if (options.alpha != 1) set(problem, "alpha", number(options.alpha));
  if (options.beta != 0) set(problem, "beta", number(options.beta));
  if (options.tf32x3) set(problem, "math", "tf32x3");
  if (options.panels) set(problem, "packing", "panels");
  set_matrix(problem, 'a', batch, {a});
  set_matrix(problem, 'b', batch, {b});
  set_matrix(problem, 'c', batch, {c, options.residual});
  Given given;
  given.add(a);
  given.add(b);
  given.add_if(options.norm_weight);
  given.add_if(options.bias);
  given.add_if(options.residual);
  given.add(c);
  return start(problem, given);
}

namespace {

/// Returns the problem of a grouped product of `columns` lines of B, whose form is that of A's
/// shape.
Result<Problem> grouped_problem(const char* operation, const Tensor& a, const Tensor& b,
                                const Tensor& c, std::int64_t columns, Activation activation) {
  const bool gated = is_gated(activation);
  if (activation != Activation::none && !gated)
    return refused(operation, "the activation must be none, swiglu or geglu");
  const std::size_t rank = a ? a.shape().rank() : 2;
  if (rank != 2 && rank != 3) {
    return bad_rank(operation, "A", a, "[rows, k] or [groups, most rows, k]");
  }
  if (gated && b && columns % 2 != 0) return odd_columns(operation, columns);
  Problem problem = problem_of(operation, a.dtype(), c.dtype(),
                               {{"groups", b ? b.shape()[0] : 1},
                                {"m", a ? a.shape()[rank - 2] : 1},
                                {"n", gated ? columns / 2 : columns},
                                {"k", cols_of(a)}});
  if (rank == 3) set(problem, "form", "masked");
  return problem;
}

void set_gates(Problem& problem, Activation activation) {
  if (!is_gated(activation)) return;
  set(problem, "epilogue", activation == Activation::swiglu ? "swiglu" : "geglu");
}

/// Sets the numbers of scaled operands, and what shares a scale.
void set_numbers(Problem& problem, const ScaledGemmOptions& options) {
  if (options.format != kernels::ByteFormat::e4m3) {
    set(problem, "format", std::string(kernels::to_string(options.format)));
  }
  if (options.scales == ScaleSharing::row) set(problem, "scales", "row");
  if (options.scales == ScaleSharing::block) set(problem, "scales", "block");
  if (options.scales == ScaleSharing::mx) set(problem, "scales", "mx");
  if (options.format_b && *options.format_b != options.format) {
    set(problem, "format_b", std::string(kernels::to_string(*options.format_b)));
  }
}

}  // namespace

Result<void> Operations::grouped_gemm(const Tensor& a, const Tensor& b, const Tensor& groups,
                                      const Tensor& c, Layout layout, Activation activation) {
  const bool b_transposed = layout == Layout::nt;
  if (layout == Layout::tn || layout == Layout::tt)
    return refused("grouped_gemm", "the layout must be nn or nt");
  if (b && b.shape().rank() != 3) {
    return bad_rank("grouped_gemm", "B", b, b_transposed ? "[groups, n, k]" : "[groups, k, n]");
  }
  Result<Problem> problem =
      grouped_problem("grouped_gemm", a, b, c, b ? b.shape()[b_transposed ? 1 : 2] : 1, activation);
  if (!problem) return problem.failure();
  if (!b_transposed) set(*problem, "layout", "nn");
  set_gates(*problem, activation);
  return start(*problem, std::array{a, b, groups, c});
}

Result<void> Operations::quantized_grouped_gemm(const Tensor& a, const Tensor& b,
                                                const Tensor& groups, const Tensor& c,
                                                const QuantizedGroupedGemmOptions& options) {
  if (b && b.shape().rank() != 3) {
    return bad_rank("quantized_grouped_gemm", "B", b, "[groups, n, bytes of a row]");
  }
  Result<Problem> problem =
      grouped_problem("quantized_grouped_gemm", a, b, c, b ? b.shape()[1] : 1, options.activation);
  if (!problem) return problem.failure();
  if (auto good = set_weights(*problem, options, "k"); !good) return good;
  set_gates(*problem, options.activation);
  if (options.panels) set(*problem, "packing", "panels");
  Given given;
  given.add(a);
  given.add(b);
  given.add_if(options.scales);
  given.add_if(options.zeros);
  given.add(groups);
  given.add(c);
  return start(*problem, given);
}

namespace {

bool packed_in_words(const QuantizedGemmOptions& options) {
  return options.packing && kernels::in_words(*options.packing);
}

/// Returns the form of B.
const char* form_of(const QuantizedGemmOptions& options) {
  if (!packed_in_words(options)) return "[n, bytes of a row]";
  if (*options.packing == kernels::WeightPacking::awq) return "[k, n / 8]";
  return options.format == kernels::WeightFormat::int8 ? "[k / 4, n]" : "[k / 8, n]";
}

}  // namespace

Result<void> Operations::quantized_gemm(const Tensor& a, const Tensor& b, const Tensor& c,
                                        const QuantizedGemmOptions& options) {
  if (b && b.shape().rank() != 2) return bad_rank("quantized_gemm", "B", b, form_of(options));
  // Words of packed weights have several k or n: scales have a column for each line of W.
  const bool packed = packed_in_words(options);
  const std::int64_t k = cols_of(a);
  const bool known = b && (!packed || options.scales);  // else start() reports what is missing
  const std::int64_t lines = !known ? 2 : packed ? cols_of(options.scales) : b.shape()[0];
  const bool bias = static_cast<bool>(options.bias);
  const bool residual = static_cast<bool>(options.residual);
  if (int{bias} + int{residual} + int{options.gated} > 1) {
    return refused("quantized_gemm", "at most one of a bias, a residual and gates");
  }
  if (options.gated && lines % 2 != 0) {
    return refused("quantized_gemm",
                   fmt::format("{}, but gates need as many ups",
                               packed ? fmt::format("scales have {} columns", lines)
                                      : fmt::format("B has {} rows", lines)));
  }
  Problem problem =
      problem_of("quantized_gemm", a.dtype(), c.dtype(),
                 {{"m", rows_of(a)}, {"n", options.gated ? lines / 2 : lines}, {"k", k}});
  if (auto good = set_weights(problem, options, "k", packed ? rows_of(options.scales) : 0); !good) {
    return good;
  }
  if (bias) set(problem, "epilogue", "bias");
  if (residual) set(problem, "epilogue", "residual");
  if (options.gated) set(problem, "epilogue", "swiglu");
  if (options.norm_weight) set_norm(problem, options.norm_epsilon);
  if (options.rounded_weights || rounds_weights(a.dtype(), rows_of(a))) {
    set(problem, "math", "rounded_weights");
  }
  if (options.packing && options.packing != kernels::WeightPacking::rows) {
    set(problem, "packing", std::string(kernels::to_string(*options.packing)));
  }
  Given given;
  given.add(a);
  given.add(b);
  for (const Tensor& one :
       {options.scales, options.zeros, options.norm_weight, options.bias, options.residual}) {
    given.add_if(one);
  }
  given.add(c);
  return start(problem, given);
}

Result<void> Operations::scaled_gemm(const Tensor& a, const Tensor& b, const Tensor& scales_a,
                                     const Tensor& scales_b, const Tensor& c,
                                     const ScaledGemmOptions& options) {
  if (b && b.shape().rank() != 2) return bad_rank("scaled_gemm", "B", b, "[n, k]");
  const std::int64_t k = cols_of(a) * 8 / kernels::traits(options.format).bits;
  Problem problem = problem_of("scaled_gemm", c.dtype(), c.dtype(),
                               {{"m", rows_of(a)}, {"n", b ? b.shape()[0] : 1}, {"k", k}});
  set_numbers(problem, options);
  return start(problem, std::array{a, b, scales_a, scales_b, c});
}

Result<void> Operations::scaled_grouped_gemm(const Tensor& a, const Tensor& b,
                                             const Tensor& scales_a, const Tensor& scales_b,
                                             const Tensor& groups, const Tensor& c,
                                             const ScaledGroupedGemmOptions& options) {
  if (b && b.shape().rank() != 3) return bad_rank("scaled_grouped_gemm", "B", b, "[groups, n, k]");
  Result<Problem> problem =
      grouped_problem("scaled_grouped_gemm", a, b, c, b ? b.shape()[1] : 1, options.activation);
  if (!problem) return problem.failure();
  problem->dtype = c.dtype();  // A has bytes
  set_numbers(*problem, options);
  set_gates(*problem, options.activation);
  return start(*problem, std::array{a, b, scales_a, scales_b, groups, c});
}

}  // namespace greta::runtime
