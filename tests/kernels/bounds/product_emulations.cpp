#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "tests/kernels/bounds/emulation.hpp"
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
      : given_(given),
        m_(given.dim("m")),
        k_(given.dim("k")),
        columns_(columns),
        layout_(given.problem.attribute("layout", "nn")),
        norm_(given.problem.attribute("prologue", "none") == "rmsnorm"),
        splits_(given.problem.attribute("math", "exact") == "tf32x3"),
        a_first_(product * m_ * k_),
        b_first_(given.problem.attribute("shared", "none") == "b" ? 0 : product * columns * k_) {}

  Float at(std::size_t row, std::size_t col) const {
    const auto x = [&](std::size_t l) { return a(row, l); };
    const auto weighted = [&](std::size_t l) {
      return norm_ ? x(l) * Float(given_["weight"][l]) : x(l);
    };
    const auto& b = given_["B"];
    const auto y = [&](std::size_t l) {
      return Float(b[b_first_ + (layout_.back() == 't' ? col * k_ + l : l * columns_ + col)]);
    };
    Float sum = splits_ ? dot_of_splits(k_, weighted, y) : dot(k_, weighted, y);
    if (norm_) {
      const Float mean = dot(k_, x, x) / Float(static_cast<float>(k_));
      sum = sum * inverse_root(mean + Float(given_.number("epsilon", "1e-05")));
    }
    const float alpha = given_.number("alpha", "1");
    if (alpha != 1) sum = sum * Float(alpha);
    return given_.has("bias") ? sum + Float(given_["bias"][col]) : sum;
  }

 private:
  Float a(std::size_t row, std::size_t l) const {
    return {given_["A"][a_first_ + (layout_.front() == 't' ? l * m_ + row : row * k_ + l)]};
  }

  const Given& given_;
  std::size_t m_, k_, columns_;
  std::string layout_;
  bool norm_, splits_;
  std::size_t a_first_, b_first_;
};

Outputs gemm(const Given& given) {
  const std::size_t m = given.dim("m"), n = given.dim("n");
  const std::string epilogue = given.problem.attribute("epilogue", "none");
  const bool gated = epilogue.ends_with("swiglu") || epilogue.ends_with("geglu");
  const float beta = given.number("beta", "0");
  const auto batch = static_cast<std::size_t>(given.problem.dim("batch", 1));
  std::vector<float> out(batch * m * n);
  for (std::size_t at = 0; at < out.size(); ++at) {
    const std::size_t i = at / n % m, j = at % n;
    const Products products(given, gated ? 2 * n : n, at / n / m);
    Float x = products.at(i, j);
    if (given.has("residual")) x = x + Float(given["residual"][at]);
    if (beta != 0) x = multiply_add(Float(beta), given["C"][at], x);
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
  const std::size_t m = given.dim("m"), n = given.dim("n"), k = given.dim("k");
  const bool transposed = given.problem.attribute("layout", "nt") == "nt";
  const bool masked = given.problem.attribute("form", "contiguous") == "masked";
  const std::string epilogue = given.problem.attribute("epilogue", "none");
  const bool gated = epilogue != "none";
  const std::size_t lines = gated ? 2 * n : n;
  const auto &a = given["A"], &b = given["B"];
  const std::size_t rows = a.size() / k;
  std::vector<float> out(rows * n, std::numeric_limits<float>::quiet_NaN());
  std::size_t start = 0;
  for (std::size_t group = 0; group < given.dim("groups"); ++group) {
    if (masked) start = group * m;
    const std::size_t end = masked ? start + static_cast<std::size_t>(given["rows"][group])
                                   : static_cast<std::size_t>(given["ends"][group]);
    for (std::size_t row = start; row < end; ++row) {
      const auto product = [&](std::size_t col) {
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
    start = end;
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

// ---------------------------------------------------------------------------------- attention

/// Returns a weight as matrix cores read it: rounded to the inputs' type if that has 16 bits.
float stored_weight(DType type, Float weight) {
  if (bits_of(type) == 32) return weight.value();
  if (arithmetic().least_precise && weight < Float(static_cast<float>(smallest_normal(type)))) {
    return 0;
  }
  std::byte raw[2];
  store_element(type, raw, 0, coarsened(type, weight.value(), arithmetic().dropped));
  return static_cast<float>(load_element(type, raw, 0));
}

/// Computes one row of the output: the weighted values of the keys. `straight` determines the
/// largest score first; others process blocks of keys and rescale their sums whenever a larger
/// score appears. A sink is added last. Returns the logarithm of the sum.
float attend(DType in, const std::vector<Float>& scores, std::optional<float> sink,
             const std::vector<const float*>& values, std::size_t dim, float* out) {
  const bool straight = arithmetic().sums == Arithmetic::Sums::straight;
  const std::size_t block = straight ? scores.size() : 16;
  Float most = std::numeric_limits<float>::lowest(), total = 0;
  std::vector<Float> sums(dim);
  for (std::size_t first = 0; first < scores.size(); first += block) {
    const std::size_t count = std::min(block, scores.size() - first);
    Float now = most;
    for (std::size_t j = 0; j < count; ++j) now = std::max(now, scores[first + j]);
    const Float kept = exp(most - now);
    std::vector<Float> weights(count), taken(count);
    for (std::size_t j = 0; j < count; ++j) {
      weights[j] = exp(scores[first + j] - now);
      taken[j] = straight ? weights[j] : Float(stored_weight(in, weights[j]));
    }
    total = multiply_add(total, kept, sum(count, [&](std::size_t j) { return weights[j]; }));
    for (std::size_t d = 0; d < dim; ++d) {
      sums[d] = multiply_add(sums[d], kept,
                             dot(
                                 count, [&](std::size_t j) { return taken[j]; },
                                 [&](std::size_t j) { return Float(values[first + j][d]); }));
    }
    most = now;
  }
  Float kept = 1;
  if (sink) {
    const Float now = std::max(most, Float(*sink));
    kept = exp(most - now);
    total = multiply_add(total, kept, exp(Float(*sink) - now));
    most = now;
  }
  for (std::size_t d = 0; d < dim; ++d) {
    out[d] = scores.empty() ? 0 : (sums[d] * kept / total).value();
  }
  if (total.value() == 0) return -std::numeric_limits<float>::infinity();
  return (most + Float(std::log(total.value()))).value();
}

/// Returns a scaled score below the limit.
Float capped(Float score, float cap) {
  const Float power = exp(score / Float(cap) * Float(2));
  return Float(cap) - Float(2 * cap) / (power + Float(1));
}

/// A token's query, and the keys of its sequence.
struct Place {
  std::size_t sequence, query, queries, first_key, keys;
};

Place packed_place(const Given& given, std::size_t token) {
  const auto start = [&](const char* name, std::size_t sequence) {
    return static_cast<std::size_t>(given[name][sequence]);
  };
  std::size_t s = 0;
  while (start("cu_seqlens_q", s + 1) <= token) ++s;
  const std::size_t first = start("cu_seqlens_q", s), key = start("cu_seqlens_k", s);
  return {s, token - first, start("cu_seqlens_q", s + 1) - first, key,
          start("cu_seqlens_k", s + 1) - key};
}

Outputs attention(const Given& given) {
  const std::size_t heads = given.dim("heads"), dim = given.dim("dim"), queries = given.dim("q");
  const std::size_t shared = heads / given.dim("kv_heads"), capacity = given.dim("kv");
  const std::string said = given.problem.attribute("scale", "auto");
  const float scale = said == "auto" ? 1 / std::sqrt(static_cast<float>(dim)) : std::stof(said);
  const std::string window = given.problem.attribute("window", "none");
  const std::string cap = given.problem.attribute("softcap", "none");
  const std::string paged = given.problem.attribute("page_size", "none");
  const std::size_t page = paged == "none" ? capacity : std::stoul(paged);
  const std::size_t pages = (capacity + page - 1) / page;
  const auto &q = given["Q"], &k = given["K"], &v = given["V"];
  const std::size_t v_dim = std::stoul(given.problem.attribute("v_dim", std::to_string(dim)));
  std::vector<float> out(q.size() / dim * v_dim), lse(q.size() / dim);
  const bool packed = given.problem.attribute("sequences", "padded") == "packed";
  for (std::size_t row = 0; row < q.size() / dim; ++row) {
    const Place place =
        packed ? packed_place(given, row / heads)
               : Place{row / heads / queries, row / heads % queries, queries, 0,
                       static_cast<std::size_t>(given["lengths"][row / heads / queries])};
    const std::size_t head = row % heads, sequence = place.sequence;
    auto visible = static_cast<std::int64_t>(place.keys);
    if (given.problem.attribute("mask", "none") == "causal") {
      visible +=
          static_cast<std::int64_t>(place.query) - static_cast<std::int64_t>(place.queries) + 1;
    }
    visible = std::max<std::int64_t>(0, visible);
    const std::int64_t hidden =
        window == "none" ? 0 : std::max<std::int64_t>(0, visible - std::stoll(window));
    std::vector<Float> scores;
    std::vector<const float*> values;
    for (auto key = static_cast<std::size_t>(hidden); key < static_cast<std::size_t>(visible);
         ++key) {
      const std::size_t entry = sequence * pages + key / page;
      const std::size_t number =
          paged == "none" ? entry : static_cast<std::size_t>(given["block_table"][entry]);
      const std::size_t kv_heads = heads / shared, kv_head = head / shared;
      const std::size_t line = packed ? (place.first_key + key) * kv_heads + kv_head
                                      : (number * kv_heads + kv_head) * page + key % page;
      const Float product = dot(
          dim, [&](std::size_t d) { return Float(q[row * dim + d]); },
          [&](std::size_t d) { return Float(k[line * dim + d]); });
      const Float score = product * Float(scale);
      scores.push_back(cap == "none" ? score : capped(score, std::stof(cap)));
      values.push_back(v.data() + line * v_dim);
    }
    std::optional<float> sink;
    if (given.has("sinks")) sink = given["sinks"][head];
    lse[row] = attend(given.problem.dtype, scores, sink, values, v_dim, out.data() + row * v_dim);
  }
  if (given.problem.attribute("lse", "none") == "none") return {out};
  return {out, lse};
}

/// Two packed sequences, of a third of all tokens and of the others.
Contents thirds(double tokens) {
  return [tokens](double, std::size_t i) {
    return i == 0 ? 0.0 : i == 1 ? std::floor(tokens / 3) : tokens;
  };
}

std::vector<Case> attention_cases(const DTypes& types) {
  struct Shape {
    const char *q, *kv, *dim, *mask, *scale;
  };
  const auto with = [&](const char* what, const Shape& s, const Contents& q, const Contents& v,
                        const Factors& factors, const Options& more = {}) {
    Options options{{"batch", "2"}, {"heads", "4"}, {"kv_heads", "2"},  {"q", s.q},
                    {"kv", s.kv},   {"dim", s.dim}, {"scale", s.scale}, {"mask", s.mask}};
    options.insert(options.end(), more.begin(), more.end());
    const Contents lengths = [full = std::stod(s.kv)](double, std::size_t i) {
      return i == 0 ? full : std::ceil(full / 2);
    };
    const auto paged = std::find_if(more.begin(), more.end(),
                                    [](const auto& o) { return o.first == "page_size"; });
    const Contents pages =
        pages_of(std::stoul(s.kv), paged == more.end() ? "none" : paged->second, 2);
    return Case{what,
                options,
                {{"Q", q},
                 {"V", v},
                 {"lengths", lengths},
                 {"block_table", pages},
                 {"cu_seqlens_q", thirds(std::stod(s.q))},
                 {"cu_seqlens_k", thirds(std::stod(s.kv))}},
                factors};
  };
  const Contents one = times(1), large = times(64), positive = between(0.25, 0.5);
  return {
      with("moderate", {"40", "90", "24", "causal", "auto"}, times(16), one,
           {26, 5.3, 5, 4.5, 4.2}),
      with("one key", {"200", "1", "8", "none", "auto"}, one, one, {19, 0, 0, 0, 0}),
      with("equal weights", {"8", "600", "16", "none", "1e-6"}, one, one, {18, 0, 0, 0, 0}),
      with("values of one sign", {"8", "600", "16", "none", "1e-6"}, one, positive,
           {8.2, 0, 0, 0, 0}),
      with("long products", {"150", "2", "256", "none", "1"}, large, one, {30, 1.8, 9.9, 1.9, 5.9}),
      with("far apart", {"60", "40", "8", "none", "1"}, large, one, {19, 1.6, 7.7, 1.7, 5.1}),
      with("tiny", {"60", "20", "16", "none", "auto"}, one, times(tiny(types)),
           {1.2, 6, 1.2, 2.4, 1.2}),
      with("limit", {"40", "90", "24", "causal", "1"}, one, one, {6.7, 4.8, 4.4, 4.3, 3.8},
           {{"softcap", "50"}, {"page_size", "256"}}),
      with("window, sinks", {"40", "90", "24", "causal", "auto"}, times(16), one,
           {20.1, 5.7, 5.4, 4.1, 4.5}, {{"window", "24"}, {"sinks", "head"}, {"page_size", "16"}}),
      with("logarithms", {"20", "40", "24", "none", "auto"}, times(16), one,
           {27.7, 23, 28, 20.1, 22.6}, {{"lse", "stored"}, {"page_size", "32"}}),
      with("other values", {"20", "40", "24", "none", "auto"}, times(16), one,
           {26, 5.3, 5.2, 4.5, 4.2}, {{"v_dim", "40"}, {"lengths", "ragged"}}),
      with("packed", {"40", "90", "24", "causal", "auto"}, times(16), one,
           {27.9, 5.6, 6.3, 4.5, 4.2}, {{"sequences", "packed"}}),
      with("pages of 64", {"20", "90", "16", "none", "1e-6"}, one, one, {16.1, 0, 0, 0, 0},
           {{"page_size", "64"}}),
      with("pages of 128", {"20", "150", "16", "none", "1e-6"}, one, one, {17.3, 0, 0, 0, 0},
           {{"page_size", "128"}})};
}

}  // namespace

std::vector<Emulation> product_emulations() {
  return {{"gemm", gemm_cases, gemm},
          {"grouped_gemm", grouped_gemm_cases, grouped_gemm},
          {"attention", attention_cases, attention}};
}

}  // namespace greta::test::bounds
