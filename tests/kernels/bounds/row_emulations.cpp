#include <algorithm>
#include <array>
#include <limits>

#include "tests/kernels/bounds/emulation.hpp"
#include "tests/layers.hpp"

namespace greta::test::bounds {
namespace {

using Options = std::vector<std::pair<std::string, std::string>>;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float lowest = std::numeric_limits<float>::lowest();
constexpr std::size_t group = 4;  // elements per thread

bool straight() {
  return arithmetic().sums == Arithmetic::Sums::straight;
}

/// Returns contents far from zero, also relative to the precision of f16 and bf16.
Contents around(double mean) {
  return [mean](double draw, std::size_t) { return mean + mean / 16 * draw; };
}

// ------------------------------------------------------------------------------------ softmax

/// e^(a - b), a <= b.
Float decay(Float a, Float b) {
  return a == b ? Float(1) : exp(a - b);
}

Float larger(Float a, Float b) {
  return a < b ? b : a;
}

/// The maximum of some elements, and the sum of e^(element - maximum).
struct Shares {
  Float largest = lowest, sum = 0;
};

Shares merge(const Shares& a, const Shares& b) {
  const Shares &more = a.largest < b.largest ? b : a, &less = a.largest < b.largest ? a : b;
  return {more.largest, more.sum + less.sum * decay(less.largest, more.largest)};
}

void softmax_of(std::vector<Float>& row) {
  std::vector<Float> largest;  // per group; straight: of all
  const std::size_t size = straight() ? row.size() : group;
  for (std::size_t i = 0; i < row.size(); i += size) {
    Float& most = largest.emplace_back(lowest);
    for (std::size_t j = i; j < std::min(i + size, row.size()); ++j) most = larger(most, row[j]);
  }
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = decay(row[i], largest[i / size]);
  if (straight()) {
    const Float all = sum(row.size(), [&](std::size_t i) { return row[i]; });
    for (Float& x : row) x = x / all;
    return;
  }
  const Shares total = accumulate(
      largest.size(), Shares{},
      [&](const Shares& s, std::size_t i) {
        Shares own{largest[i], 0};
        for (std::size_t j = i * size; j < std::min((i + 1) * size, row.size()); ++j) {
          own.sum = own.sum + row[j];
        }
        return merge(s, own);
      },
      merge);
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] = row[i] * (decay(largest[i / size], total.largest) * (Float(1) / total.sum));
  }
}

Outputs softmax(const Given& given) {
  const std::size_t rows = given.dim("rows"), cols = given.dim("cols");
  const std::string mask = given.problem.attribute("mask", "none");
  const float scale = given.number("scale", "1");
  const float *const elements = given.elements("X"), *const masks = given.elements("mask");
  std::vector<float> out(rows * cols);
  for (std::size_t row = 0; row < rows; ++row) {
    std::vector<Float> x(cols);
    for (std::size_t col = 0; col < cols; ++col) {
      const Float value = elements[row * cols + col];
      x[col] = scale == 1 ? value : value * Float(scale);
      if (mask == "additive") {
        x[col] = multiply_add(value, Float(scale), masks[row * cols + col]);
      }
      if (mask == "causal" && col > row % cols) x[col] = -infinity;
    }
    softmax_of(x);
    for (std::size_t col = 0; col < cols; ++col) out[row * cols + col] = x[col].value();
  }
  return {out};
}

std::vector<Case> softmax_cases(const DTypes& types) {
  const auto with = [](const char* what, const char* rows, const char* cols, Options more,
                       const Contents& x, const Factors& factors) {
    more.insert(more.end(), {{"rows", rows}, {"cols", cols}});
    return Case{what, more, {{"X", x}, {"mask", times(64)}}, factors};
  };
  const Contents infinite = [](double draw, std::size_t) { return draw > 0.4 ? infinity : draw; };
  std::vector<Case> cases{
      with("equal elements", "20", "700", {}, times(0), {25, 25, 25, 0, 0}),
      with("moderate", "20", "700", {}, times(1), {16, 15, 15, 1.1, 1.1}),
      with("short rows", "2000", "3", {{"mask", "causal"}}, times(1), {2.9, 2.8, 2.9, 1.1, 1.1}),
      with("far apart", "40", "300", {}, times(100), {1.1, 1.1, 1.1, 1.1, 1.1}),
      with("scaled", "40", "200", {{"scale", "-1.7"}}, times(64), {1.1, 1.1, 1.1, 1.1, 1.1}),
      with("large but near", "40", "200", {{"scale", "0.3"}}, around(1000), {5, 5, 4.3, 1.1, 1.1}),
      with("masked", "40", "200", {{"mask", "additive"}}, times(64), {1.1, 1.1, 1.1, 1.1, 1.1}),
      {"masks of one size",
       {{"mask", "additive"}, {"rows", "40"}, {"cols", "200"}},
       {{"mask", between(1000, 1002)}},
       {7.8, 8.2, 8.5, 1.6, 1.2}},
      with("infinities", "40", "200", {}, infinite, {1.8, 1.8, 1.8, 1.2, 1.2})};
  if (types.in == types.out) {
    cases.push_back(
        with("in place", "40", "200", {{"place", "in"}}, times(8), {7.5, 0, 0, 1.1, 1.1}));
  }
  return cases;
}

// -------------------------------------------------------------------------------------- norms

/// The rows of a norm: the elements, which `normalise` normalises row by row, and the weights of
/// columns.
template <typename Normalise>
Outputs norm(const Given& given, const Normalise& normalise) {
  const std::size_t rows = given.dim("rows"), cols = given.dim("cols");
  const float *const elements = given.elements("X"), *const residual = given.elements("residual");
  Outputs outputs(residual != nullptr ? 2 : 1);
  for (std::size_t row = 0; row < rows; ++row) {
    std::vector<Float> x(cols);
    for (std::size_t col = 0; col < cols; ++col) {
      x[col] = elements[row * cols + col];
      if (residual == nullptr) continue;
      x[col] = x[col] + Float(residual[row * cols + col]);
      outputs[0].push_back(x[col].value());
    }
    normalise(x);
    for (const Float y : x) outputs.back().push_back(y.value());
  }
  return outputs;
}

struct Moments {
  Float count = 0, mean = 0, squares = 0;
};

// Chan, Golub, LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample
// Variances".
Moments merge(const Moments& a, const Moments& b) {
  if (a.count == Float(0)) return b;
  const Float count = a.count + b.count, share = b.count / count, apart = b.mean - a.mean;
  return {count, multiply_add(apart, share, a.mean),
          a.squares + b.squares + apart * apart * (a.count * share)};
}

Moments moments_of(const std::vector<Float>& x, std::size_t first, std::size_t last) {
  Moments m{Float(static_cast<float>(last - first)), 0, 0};
  m.mean = sum(last - first, [&](std::size_t i) { return x[first + i]; }) / m.count;
  const auto apart = [&](std::size_t i) { return x[first + i] - m.mean; };
  m.squares = dot(last - first, apart, apart);
  return m;
}

Outputs rmsnorm(const Given& given) {
  return norm(given, [&](std::vector<Float>& x) {
    over_root(given, x);
    weigh(given, "weight", x);
  });
}

Outputs layernorm(const Given& given) {
  return norm(given, [&](std::vector<Float>& x) { centre(given, x); });
}

Outputs layernorm_rmsnorm(const Given& given) {
  return norm(given, [&](std::vector<Float>& x) {
    centre(given, x);
    over_root(given, x);
    weigh(given, "gain", x);
  });
}

Case norm_case(const char* what, const char* rows, const char* cols, Options more,
               std::map<std::string, Contents> contents, const Factors& factors) {
  more.insert(more.end(), {{"rows", rows}, {"cols", cols}});
  return {what, more, std::move(contents), factors};
}

const Options plain{{"affine", "none"}}, small{{"affine", "none"}, {"epsilon", "1e-12"}};

std::vector<Case> rms_cases(const DTypes& types, const std::array<Factors, 5>& factors) {
  const double t = tiny(types);
  // Sums that f32 must round, for any type of their terms.
  const std::map<std::string, Contents> x{{"X", times(64)}, {"residual", times(0x1p-12)}};
  return {norm_case("short rows", "3000", "5", plain, x, factors[0]),
          norm_case("one column", "5000", "1", plain, x, factors[1]),
          norm_case("moderate", "100", "300", {}, x, factors[2]),
          norm_case("long rows", "4", "9000", plain, x, factors[3]),
          norm_case("tiny", "100", "100", small, {{"X", times(t)}, {"residual", times(t)}},
                    factors[4])};
}

std::vector<Case> rmsnorm_cases(const DTypes& types) {
  return rms_cases(types, {{{1.8, 1.9, 1.9, 1.1, 1.1},
                            {1.5, 1.6, 1.6, 1.1, 1.2},
                            {6.5, 4.9, 4.5, 1.1, 1.1},
                            {3.8, 1.4, 2.4, 1.1, 1.1},
                            {1.1, 6.4, 1.1, 1.1, 1.1}}});
}

std::vector<Case> add_rmsnorm_cases(const DTypes& types) {
  return rms_cases(types, {{{2.2, 2.1, 2.1, 1.1, 1.1},
                            {2.2, 2.1, 2.1, 1.1, 1.2},
                            {5.3, 4.6, 4.8, 1.1, 1.1},
                            {3.6, 2.9, 2.1, 1.1, 1.1},
                            {1.6, 0, 1.6, 1.1, 1.7}}});
}

std::vector<Case> centred_cases(const DTypes& types, const std::array<Factors, 8>& factors) {
  // One element is far from all others, which are equal, so the distance is squared.
  const Contents spike = [](double draw, std::size_t i) { return i % 300 == 7 ? 512 : draw / 64; };
  return {norm_case("short rows", "3000", "5", plain, {}, factors[0]),
          norm_case("weighted", "60", "300", {{"affine", "weight"}}, {}, factors[1]),
          norm_case("biased", "60", "300", {}, {{"bias", times(64)}}, factors[2]),
          norm_case("moderate", "60", "300", plain, {}, factors[7]),
          norm_case("long rows", "3", "9000", plain, {}, factors[3]),
          norm_case("far from zero", "60", "300", plain, {{"X", around(1000)}}, factors[4]),
          norm_case("spikes", "60", "300", plain, {{"X", spike}}, factors[5]),
          norm_case("tiny", "100", "100", small, {{"X", times(tiny(types))}}, factors[6])};
}

std::vector<Case> layernorm_cases(const DTypes& types) {
  return centred_cases(types, {{{5.3, 5.3, 5.3, 1.1, 1.1},
                                {8.2, 17, 18, 1.1, 1.1},
                                {2.4, 2.4, 2.4, 1.1, 1.1},
                                {5.4, 22, 16, 1.1, 1.1},
                                {9.2, 23, 7.2, 1.1, 1.1},
                                {16, 16, 16, 1.6, 1.5},
                                {16, 24, 16, 1.1, 16},
                                {8.2, 18, 19, 1.1, 1.1}}});
}

std::vector<Case> layernorm_rmsnorm_cases(const DTypes& types) {
  return centred_cases(types, {{{7.3, 6.8, 6.5, 1.1, 1.1},
                                {8.2, 27, 42, 1.1, 1.1},
                                {5.1, 7.3, 4.4, 1.1, 1.1},
                                {5.4, 27, 16, 1.2, 1.1},
                                {9.2, 45, 28, 1.1, 1.1},
                                {37, 37, 37, 1.6, 1.5},
                                {16, 34, 16, 1.1, 16},
                                {8.2, 27, 53, 1.1, 1.1}}});
}

}  // namespace

void centre(const Given& given, std::vector<Float>& x) {
  const Float first = x.front();
  for (Float& value : x) value = value - first;
  const std::size_t size = straight() ? x.size() : group;
  const Moments all =
      accumulate((x.size() + size - 1) / size, Moments{},
                 [&](const Moments& m, std::size_t i) {
                   return merge(m, moments_of(x, i * size, std::min((i + 1) * size, x.size())));
                 },
                 [](const Moments& a, const Moments& b) { return merge(a, b); });
  const Float factor =
      inverse_root(all.squares / all.count + Float(given.number("epsilon", "1e-05")));
  for (Float& value : x) value = (value - all.mean) * factor;
  weigh(given, "weight", x);
  for (std::size_t i = 0; given.has("bias") && i < x.size(); ++i) {
    x[i] = x[i] + Float(given["bias"][i]);
  }
}

void over_root(const Given& given, std::vector<Float>& x) {
  const auto at = [&](std::size_t i) { return x[i]; };
  const Float mean = dot(x.size(), at, at) / Float(static_cast<float>(x.size()));
  const Float factor = inverse_root(mean + Float(given.number("epsilon", "1e-05")));
  for (Float& y : x) y = y * factor;
}

void weigh(const Given& given, const char* name, std::vector<Float>& x) {
  const float* const weights = given.elements(name);
  for (std::size_t i = 0; weights != nullptr && i < x.size(); ++i) x[i] = x[i] * Float(weights[i]);
}

std::vector<Emulation> row_emulations() {
  return {{"softmax", softmax_cases, softmax},
          {"layernorm", layernorm_cases, layernorm},
          {"rmsnorm", rmsnorm_cases, rmsnorm},
          {"add_rmsnorm", add_rmsnorm_cases, rmsnorm},
          {"layernorm_rmsnorm", layernorm_rmsnorm_cases, layernorm_rmsnorm}};
}

}  // namespace greta::test::bounds
