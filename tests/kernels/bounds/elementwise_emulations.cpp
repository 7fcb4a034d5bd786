#include <algorithm>
#include <cmath>

#include "tests/kernels/bounds/emulation.hpp"
#include "tests/layers.hpp"

namespace greta::test::bounds {
namespace {

using Options = std::vector<std::pair<std::string, std::string>>;

/// Clamps an argument on the least precise device only.
Float at_least(float least, Float x) {
  return arithmetic().least_precise && x < Float(least) ? Float(least) : x;
}

/// Returns f(i) for every element of a single output.
template <typename F>
Outputs each(std::size_t count, const F& f) {
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = f(i);
  return {out};
}

Outputs add(const Given& given) {
  const auto &a = given["A"], &b = given["B"];
  return each(a.size(), [&](std::size_t i) { return (Float(a[i]) + Float(b[i])).value(); });
}

// Sums of 16-bit numbers of similar magnitude are exact.
std::vector<Case> add_cases(const DTypes& types) {
  const Options options{{"rows", "250"}, {"cols", "300"}};
  return {
      {"moderate", options, {}, {0, 0, 0, 1.1, 1.1}},
      {"unlike sizes", options, {{"A", times(0x1p-10)}, {"B", times(4096)}}, {2.1, 2.1, 2.1, 0, 0}},
      {"tiny",
       options,
       {{"A", times(tiny(types))}, {"B", times(tiny(types))}},
       {1.1, 0, 1.1, 1.1, 1.1}}};
}

Outputs silu_mul(const Given& given) {
  const std::size_t cols = given.dim("cols");
  const bool packed = given.has("x");
  const auto &gates = given[packed ? "x" : "gate"], &ups = given[packed ? "x" : "up"];
  return each(given.dim("rows") * cols, [&](std::size_t i) {
    const std::size_t at = packed ? i / cols * 2 * cols + i % cols : i;
    return (silu(gates[at]) * Float(ups[packed ? at + cols : at])).value();
  });
}

std::vector<Case> silu_mul_cases(const DTypes& types) {
  const auto with = [](const char* what, const Contents& gate, const Contents& up,
                       const Factors& factors) {
    return Case{what, {{"rows", "100"}, {"cols", "200"}}, {{"gate", gate}, {"up", up}}, factors};
  };
  return {{"packed",
           {{"rows", "100"}, {"cols", "200"}, {"layout", "packed"}},
           {{"x", times(8)}},
           {1.2, 1.4, 1.5, 1.1, 1.1}},
          with("positive gates", between(8, 30), times(1), {1.2, 1.3, 1.5, 1.1, 1.1}),
          with("small gates", times(1), times(1), {1.3, 1.3, 1.4, 1.1, 1.1}),
          with("negative gates", between(-60, -8), times(1), {1.1, 1.2, 1.2, 0, 0}),
          with("tiny results", between(-88, -80), times(8), {1.5, 1.5, 1.5, 0, 0}),
          with("tiny gates", times(tiny(types)), times(64), {1.2, 1.4, 1.2, 1.1, 1.2}),
          with("tiny", between(8, 30), times(tiny(types)), {1.2, 1.3, 1.2, 1.1, 1.2})};
}

Outputs gelu(const Given& given) {
  const auto& x = given["x"];
  const bool erf = given.problem.attribute("form", "tanh") == "erf";
  return each(x.size(),
              [&](std::size_t i) { return (erf ? gelu_erf(x[i]) : gelu_tanh(x[i])).value(); });
}

std::vector<Case> gelu_cases(const DTypes& types) {
  const auto with = [](const char* what, const char* form, const Contents& x,
                       const Factors& factors) {
    return Case{what, {{"rows", "100"}, {"cols", "150"}, {"form", form}}, {{"x", x}}, factors};
  };
  return {with("tanh, small", "tanh", times(1), {1.3, 1.4, 1.4, 1.1, 1.1}),
          with("tanh, positive", "tanh", between(4, 20), {1.2, 1.3, 1.3, 0, 0}),
          with("tanh, negative", "tanh", between(-5, -1), {1.8, 2.3, 2.3, 1.1, 1.1}),
          with("tanh, tiny results", "tanh", between(-12, -9.5), {2.7, 2.7, 2.7, 0, 0}),
          with("tanh, tiny", "tanh", times(tiny(types)), {1.1, 1.2, 1.1, 1.1, 1.1}),
          with("erf, small", "erf", times(1), {3.4, 3.4, 3.6, 1.1, 1.1}),
          with("erf, positive", "erf", between(2, 20), {2.3, 2.3, 2.9, 0, 0}),
          with("erf, negative", "erf", between(-8, -1), {1.3, 1.7, 1.9, 1.1, 1.1}),
          with("erf, tiny results", "erf", between(-14, -12), {7, 7, 7, 0, 0})};
}

Outputs rope(const Given& given) {
  const std::size_t dim = given.dim("dim"), heads = given.dim("heads");
  const bool half = given.problem.attribute("style", "interleaved") == "half";
  const auto &x = given["x"], &positions = given["positions"], &table = given["table"];
  std::vector<float> out(x.size());
  for (std::size_t head = 0; head < x.size() / dim; ++head) {
    const auto position = static_cast<std::size_t>(positions[head / heads]);
    for (std::size_t pair = 0; pair < dim / 2; ++pair) {
      const std::size_t first = head * dim + (half ? pair : 2 * pair);
      const std::size_t second = half ? first + dim / 2 : first + 1;
      const Float cosine = table[position * dim + 2 * pair];
      const Float sine = table[position * dim + 2 * pair + 1];
      const Float a = x[first], b = x[second];
      out[first] = multiply_add(a, cosine, -(b * sine)).value();
      out[second] = multiply_add(a, sine, b * cosine).value();
    }
  }
  return {out};
}

std::vector<Case> rope_cases(const DTypes& types) {
  const auto with = [](const char* what, const char* style, const char* place, double size,
                       const Factors& factors) {
    const auto table = [](double, std::size_t index) {
      const double angle = std::floor(static_cast<double>(index) / 2);
      return index % 2 == 0 ? std::cos(angle) : std::sin(angle);
    };
    return Case{what,
                {{"tokens", "50"},
                 {"heads", "10"},
                 {"dim", "80"},
                 {"positions", "64"},
                 {"style", style},
                 {"place", place}},
                {{"x", times(size)}, {"positions", index_below(64)}, {"table", table}},
                factors};
  };
  return {with("interleaved", "interleaved", "out", 1, {1.7, 0, 0, 1.1, 1.1}),
          with("half, in place", "half", "in", 1, {1.8, 0, 0, 1.1, 1.1}),
          with("tiny", "half", "out", tiny(types), {2.1, 0, 0, 1.1, 2.2})};
}

/// Converts an element to another type. If it is rounded, it passes through f32.
float copied(const Problem& problem, float value) {
  const bool shorter = bits_of(problem.out_dtype) < bits_of(problem.dtype);
  return shorter ? Float(value).value() : value;
}

Outputs kv_update(const Given& given) {
  const std::size_t tokens = given.dim("tokens"), heads = given.dim("kv_heads");
  const std::size_t capacity = given.dim("capacity");
  const auto position = static_cast<std::size_t>(given["position"][0]);
  const std::string page = given.problem.attribute("page_size", "none");
  const std::size_t run = page == "none" ? capacity : std::stoul(page);  // slots of a head
  Outputs caches;
  for (const auto& [fresh, old] : {std::pair{"K", "K_cache"}, {"V", "V_cache"}}) {
    std::vector<float>& cache = caches.emplace_back(given[old]);
    const std::size_t dim = given[fresh].size() / tokens / heads;
    for (std::size_t i = 0; i < tokens * heads * dim; ++i) {
      const std::size_t token = i / dim / heads, head = i / dim % heads;
      const std::size_t slot = position + token;
      const auto number =
          page == "none" ? 0 : static_cast<std::size_t>(given["block_table"][slot / run]);
      cache[((number * heads + head) * run + slot % run) * dim + i % dim] =
          copied(given.problem, given[fresh][i]);
    }
  }
  return caches;
}

std::vector<Case> kv_update_cases(const DTypes& types) {
  const auto with = [](const char* what, double size, const Factors& factors,
                       const char* page = "none") {
    return Case{what,
                {{"tokens", "40"},
                 {"kv_heads", "5"},
                 {"dim", "60"},
                 {"capacity", "60"},
                 {"page_size", page}},
                {{"K", times(size)},
                 {"V", times(size)},
                 {"position", [](double, std::size_t) { return 13.0; }},
                 {"block_table", pages_of(60, page)}},
                factors};
  };
  std::vector<Case> cases{with("moderate", 1, {0, 0, 0, 1.1, 1.1}),
                          with("tiny", tiny(types), {0, 0, 0, 1.1, 1.1})};
  for (const char* page : {"16", "32", "64", "128", "256"}) {
    cases.push_back(with("pages", 1, {0, 0, 0, 1.1, 1.1}, page));
  }
  cases.push_back(cases.front());
  cases.back().what = "other values";
  cases.back().options.emplace_back("v_dim", "70");
  return cases;
}

Outputs attention_merge(const Given& given) {
  const std::size_t parts = given.dim("parts"), dim = given.dim("dim");
  const auto &outs = given["outs"], &lses = given["lses"];
  const std::size_t rows = lses.size() / parts;
  std::vector<float> out(rows * dim), lse(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    const auto of_part = [&](std::size_t p) { return Float(lses[p * rows + row]); };
    // Half the average of the parts so far, as with ITEMS=1.
    Float most = of_part(0), total(0);
    std::vector<Float> half(dim);
    for (std::size_t p = 0; p < parts; ++p) {
      const Float before = most;
      most = std::max(most, of_part(p));
      const Float kept = p == 0 ? Float(0) : total * exp(before - most);
      const Float power = exp(of_part(p) - most);
      total = kept + power;
      const Float factor = Float(0.5F) / total;
      const Float of_others = kept * (Float(2) * factor), weight = power * factor;
      for (std::size_t d = 0; d < dim; ++d) {
        const Float x(outs[(p * rows + row) * dim + d]);
        half[d] = multiply_add(weight, x, half[d] * of_others);
      }
    }
    for (std::size_t d = 0; d < dim; ++d) out[row * dim + d] = (half[d] * Float(2)).value();
    lse[row] = (most + Float(std::log(total.value()))).value();
  }
  if (given.problem.attribute("lse", "none") == "none") return {out};
  return {out, lse};
}

std::vector<Case> attention_merge_cases(const DTypes& types) {
  const auto with = [](const char* what, const char* parts, const Contents& outs, double spread,
                       const Factors& factors, const char* lse = "none") {
    return Case{what,
                {{"parts", parts}, {"tokens", "80"}, {"heads", "5"}, {"dim", "24"}, {"lse", lse}},
                {{"outs", outs}, {"lses", times(spread)}},
                factors};
  };
  return {with("moderate", "8", times(1), 8, {13.5, 12.1, 12.3, 1.1, 1.1}),
          with("far apart", "3", times(1), 200, {5.1, 5.1, 5.1, 1.1, 1.1}),
          with("many parts", "100", between(0.25, 0.5), 4, {61, 58.5, 61, 1.5, 1.1}),
          with("logarithms", "8", times(1), 60, {14.7, 14.7, 14.7, 14.7, 14.7}, "stored"),
          with("tiny", "4", times(tiny(types)), 4, {8.9, 6.3, 8.9, 1.1, 9})};
}

Outputs embedding(const Given& given) {
  const std::size_t dim = given.dim("dim");
  const auto &ids = given["ids"], &table = given["table"];
  return each(ids.size() * dim, [&](std::size_t i) {
    return copied(given.problem, table[static_cast<std::size_t>(ids[i / dim]) * dim + i % dim]);
  });
}

std::vector<Case> embedding_cases(const DTypes& types) {
  const auto with = [](const char* what, double size, const Factors& factors) {
    return Case{what,
                {{"tokens", "100"}, {"vocabulary", "70"}, {"dim", "300"}},
                {{"ids", index_below(70)}, {"table", times(size)}},
                factors};
  };
  return {with("moderate", 1, {0, 0, 0, 1.1, 1.1}), with("tiny", tiny(types), {0, 0, 0, 1.1, 1.1})};
}

Outputs gather_columns(const Given& given) {
  const std::size_t cols = given.dim("cols"), width = given.dim("width");
  const auto &ids = given["ids"], &x = given["x"];
  return each(given.dim("rows") * cols, [&](std::size_t i) {
    return copied(given.problem, x[i / cols * width + static_cast<std::size_t>(ids[i % cols])]);
  });
}

std::vector<Case> gather_columns_cases(const DTypes& types) {
  const auto with = [](const char* what, double size) {
    return Case{what,
                {{"rows", "100"}, {"width", "70"}, {"cols", "300"}},
                {{"ids", index_below(70)}, {"x", times(size)}},
                {0, 0, 0, 1.1, 1.1}};
  };
  return {with("moderate", 1), with("tiny", tiny(types))};
}

Outputs argmax(const Given& given) {
  const std::size_t cols = given.dim("cols");
  const auto& x = given["x"];
  return each(given.dim("rows"), [&](std::size_t row) {
    const auto first = x.begin() + static_cast<std::ptrdiff_t>(row * cols);
    const auto last = first + static_cast<std::ptrdiff_t>(cols);
    return static_cast<float>(std::max_element(first, last) - first);
  });
}

std::vector<Case> argmax_cases(const DTypes&) {
  return {{"some columns", {{"rows", "30000"}, {"cols", "13"}}, {}, {}},
          {"ties",
           {{"rows", "90000"}, {"cols", "3"}},
           {{"x", [](double draw, std::size_t) { return std::round(3 * draw); }}},
           {}}};
}

}  // namespace

Float silu(Float x) {
  x = at_least(-80, x);
  return x / (Float(1) + exp(-x));
}

Float gelu_tanh(Float x) {
  x = at_least(-9.7F, x);
  const Float u = Float(0.79788456F) * multiply_add(Float(0.044715F) * x * x, x, x);
  return x / (Float(1) + exp(Float(-2) * u));
}

// Computed by the C library, or as x (1 - h) with h = erfc(|x| / sqrt(2)) / 2 with a relative error
// of 1.2e-7. Source: Press, Teukolsky, Vetterling, Flannery, "Numerical Recipes in C", section 6.2,
// erfcc.
Float gelu_erf(Float x) {
  if (arithmetic().sums == Arithmetic::Sums::straight) {
    return Float(0.5F) * x * erfc(-x * Float(0.70710678F));
  }
  x = at_least(-12.5F, x);
  const Float z = (x < Float(0) ? -x : x) * Float(0.70710678F);
  const Float t = Float(1) / multiply_add(Float(0.5F), z, Float(1));
  Float p = 0.17087277F;
  for (const float c : {-0.82215223F, 1.48851587F, -1.13520398F, 0.27886807F, -0.18628806F,
                        0.09678418F, 0.37409196F, 1.00002368F, -1.26551223F}) {
    p = multiply_add(p, t, c);
  }
  const Float h = Float(0.5F) * t * exp(multiply_add(-z, z, p));
  return x * (x < Float(0) ? h : Float(1) - h);
}

std::vector<Emulation> elementwise_emulations() {
  return {{"add", add_cases, add},
          {"silu_mul", silu_mul_cases, silu_mul},
          {"gelu", gelu_cases, gelu},
          {"rope", rope_cases, rope},
          {"kv_update", kv_update_cases, kv_update, true},
          {"attention_merge", attention_merge_cases, attention_merge},
          {"embedding", embedding_cases, embedding, true},
          {"gather_columns", gather_columns_cases, gather_columns, true},
          {"argmax", argmax_cases, argmax, true}};
}

}  // namespace greta::test::bounds
