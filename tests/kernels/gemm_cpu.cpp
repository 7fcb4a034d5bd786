#include "tests/kernels/gemm_cpu.hpp"

#include <algorithm>
#include <cmath>

#include "tests/catalog.hpp"

namespace greta::test {
namespace {

/// Returns the named tensor as f32, optionally transposed; empty if the problem does not have it.
std::vector<float> values(const std::vector<HostTensor>& inputs, const std::string& name,
                          bool transpose = false) {
  for (const HostTensor& t : inputs) {
    if (t.spec.name != name) continue;
    const auto rows = static_cast<std::size_t>(t.spec.rows);
    const auto cols = static_cast<std::size_t>(t.spec.cols);
    std::vector<float> out(rows * cols);
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[transpose ? i % cols * rows + i / cols : i] = static_cast<float>(t.at(i));
    }
    return out;
  }
  return {};
}

double activate(double x, const std::string& epilogue) {
  if (epilogue.ends_with("silu") || epilogue.ends_with("swiglu")) return x / (1 + std::exp(-x));
  if (!epilogue.ends_with("gelu") && !epilogue.ends_with("geglu")) return x;
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979) * (x + 0.044715 * x * x * x)));
}

/// Replaces the rows of a matrix, each as long as `weight`, by their root mean square norms.
void normalise(std::vector<float>& rows, const std::vector<float>& weight, float epsilon) {
  for (std::size_t first = 0; first < rows.size(); first += weight.size()) {
    double squares = 0;
    for (std::size_t i = 0; i < weight.size(); ++i)
      squares += double{rows[first + i]} * rows[first + i];
    const double factor = 1 / std::sqrt(squares / static_cast<double>(weight.size()) + epsilon);
    for (std::size_t i = 0; i < weight.size(); ++i) {
      rows[first + i] = static_cast<float>(factor * rows[first + i] * weight[i]);
    }
  }
}

/// Returns the value truncated to f16.
double truncated(double value) {
  std::byte raw[2];
  store_element(DType::f16, raw, 0, value);
  const double rounded = load_element(DType::f16, raw, 0);
  if (std::abs(rounded) <= std::abs(value)) return value;
  return rounded * (1 - 0x1p-11);
}

}  // namespace

Problem gemm_problem(std::int64_t m, std::int64_t n, std::int64_t k, DType in, DType out,
                     std::vector<std::pair<std::string, std::string>> attributes) {
  return {"gemm", in, out, std::move(attributes), {{"m", m}, {"n", n}, {"k", k}}};
}

HostTensor cpu_gemm(const Problem& problem, const std::vector<HostTensor>& inputs,
                    const Mistakes& mistakes) {
  const auto m = static_cast<std::size_t>(problem.dim("m"));
  const auto n = static_cast<std::size_t>(problem.dim("n"));
  const auto k = static_cast<std::size_t>(problem.dim("k"));
  const std::string layout = problem.attribute("layout", "nn");
  const std::string epilogue = problem.attribute("epilogue", "none");
  const float alpha = std::stof(problem.attribute("alpha", "1"));
  const float beta = std::stof(problem.attribute("beta", "0"));
  const bool gated = epilogue.ends_with("swiglu") || epilogue.ends_with("geglu");
  const std::size_t products = gated ? 2 * n : n;
  auto a = values(inputs, "A", layout == "tn");
  const auto b = values(inputs, "B", layout == "nt");
  if (problem.attribute("prologue", "none") == "rmsnorm") {
    normalise(a, values(inputs, "weight"), std::stof(problem.attribute("epsilon", "1e-5")));
  }
  const auto bias = values(inputs, "bias"), residual = values(inputs, "residual");
  const auto old = values(inputs, "C");
  const TensorSpec spec = built_in("gemm").tensors(problem).back();
  HostTensor c{spec, std::vector<std::byte>(spec.bytes())};
  std::vector<float> sums(products);
  for (std::size_t i = 0; i < m; ++i) {
    std::fill(sums.begin(), sums.end(), 0.0F);
    for (std::size_t l = 0; l < k; ++l) {
      const auto step = static_cast<std::int64_t>(l);
      if (step >= mistakes.skip_from && step < mistakes.skip_to) continue;
      for (std::size_t j = 0; j < products; ++j) sums[j] += a[i * k + l] * b[l * products + j];
    }
    const auto biased = [&](std::size_t j) {
      return alpha * sums[j] + (!bias.empty() && !mistakes.no_bias ? bias[j] : 0);
    };
    for (std::size_t j = 0; j < n; ++j) {
      float x = biased(j);
      if (!residual.empty()) x += residual[i * n + j];
      if (!old.empty()) x += beta * old[i * n + j];
      const double result = activate(x, epilogue) * (gated ? biased(n + j) : 1);
      store_element(spec.dtype, c.data.data(), i * n + j,
                    mistakes.truncate ? truncated(result) : result);
    }
  }
  return c;
}

}  // namespace greta::test
