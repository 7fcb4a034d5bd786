#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

#include "kernels/model/problem.hpp"
#include "runtime/pipeline/compute/tensor.hpp"

/// From the operands and options of a call to the problem and the list of operands that run()
/// takes.
namespace greta::runtime {

using Dims = std::initializer_list<std::pair<const char*, std::int64_t>>;

Problem problem_of(const char* op, DType in, DType out, Dims dims);
void set(Problem& problem, const char* attribute, std::string value);
/// Returns the canonical spelling of a number, like canonical_number().
std::string number(float value);

std::int64_t rows_of(const Tensor& tensor);
std::int64_t cols_of(const Tensor& tensor);

/// Sets the row stride of a tensor that is not packed, with rows of its last `dims` dimensions.
/// check_operands() rejects strides that are not constant.
void set_stride(Problem& problem, const char* attribute, const Tensor& tensor,
                std::size_t dims = 1);
/// Sets the size of values that is not that of keys, `dim`.
void set_v_dim(Problem& problem, std::int64_t v_dim);

/// Returns e.g. "rope: x is f32 [2, 4], but it must be [tokens, heads, dim]".
Failure bad_rank(const char* op, const char* name, const Tensor& tensor, const char* form);

/// A list of operands without those that were omitted.
class Given {
 public:
  void add(const Tensor& tensor) { list_[count_++] = tensor; }
  void add_if(const Tensor& tensor) {
    if (tensor) add(tensor);
  }
  operator std::span<const Tensor>() const { return {list_.data(), count_}; }  // NOLINT

 private:
  std::array<Tensor, 12> list_;
  std::size_t count_ = 0;
};

}  // namespace greta::runtime
