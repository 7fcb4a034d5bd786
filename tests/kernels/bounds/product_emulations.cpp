#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "tests/kernels/bounds/emulation.hpp"
#include "tests/kernels/bounds/grouped_rows.hpp"
#include "tests/layers.hpp"

namespace greta::test::bounds {
namespace {

using Options = std::vector<std::pair<std::string, std::string>>;

// --------------------------------------------------------------------------------------- gemm

/// An f32 as the sum of two TF32.
struct Split {
  explicit Split(Float x) : high(to_tf32(x)), low(to_tf32(x - high)) {}

  Float high, low;

 private:
  static Float to_tf32(Float x) {
    constexpr int dropped = 13;  // bits of f32 that TF32 lacks
    return Float(static_cast<float>(coarsened(DType::f32, x.value(), dropped)));
  }
};

/// Returns the sum of a(i) b(i), each as three products of TF32.
template <typename A, typename B>
Float dot_of_splits(std::size_t count, const A& a, const B& b) {
  return accumulate(
      count, Float(),
      [&](Float sum, std::size_t i) {
        const Split x(a(i)), y(b(i));
        sum = multiply_add(x.high, y.low, multiply_add(x.low, y.high, sum));
        return multiply_add(x.high, y.high, sum);
      },
      [](Float x, Float y) { return x + y; });
}

/// alpha times the product, plus the bias.
class Products {
 public:
  /// `product`: of a batch.
  Products(const Given& given, std::size_t columns, std::size_t product)
      : m_(given.dim("m")),
        k_(given.dim("k")),
        columns_(columns),
        layout_(given.problem.attribute("layout", "nn")),
        splits_(given.problem.attribute("math", "exact") == "tf32x3"),
        panels_(given.problem.attribute("packing", "rows") == "panels"),
        alpha_(given.number("alpha", "1")),
        a_(&given["A"][product * m_ * k_]),
        b_(&given["B"]
                 [given.problem.attribute("shared", "none") == "b" ? 0 : product * columns * k_]),
        bias_(given.elements("bias")) {
    if (given.problem.attribute("prologue", "none") != "rmsnorm") return;
    weight_ = given.elements("weight");
    const Float epsilon = given.number("epsilon", "1e-05");
    for (std::size_t row = 0; row < m_; ++row) {
      const auto x = [&](std::size_t l) { return a(row, l); };
      inverse_roots_.push_back(
          inverse_root(dot(k_, x, x) / Float(static_cast<float>(k_)) + epsilon));
    }
  }

  Float at(std::size_t row, std::size_t col) const {
    const auto x = [&](std::size_t l) { return a(row, l); };
    const auto weighted = [&](std::size_t l) {
      return weight_ != nullptr ? x(l) * Float(weight_[l]) : x(l);
    };
    const auto y = [&](std::size_t l) {
      if (panels_) return Float(b_[col / 16 * 16 * k_ + l / 8 * 128 + col % 16 * 8 + l % 8]);
      return Float(b_[layout_.back() == 't' ? col * k_ + l : l * columns_ + col]);
    };
    Float sum = splits_ ? dot_of_splits(k_, weighted, y) : dot(k_, weighted, y);
    if (weight_ != nullptr) sum = sum * inverse_roots_[row];
    if (alpha_ != 1) sum = sum * Float(alpha_);
    return bias_ != nullptr ? sum + Float(bias_[col]) : sum;
  }

 private:
  Float a(std::size_t row, std::size_t l) const {
    return {a_[layout_.front() == 't' ? l * m_ + row : row * k_ + l]};
  }

  std::size_t m_, k_, columns_;
  std::string layout_;
  bool splits_, panels_;
  float alpha_;
  const float *a_, *b_, *bias_, *weight_ = nullptr;  ///< weights of a norm
  std::vector<Float> inverse_roots_;                 ///< of a norm's rows
};

Outputs gemm(const Given& given) {
  const std::size_t m = given.dim("m"), n = given.dim("n");
  const std::string epilogue = given.problem.attribute("epilogue", "none");
  const bool gated = epilogue.ends_with("swiglu") || epilogue.ends_with("geglu");
  const float beta = given.number("beta", "0");
  const auto batch = static_cast<std::size_t>(given.problem.dim("batch", 1));
  const float *const residual = given.elements("residual"), *const old = given.elements("C");
  std::vector<Products> of_batch;
  for (std::size_t i = 0; i < batch; ++i) of_batch.emplace_back(given, gated ? 2 * n : n, i);
  std::vector<float> out(batch * m * n);
  for (std::size_t at = 0; at < out.size(); ++at) {
    const std::size_t i = at / n % m, j = at % n;
    const Products& products = of_batch[at / n / m];
    Float x = products.at(i, j);
    if (residual != nullptr) x = x + Float(residual[at]);
    if (beta != 0) x = multiply_add(Float(beta), old[at], x);
    if (epilogue.ends_with("silu") || epilogue.ends_with("swiglu")) x = silu(x);
    if (epilogue.ends_with("gelu") || epilogue.ends_with("geglu")) x = gelu_tanh(x);
    if (gated) x = x * products.at(i, n + j);
    out[at] = x.value();
  }
  return {out};
}

std::vector<Case> gemm_cases(const DTypes& types) {
  const auto with = [](const char* what, const char* side, const char* k, Options more,
                       std::map<std::string, Contents> contents, const Factors& factors) {
    more.insert(more.end(), {{"m", side}, {"n", side}, {"k", k}});
    return Case{what, more, std::move(contents), factors};
  };
  // Gates and norms are for few rows.
  const auto few = [](const char* what, const char* n, const char* k, Options more,
                      std::map<std::string, Contents> contents, const Factors& factors) {
    more.insert(more.end(), {{"m", "8"}, {"n", n}, {"k", k}});
    return Case{what, more, std::move(contents), factors};
  };
  const std::map<std::string, Contents> large{
      {"bias", times(64)}, {"residual", times(64)}, {"C", times(64)}};
  const std::map<std::string, Contents> small{{"A", times(std::sqrt(tiny(types)))},
                                              {"B", times(std::sqrt(tiny(types)))}};
  return {
      with("two products", "150", "2", {}, {}, {3.2, 5.9, 7.1, 1.1, 1.1}),
      with("short", "150", "5",
           {{"layout", "tt"}, {"a_offset", "1"}, {"b_offset", "2"}, {"c_offset", "4"}}, {},
           {3.8, 5.3, 8.5, 1.1, 1.1}),
      with("moderate", "90", "60", {{"layout", "nt"}}, {}, {4.2, 3.9, 11, 1.1, 1.1}),
      with("long", "20", "2000", {{"layout", "tn"}}, {}, {8.2, 7.3, 16, 1.2, 1.2}),
      with("panels", "96", "56", {{"layout", "nt"}, {"packing", "panels"}}, {},
           {0, 4, 11, 1.1, 1.1}),
      with("three products of TF32", "90", "60", {{"math", "tf32x3"}}, {}, {2.3, 0, 0, 0, 0}),
      with("scaled", "120", "2", {{"alpha", "0.3"}}, {}, {2.7, 4.3, 6.5, 1.1, 1.1}),
      with("bias", "120", "2", {{"epilogue", "bias"}}, large, {2.2, 2.2, 2.1, 1.1, 1.1}),
      with("batch", "85", "2", {{"epilogue", "residual"}, {"batch", "2"}}, large,
           {2.2, 2.2, 2.1, 1.1, 1.1}),
      with("batch with one B", "85", "2", {{"shared", "b"}, {"batch", "2"}}, {},
           {3.2, 5.9, 7.1, 1.1, 1.1}),
      with("residual", "120", "2", {{"epilogue", "residual"}}, large, {2.2, 2.2, 2.1, 1.1, 1.1}),
      with("old values", "120", "2", {{"beta", "-0.7"}}, large, {1.7, 1.8, 1.7, 1.1, 1.1}),
      with("silu", "80", "20", {{"epilogue", "silu"}}, {{"A", times(64)}},
           {1.5, 1.5, 1.5, 1.1, 1.1}),
      with("gelu", "80", "20", {{"epilogue", "gelu"}}, {{"A", times(8)}},
           {2.6, 2.6, 2.6, 1.1, 1.1}),
      with("bias and silu", "80", "2", {{"epilogue", "bias,silu"}}, large,
           {1.4, 1.5, 1.4, 1.1, 1.1}),
      with("tiny", "120", "2", {}, small, {3.1, 0, 3.1, 1.1, 3.1}),
      few("swiglu", "900", "20", {{"epilogue", "swiglu"}}, {{"A", times(64)}}, {2, 2, 2, 1.1, 1.1}),
      few("geglu", "900", "20", {{"epilogue", "bias,geglu"}, {"layout", "nt"}}, {{"A", times(8)}},
          {2.7, 2.7, 2.7, 1.1, 1.1}),
      few("rmsnorm, short", "900", "3", {{"prologue", "rmsnorm"}}, {{"A", times(64)}},
          {3.7, 2.6, 3.7, 1.1, 1.1}),
      few("rmsnorm", "600", "90", {{"prologue", "rmsnorm"}, {"epsilon", "0.25"}}, {},
          {9.7, 7.7, 10.1, 1.1, 1.1}),
      few("rmsnorm, swiglu", "400", "60", {{"prologue", "rmsnorm"}, {"epilogue", "swiglu"}},
          {{"B", times(8)}}, {11.2, 9.8, 12, 1.1, 1.1})};
}

// ------------------------------------------------------------------------------- grouped_gemm

/// Each group has some of the rows.
Outputs grouped_gemm(const Given& given) {
  const std::size_t n = given.dim("n"), k = given.dim("k");
  const bool transposed = given.problem.attribute("layout", "nt") == "nt";
  const std::string epilogue = given.problem.attribute("epilogue", "none");
  const bool gated = epilogue != "none";
  const std::size_t lines = gated ? 2 * n : n;
  const auto &a = given["A"], &b = given["B"];
  const std::size_t rows = a.size() / k;
  std::vector<float> out(rows * n, std::numeric_limits<float>::quiet_NaN());
  for (const auto& [group, first, end] : rows_of_groups(given)) {
    for (std::size_t row = first; row < end; ++row) {
      const auto product = [&, group = group](std::size_t col) {
        const auto x = [&](std::size_t l) { return Float(a[row * k + l]); };
        const auto y = [&](std::size_t l) {
          return Float(b[group * lines * k + (transposed ? col * k + l : l * n + col)]);
        };
        return dot(k, x, y);
      };
      for (std::size_t col = 0; col < n; ++col) {
        Float sum = product(col);
        if (gated) sum = (epilogue == "swiglu" ? silu(sum) : gelu_tanh(sum)) * product(n + col);
        out[row * n + col] = sum.value();
      }
    }
  }
  return {out};
}

std::vector<Case> grouped_gemm_cases(const DTypes& types) {
  const Contents ends = [](double, std::size_t group) { return 50.0 * static_cast<double>(group); };
  const Contents rows = [](double, std::size_t) { return 60.0; };
  const std::map<std::string, Contents> small{
      {"A", times(std::sqrt(tiny(types)))}, {"B", times(std::sqrt(tiny(types)))}, {"ends", ends}};
  return {Case{"short",
               {{"groups", "4"}, {"m", "150"}, {"n", "250"}, {"k", "5"}},
               {{"ends", ends}},
               {3.8, 5.3, 8.5, 1.1, 1.1}},
          Case{"masked, moderate",
               {{"form", "masked"},
                {"layout", "nn"},
                {"groups", "3"},
                {"m", "60"},
                {"n", "90"},
                {"k", "60"}},
               {{"rows", rows}},
               {4.2, 3.9, 7.5, 1.1, 1.1}},
          Case{"swiglu, short",
               {{"epilogue", "swiglu"}, {"groups", "4"}, {"m", "150"}, {"n", "120"}, {"k", "7"}},
               {{"ends", ends}, {"B", times(4)}},
               {4.4, 4.4, 4, 1.2, 1.2}},
          Case{"geglu, moderate",
               {{"form", "masked"},
                {"epilogue", "geglu"},
                {"groups", "3"},
                {"m", "60"},
                {"n", "60"},
                {"k", "60"}},
               {{"rows", rows}},
               {9.2, 10.5, 13.4, 1.2, 1.2}},
          Case{"tiny",
               {{"routing", "skewed"}, {"groups", "4"}, {"m", "150"}, {"n", "120"}, {"k", "2"}},
               small,
               {3.1, 0, 3.1, 1.1, 3.1}}};
}

}  // namespace

std::vector<Emulation> product_emulations() {
  return {{"gemm", gemm_cases, gemm}, {"grouped_gemm", grouped_gemm_cases, grouped_gemm}};
}

}  // namespace greta::test::bounds
