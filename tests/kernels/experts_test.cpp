// Protects: routing of tokens to experts on every device: ties, NaN and infinities, biases; places
// of rows, blocks, capacities and ids of no expert; the whole way, whose result is that of each
// token's experts one by one; and the operation for few tokens, which must not read other experts.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/model/problem_rules.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/filled.hpp"
#include "tests/kernels/plan_runner.hpp"

namespace greta::test::experts_test {
namespace {

const double infinity = std::numeric_limits<double>::infinity();
const double nan = std::nan("");

Problem problem_of(const char* key) {
  return catalog().read(key).value();
}

struct RoutedRow {
  std::vector<double> logits;
  std::vector<double> ids, weights;
};

/// Softmax of 8 experts, 3 of them; weights are renormalised.
const std::vector<RoutedRow> softmax_rows{
    {{1, 3, 3, 2, 3, 0, -1, 3}, {1, 2, 4}, {1.0 / 3, 1.0 / 3, 1.0 / 3}},
    {{nan, 0, nan, 0, nan, nan, nan, nan}, {1, 3, 0}, {0.5, 0.5, 0}},
    {{nan, nan, nan, nan, nan, nan, nan, nan}, {0, 1, 2}, {0, 0, 0}},
    {{-infinity, nan, 5, -infinity, nan, nan, nan, nan}, {2, 0, 1}, {1, 0, 0}},
    {{1, infinity, nan, infinity, 1, 1, 1, 1}, {1, 3, 0}, {0.5, 0.5, 0}},
    {{-0.0, 0.0, -0.0, 0.0, -1, -1, -1, -1}, {0, 1, 2}, {1.0 / 3, 1.0 / 3, 1.0 / 3}},
    {{-30000, -30000, -40000, -50000, -50000, -50000, -50000, -50000}, {0, 1, 2}, {0.5, 0.5, 0}},
    {{0, 0x1p-24, 0, -1, 0x1p-24, 0, 0, 0}, {1, 4, 0}, {1.0 / 3, 1.0 / 3, 1.0 / 3}},
};

/// The same of sigmoids that are selected by score + bias and not renormalised.
const std::vector<double> biases{0, 0, 0, 0, 2, -2, infinity, nan};
const std::vector<RoutedRow> sigmoid_rows{
    {{0, 0, 0, 0, 0, 0, 0, 0}, {6, 4, 0}, {0.5, 0.5, 0.5}},
    {{nan, infinity, 1, 1, -infinity, infinity, nan, 0}, {6, 4, 1}, {0, 0, 1}},
    {{-1, -2, -3, -4, -5, 8, -6, infinity},
     {6, 4, 0},
     {1 / (1 + std::exp(6)), 1 / (1 + std::exp(5)), 1 / (1 + std::exp(1))}},
};

std::vector<double> joined(const std::vector<RoutedRow>& rows,
                           std::vector<double> RoutedRow::*member) {
  std::vector<double> all;
  for (const RoutedRow& row : rows)
    all.insert(all.end(), (row.*member).begin(), (row.*member).end());
  return all;
}

TEST(RouteReference, KnowsExpertsAndWeightsAndAcceptsNothingElse) {
  const Operation& route = built_in("route");
  const Problem problem = problem_of("route dtype=f32 out=f32 tokens=8 experts=8 top_k=3");
  const auto specs = route.tensors(problem);
  const auto reference = route.reference(
      problem, {test::filled(specs[0], joined(softmax_rows, &RoutedRow::logits))}, 1);
  const auto ids = joined(softmax_rows, &RoutedRow::ids);
  const auto weights = joined(softmax_rows, &RoutedRow::weights);
  const auto passes = [&](const std::vector<double>& i, const std::vector<double>& w) {
    return reference->check({test::filled(specs[1], i), test::filled(specs[2], w)}).passed;
  };
  EXPECT_TRUE(passes(ids, weights));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    auto wrong = ids;
    wrong[i] = wrong[i] < 7 ? wrong[i] + 1 : 0;
    EXPECT_FALSE(passes(wrong, weights)) << "id " << i;
    auto off = weights;
    off[i] += 0x1p-18;
    EXPECT_FALSE(passes(ids, off)) << "weight " << i;
  }
}

// Scores of 1 - 2^-24 and 1 are equal within a kernel's error: with a bias either may come first.
TEST(RouteReference, AcceptsEitherOrderWhereScoresAreTooCloseAndTheWeightsOfWhatIsPicked) {
  const Operation& route = built_in("route");
  const Problem problem = problem_of(
      "route dtype=f32 out=f32 score=sigmoid renormalise=no bias=expert tokens=1 experts=3 "
      "top_k=1");
  const auto specs = route.tensors(problem);
  const auto reference = route.reference(
      problem, {test::filled(specs[0], {16.7, 16.6, 3}), test::filled(specs[1], {0, 0, 0})}, 1);
  const auto passes = [&](double id, double weight) {
    return reference->check({test::filled(specs[2], {id}), test::filled(specs[3], {weight})})
        .passed;
  };
  EXPECT_TRUE(passes(0, 1));
  EXPECT_TRUE(passes(1, 1));
  EXPECT_FALSE(passes(1, 0.9999));
  EXPECT_FALSE(passes(2, 1 / (1 + std::exp(-3))));
}

class Experts : public ::testing::TestWithParam<std::string> {
 protected:
  /// Runs a configuration on inputs and returns the outputs.
  std::vector<HostTensor> run(const Problem& problem, const Config& config,
                              const std::vector<HostTensor>& inputs) const {
    const Operation& operation = built_in(problem.op.c_str());
    const auto plan = operation.plan(problem, info_, config).value();
    auto ran = test::run_plan(device_, plan, operation.tensors(problem), inputs, 2).value();
    EXPECT_EQ(ran.overrun, "");
    return std::move(ran.outputs);
  }

  std::vector<HostTensor> run_default(const Problem& problem,
                                      const std::vector<HostTensor>& inputs) const {
    return run(problem, built_in(problem.op.c_str()).default_config(problem, info_), inputs);
  }

  Config parse(const Problem& problem, const char* text) const {
    return built_in(problem.op.c_str()).space(problem, info_).parse(text).value();
  }

  void expect_rows(const char* key, const std::vector<RoutedRow>& rows,
                   const std::vector<double>& bias) const {
    const Problem problem = problem_of(key);
    const auto specs = built_in("route").tensors(problem);
    std::vector<HostTensor> inputs{test::filled(specs[0], joined(rows, &RoutedRow::logits))};
    if (!bias.empty()) inputs.push_back(test::filled(specs[1], bias));
    const auto ids = joined(rows, &RoutedRow::ids), weights = joined(rows, &RoutedRow::weights);
    for (const char* config : {"lanes THREADS=64 LANES=1 VEC=1", "lanes THREADS=64 LANES=4 VEC=2",
                               "lanes THREADS=128 LANES=8 VEC=1"}) {
      const auto outputs = run(problem, parse(problem, config), inputs);
      for (std::size_t i = 0; i < ids.size(); ++i) {
        EXPECT_EQ(outputs[0].at(i), ids[i]) << config << ", pick " << i;
        EXPECT_NEAR(outputs[1].at(i), weights[i], 1e-6) << config << ", pick " << i;
      }
    }
  }

  Device& device_ = test::device(GetParam());
  const DeviceInfo& info_ = device_.info();
};

TEST_P(Experts, TiesNanAndInfinities) {
  for (const char* in : {"f32", "f16"}) {
    const std::string key =
        std::string("route dtype=") + in + " out=f32 tokens=8 experts=8 top_k=3";
    expect_rows(key.c_str(), softmax_rows, {});
  }
}

TEST_P(Experts, BiasesSelectAndScoresWeigh) {
  expect_rows(
      "route dtype=f32 out=f32 score=sigmoid renormalise=no bias=expert tokens=3 experts=8 top_k=3",
      sigmoid_rows, biases);
}

// Without a bias, the group of the largest logit wins; with one that of the largest sum of two.
TEST_P(Experts, GroupsAreComparedByTheirBestExperts) {
  const std::vector<double> logits{5, -9, -9, 4, 4, 4, 3, 3};
  expect_rows("route dtype=f32 out=f32 groups=\"4\" top_groups=\"2\" tokens=1 experts=8 top_k=3",
              {{logits, {0, 3, 1}, {1 / (1 + std::exp(-1)), 1 / (1 + std::exp(1)), 0}}}, {});
  const double high = 1 / (1 + std::exp(-4)), low = 1 / (1 + std::exp(-3));
  expect_rows(
      "route dtype=f32 out=f32 score=sigmoid renormalise=no bias=expert groups=\"4\" "
      "top_groups=\"2\" tokens=1 experts=8 top_k=3",
      {{logits, {4, 5, 6}, {high, high, low}}}, {0, 0, 0, 0, 0, 0, 0, 0});
}

// A group of one expert has no sum of two, but one group is all experts.
TEST_P(Experts, OneExpertHasAllTokens) {
  const Problem problem =
      problem_of("route dtype=f32 out=f32 bias=expert tokens=2 experts=1 top_k=1");
  const auto specs = built_in("route").tensors(problem);
  const auto outputs =
      run_default(problem, {test::filled(specs[0], {3, -5}), test::filled(specs[1], {0.5})});
  for (const std::size_t token : {0, 1}) {
    EXPECT_EQ(outputs[0].at(token), 0);
    EXPECT_EQ(outputs[1].at(token), 1);
  }
}

/// Ids of 5 tokens and 4 experts, of which 4 and -1 do not exist.
const std::vector<double> some_ids{3, 0, 0, 4, 3, 1, -1, 3, 0, 3};

TEST_P(Experts, PlacesFollowTheOrderOfTokens) {
  struct Placed {
    const char* key;
    std::vector<double> sources, groups, places;  ///< sources: a token, or -1 (zeros), or NaN
  };
  const auto z = -1.0;
  std::vector<double> blocks(70, nan);
  for (int i = 0; i < 48; ++i) blocks[static_cast<std::size_t>(i)] = z;
  blocks[0] = 0, blocks[1] = 1, blocks[2] = 4, blocks[16] = 2;
  blocks[32] = 0, blocks[33] = 2, blocks[34] = 3, blocks[35] = 4;
  const std::vector<Placed> all{
      {"permute dtype=f32 out=f32 tokens=5 experts=4 top_k=2 dim=6",
       {0, 1, 4, 2, 0, 2, 3, 4, nan, nan},
       {3, 4, 4, 8},
       {4, 0, 1, -1, 5, 3, -1, 6, 2, 7}},
      {"permute dtype=f32 out=f32 block=\"16\" tokens=5 experts=4 top_k=2 dim=6",
       blocks,
       {16, 32, 32, 48},
       {32, 0, 1, -1, 33, 16, -1, 34, 2, 35}},
      {"permute dtype=f32 out=f32 tokens=5 experts=4 top_k=2 dim=6 capacity=3",
       {0, 1, 4, 2, nan, nan, nan, nan, nan, 0, 2, 3},
       {3, 1, 0, 3},
       {9, 0, 1, -1, 10, 3, -1, 11, 2, -1}}};
  std::vector<double> x;
  for (int i = 0; i < 30; ++i) x.push_back(i / 6 * 10 + i % 6);
  for (const Placed& placed : all) {
    SCOPED_TRACE(placed.key);
    const Problem problem = problem_of(placed.key);
    const auto specs = built_in("permute").tensors(problem);
    for (const char* config :
         {"fused THREADS=64 VEC=2 ITEMS=2", "sorted THREADS=64 VEC=1 ITEMS=1"}) {
      const auto outputs = run(problem, parse(problem, config),
                               {test::filled(specs[0], x), test::filled(specs[1], some_ids)});
      for (std::size_t i = 0; i < outputs[0].spec.elements() && i / 6 < placed.sources.size();
           ++i) {
        const double source = placed.sources[i / 6], got = outputs[0].at(i);
        const double want = source < 0 ? 0 : source * 10 + static_cast<double>(i % 6);
        EXPECT_TRUE(std::isnan(source) ? std::isnan(got) : got == want)
            << config << ", row " << i / 6 << ": " << got;
      }
      for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(outputs[1].at(i), placed.groups[i]) << config;
      for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(outputs[2].at(i), placed.places[i]) << config;
    }
  }
}

// Runs of assignments, and more experts than threads.
TEST_P(Experts, ManyAssignmentsOfManyExperts) {
  const Problem problem = problem_of(
      "permute dtype=f16 out=f16 block=\"16\" tokens=700 experts=150 "
      "top_k=3 dim=8");
  for (const char* config : {"sorted THREADS=64 VEC=8 ITEMS=1", "fused THREADS=64 VEC=8 ITEMS=1"}) {
    test::expect_right(built_in("permute"), problem,
                       built_in("permute").plan(problem, info_, parse(problem, config)), config, 5,
                       device_);
  }
}

// route, permute, grouped_gemm and unpermute agree with each other: identity matrices of experts,
// times the number of the expert, show where each row has been.
TEST_P(Experts, AllOperationsInTurn) {
  constexpr std::size_t tokens = 9, experts = 4, top_k = 2, dim = 8;
  const Problem routing = problem_of("route dtype=f32 out=f32 tokens=9 experts=4 top_k=2");
  const auto logits = built_in("route").inputs(routing, 3);
  const auto routed = run_default(routing, logits);
  const Problem permuting =
      problem_of("permute dtype=f32 out=f32 block=\"16\" tokens=9 experts=4 top_k=2 dim=8");
  const auto x = built_in("permute").inputs(permuting, 4).front();
  const auto permuted = run_default(permuting, {x, routed[0]});
  const std::int64_t rows = permuted[0].spec.rows;
  Problem multiplying = problem_of("grouped_gemm dtype=f32 out=f32 groups=4 m=78 n=8 k=8");
  multiplying.extent("m") = rows;
  const auto specs = built_in("grouped_gemm").tensors(multiplying);
  std::vector<double> matrices(experts * dim * dim);
  for (std::size_t i = 0; i < experts * dim; ++i) {
    matrices[i * dim + i % dim] = static_cast<double>(i / dim + 1);
  }
  const auto multiplied =
      run_default(multiplying, {permuted[0], test::filled(specs[1], matrices), permuted[1]});
  Problem adding = problem_of("unpermute dtype=f32 out=f32 tokens=9 rows=78 top_k=2 dim=8");
  adding.extent("rows") = rows;
  const auto added = run_default(adding, {multiplied[0], permuted[2], routed[1]});
  for (std::size_t i = 0; i < tokens * dim; ++i) {
    double factor = 0;
    for (std::size_t k = i / dim * top_k; k < (i / dim + 1) * top_k; ++k) {
      factor += routed[1].at(k) * (routed[0].at(k) + 1);
    }
    EXPECT_NEAR(added[0].at(i), factor * x.at(i), 1e-5) << "element " << i;
  }
}

// What one token has of each expert is computed by plain loops: an id of no expert, weights of 0,
// an expert that comes twice, and a NaN. Matrices of the others are NaN, so nothing may read them.
TEST_P(Experts, FewTokensReadTheirExpertsAlone) {
  constexpr std::size_t tokens = 4, experts = 5, top_k = 3, dim = 24, hidden = 20;
  const Problem problem =
      problem_of("experts dtype=f32 out=f32 tokens=4 experts=5 top_k=3 dim=24 hidden=20");
  auto inputs = built_in("experts").inputs(problem, 2);
  const std::vector<double> ids{0, 3, 5, 3, 3, 1, -1, 99, 0, 4, 0, -2147483648.0};
  const std::vector<double> weights{0.5, -1, 1, 0.25, 2, 0, nan, nan, -0.0, 0, nan, 1};
  inputs[1] = test::filled(inputs[1].spec, ids);
  inputs[2] = test::filled(inputs[2].spec, weights);
  for (const std::size_t matrix : {3, 4}) {
    const std::size_t each = inputs[matrix].spec.elements() / experts;
    for (const std::size_t expert : {1, 2, 4}) {
      for (std::size_t i = expert * each; i < (expert + 1) * each; ++i)
        store_element(DType::f32, inputs[matrix].data.data(), i, nan);
    }
  }
  std::vector<double> expected(tokens * dim);
  for (std::size_t pair = 0; pair < ids.size(); ++pair) {
    if (ids[pair] < 0 || ids[pair] >= experts || weights[pair] == 0) continue;
    const auto expert = static_cast<std::size_t>(ids[pair]);
    for (std::size_t j = 0; j < hidden; ++j) {
      double gate = 0, up = 0;
      for (std::size_t i = 0; i < dim; ++i) {
        const double x = inputs[0].at(pair / top_k * dim + i);
        gate += x * inputs[3].at((expert * 2 * hidden + j) * dim + i);
        up += x * inputs[3].at((expert * 2 * hidden + hidden + j) * dim + i);
      }
      const double h = weights[pair] * gate / (1 + std::exp(-gate)) * up;
      for (std::size_t i = 0; i < dim; ++i)
        expected[pair / top_k * dim + i] += h * inputs[4].at((expert * dim + i) * hidden + j);
    }
  }
  for (const char* config :
       {"gemv THREADS=64 GATE_LANES=8 GATE_TN=1 DOWN_LANES=32 DOWN_TN=2 SLOTS=4 UNROLL=1 VEC=4",
        "gemv THREADS=128 GATE_LANES=32 GATE_TN=2 DOWN_LANES=8 DOWN_TN=1 SLOTS=1 UNROLL=2 VEC=1"}) {
    const auto outputs = run(problem, parse(problem, config), inputs);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(std::isnan(outputs[0].at(i)), std::isnan(expected[i])) << config << ' ' << i;
      if (std::isnan(expected[i])) continue;
      ASSERT_NEAR(outputs[0].at(i), expected[i], 1e-5) << config << ' ' << i;
    }
    for (std::size_t i = 0; i < dim; ++i) EXPECT_EQ(outputs[0].at(2 * dim + i), 0);
  }
}

// The operation for few tokens gives what the operations for many give.
TEST_P(Experts, FewTokensAreRightAsManyAre) {
  const Problem few =
      problem_of("experts dtype=f16 out=f16 tokens=7 experts=6 top_k=2 dim=64 hidden=40");
  const auto inputs = built_in("experts").inputs(few, 3);
  const auto out = run_default(few, inputs);
  const auto permuted =
      run_default(problem_of("permute dtype=f16 out=f16 tokens=7 experts=6 top_k=2 dim=64"),
                  {inputs[0], inputs[1]});
  const auto h = run_default(
      problem_of("grouped_gemm dtype=f16 out=f16 epilogue=swiglu groups=6 m=14 n=40 k=64"),
      {permuted[0], inputs[3], permuted[1]});
  const auto y = run_default(problem_of("grouped_gemm dtype=f16 out=f32 groups=6 m=14 n=64 k=40"),
                             {h[0], inputs[4], permuted[1]});
  const auto many =
      run_default(problem_of("unpermute dtype=f32 out=f32 tokens=7 rows=14 top_k=2 dim=64"),
                  {y[0], permuted[2], inputs[2]});
  for (std::size_t i = 0; i < out[0].spec.elements(); ++i)
    EXPECT_NEAR(out[0].at(i), many[0].at(i), 0.01 * (1 + std::abs(many[0].at(i)))) << i;
}

INSTANTIATE_TEST_SUITE_P(Devices, Experts, ::testing::ValuesIn(test::usable_devices()),
                         [](const auto& instance) { return test::device_name(instance.param); });

}  // namespace
}  // namespace greta::test::experts_test
