#include "runtime/pipeline/compute/request.hpp"

#include <fmt/format.h>

#include "runtime/pipeline/compute/prepared.hpp"

namespace greta::runtime {

Problem problem_of(const char* op, DType in, DType out, Dims dims) {
  Problem problem{op, in, out, {}, {}};
  problem.dims.reserve(dims.size());
  for (const auto& [name, extent] : dims) problem.dims.emplace_back(name, extent);
  return problem;
}

void set(Problem& problem, const char* attribute, std::string value) {
  problem.attributes.emplace_back(attribute, std::move(value));
}

std::string number(float value) {
  return fmt::format("{}", value == 0 ? 0.0F : value);
}

std::int64_t rows_of(const Tensor& tensor) {
  return tensor.shape().elements() / tensor.shape().last();
}

std::int64_t cols_of(const Tensor& tensor) {
  return tensor.shape().last();
}

void set_stride(Problem& problem, const char* attribute, const Tensor& tensor, std::size_t dims) {
  if (tensor.contiguous()) return;
  const std::int64_t stride = tensor.row_stride(tensor.shape().rank() - dims);
  if (stride > 0) set(problem, attribute, std::to_string(stride));
}

void set_v_dim(Problem& problem, std::int64_t v_dim) {
  if (v_dim != problem.dim("dim")) set(problem, "v_dim", std::to_string(v_dim));
}

Failure bad_rank(const char* op, const char* name, const Tensor& tensor, const char* form) {
  return refused(op, fmt::format("{} is {}, but it must be {}", name, tensor.text(), form));
}

}  // namespace greta::runtime
