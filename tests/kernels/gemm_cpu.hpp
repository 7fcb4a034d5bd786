#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernels/model/operation.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// A gemm problem: `attributes` as in {{"layout", "nt"}}, defaults left out.
Problem gemm_problem(std::int64_t m, std::int64_t n, std::int64_t k, DType in = DType::f32,
                     DType out = DType::f32,
                     std::vector<std::pair<std::string, std::string>> attributes = {});

/// What a wrong kernel may do.
struct Mistakes {
  std::int64_t skip_from = 0, skip_to = 0;  ///< K steps left out
  bool no_bias = false;
  bool truncate = false;  ///< rounds f16 results toward zero
};

/// C by three plain loops in f32, rounded to the output type.
HostTensor cpu_gemm(const Problem& problem, const std::vector<HostTensor>& inputs,
                    const Mistakes& mistakes = {});

}  // namespace greta::test
