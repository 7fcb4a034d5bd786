#pragma once

#include <string>
#include <utility>
#include <vector>

#include "kernels/model/operation.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// Returns a gemm problem. `attributes` are like {{"layout", "nt"}}, without defaults.
Problem gemm_problem(std::int64_t m, std::int64_t n, std::int64_t k, DType in = DType::f32,
                     DType out = DType::f32,
                     std::vector<std::pair<std::string, std::string>> attributes = {});

/// Errors of an incorrect kernel.
struct Mistakes {
  std::int64_t skip_from = 0, skip_to = 0;  ///< K steps left out
  bool no_bias = false;
  bool truncate = false;  ///< truncates f16 results
};

/// Computes C with three plain loops in f32, rounded to the output type.
HostTensor cpu_gemm(const Problem& problem, const std::vector<HostTensor>& inputs,
                    const Mistakes& mistakes = {});

}  // namespace greta::test
