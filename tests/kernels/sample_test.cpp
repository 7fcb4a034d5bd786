// Protects: sampling on every device: special logits and settings, the distribution of draws, and
// that equal seeds give equal tokens on every device and in every configuration.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>

#include "kernels/reference/philox.hpp"
#include "kernels/reference/sample_integers.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/filled.hpp"
#include "tests/kernels/plan_runner.hpp"

namespace greta::test::sample_test {
namespace {

const double infinity = std::numeric_limits<double>::infinity();
const double nan = std::nan("");

const Operation& sample() {
  return built_in("sample");
}

Problem problem_of(DType in, std::int64_t rows, std::int64_t cols, std::int64_t history = 0) {
  Problem problem{"sample", in, DType::i32, {}, {{"rows", rows}, {"cols", cols}}};
  if (history > 0) problem.dims.emplace_back("history", history);
  return problem;
}

/// A row of eight logits with its settings, and the tokens that may be drawn.
struct Row {
  std::vector<double> logits;
  std::vector<double> settings;  ///< temperature, top_k, top_p, min_p
  std::set<int> tokens;
};

const std::vector<Row>& special_rows() {
  static const std::vector<Row> rows{
      // Greedy: the lowest of the largest.
      {{1, 3, 3, 2, 3, 0, -1, 3}, {0, 0, 1, 0}, {1}},
      {{nan, -2, nan, -1, nan, -1, nan, nan}, {0, 0, 1, 0}, {3}},
      {{0, 1, 0, 0, 0, 0, 0, 0}, {nan, 0, 1, 0}, {1}},
      {{0, 1, 0, 0, 0, 0, 0, 0}, {-1, 5, 0.5, 0}, {1}},
      // top_k = 1, the least top_p and the most min_p.
      {{1, 3, 2, 3, 3, 0, -1, 3}, {1, 1, 1, 0}, {1}},
      {{1, 3, 2, 3, 3, 0, -1, 3}, {1, 0, 0, 0}, {1}},
      {{1, 3, 2, 3.5, 3, 0, -1, 3}, {1, 0, 1, 1}, {3}},
      {{1, 3, 2, 3, 3, 0, -1, 3}, {1, 0, 1, 7}, {1, 3, 4, 7}},
      // Less tokens have a probability than top_k keeps.
      {{1, 3, 2, 3.5, 3, 0, -1, 3}, {1, 5, 0.5, 1}, {3}},
      // top_p takes its share of those.
      {{3, 3, 3, 3, 0, 1, nan, 2}, {1, 7, 0.5, 1}, {0, 1}},
      {{0, 3, 3, nan, -1, 3, 3, 2}, {1, 6, 0.3, 1}, {1, 2}},
      {{-0.0, nan, -0.0, nan, -0.0, -0.0, -0.0, nan}, {1.5, 7, 0.25, 1}, {0, 2}},
      // The bounds of no bin exclude the farthest token.
      {{1, 1.01, 1.02, -infinity, nan, 1.03, -infinity, nan}, {1, 0, 0.9999999, 0}, {0, 1, 2, 5}},
      // Equal logits are kept from the lowest column on.
      {{5, 5, 5, 5, 5, 5, 5, 5}, {1, 3, 1, 0}, {0, 1, 2}},
      {{5, 5, 5, 5, 5, 5, 5, 5}, {1, 0, 0.24, 0}, {0, 1}},
      {{5, 5, 5, 5, 5, 5, 5, 5}, {1, 4, 0.45, 0}, {0, 1}},
      // Only one, infinite ones, and none.
      {{-infinity, -infinity, -7, -infinity, -infinity, -infinity, nan, nan}, {1, 0, 1, 0}, {2}},
      {{1, infinity, nan, infinity, 65504, 1, 1, 1}, {1, 0, 1, 0}, {1, 3}},
      {{1, infinity, nan, infinity, 65504, 1, 1, 1}, {0, 0, 1, 0}, {1}},
      {{-infinity, nan, -infinity, nan, nan, nan, -infinity, nan}, {1, 0, 1, 0}, {-1}},
      {{nan, nan, nan, nan, nan, nan, nan, nan}, {0, 0, 1, 0}, {-1}},
      // Far below the largest, and a temperature that makes all alike.
      {{0, -30, -40, -50, -60, -100, -200, -1000}, {1, 0, 1, 0}, {0}},
      {{1, 2, 3, 4, 5, 6, 7, 8}, {infinity, 0, 1, 0}, {0, 1, 2, 3, 4, 5, 6, 7}},
      // Settings that are off, or NaN.
      {{5, 5, -50, -50, -50, -50, -50, 5}, {1, nan, nan, nan}, {0, 1, 7}},
      {{5, 5, -50, -50, -50, -50, -50, 5}, {1, -3, 2, -1}, {0, 1, 7}},
  };
  return rows;
}

/// The inputs of the special rows, repeated with other seeds.
std::vector<HostTensor> special_inputs(const std::vector<TensorSpec>& specs, std::size_t times) {
  std::vector<double> logits, settings, seeds;
  for (std::size_t i = 0; i < times * special_rows().size(); ++i) {
    const Row& row = special_rows()[i % special_rows().size()];
    logits.insert(logits.end(), row.logits.begin(), row.logits.end());
    settings.insert(settings.end(), row.settings.begin(), row.settings.end());
    for (const double word : {17.0, -3.0, static_cast<double>(i)}) seeds.push_back(word);
  }
  return {test::filled(specs[0], logits), test::filled(specs[1], settings),
          test::filled(specs[2], seeds)};
}

TEST(SampleReference, PermitsTheTokensOfSpecialRowsAlone) {
  constexpr std::size_t times = 40;
  const std::size_t rows = times * special_rows().size();
  const Problem problem = problem_of(DType::f32, static_cast<std::int64_t>(rows), 8);
  const auto specs = sample().tensors(problem);
  const auto reference = sample().reference(problem, special_inputs(specs, times), 1);
  const auto expected = reference->expected().value().at(0);
  std::vector<double> tokens;
  std::vector<std::set<int>> seen(special_rows().size());
  for (std::size_t i = 0; i < rows; ++i) {
    EXPECT_EQ(expected[i].bound, 0) << i;
    tokens.push_back(expected[i].value);
    seen[i % seen.size()].insert(static_cast<int>(expected[i].value));
  }
  EXPECT_TRUE(reference->check({test::filled(specs[3], tokens)}).passed);
  for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], special_rows()[i].tokens) << i;
  for (std::size_t i = 0; i < 2 * seen.size(); ++i) {
    auto wrong = tokens;
    ++wrong[i];
    EXPECT_FALSE(reference->check({test::filled(specs[3], wrong)}).passed) << i;
  }
}

// Where bounds permit two neighbours, the integers of kernels decide.
TEST(SampleReference, HasOneTokenAtABorderWithinItsBound) {
  const Problem problem = problem_of(DType::f32, 1, 4);
  const auto specs = sample().tensors(problem);
  const auto random = kernels::philox4x32({5, 0, 0, 0}, {1, 2});
  const double uniform = (random[1] + random[0] * 0x1p-32) * 0x1p-32;
  // Weights 1, a, 0, 0 with uniform (1 + a) = 1.
  const double logit = std::log(1 / uniform - 1);
  for (const double moved : {0.0, 1e-8, 1e-3}) {
    const auto reference = sample().reference(
        problem,
        {test::filled(specs[0],
                      {logit > 0 ? -logit : 0, logit > 0 ? moved : logit + moved, -90, -90}),
         test::filled(specs[1], {1, 0, 1, 0}), test::filled(specs[2], {1, 2, 5})},
        1);
    int passed = 0;
    for (const double token : {0.0, 1.0, 2.0, 3.0}) {
      passed += reference->check({test::filled(specs[3], {token})}).passed ? 1 : 0;
    }
    EXPECT_EQ(passed, 1) << moved;
  }
}

HostTensor row_of(std::vector<double> logits) {
  const TensorSpec spec{"x", Role::input, DType::f32, 1, static_cast<std::int64_t>(logits.size())};
  return test::filled(spec, logits);
}

// Weights of whole octaves are 2^29 - 1, shifted; one of equal sums is at the border of top_p.
TEST(SampleIntegers, AreThoseOfTheDocumentation) {
  using kernels::sampled::drawn;
  const HostTensor x = row_of({-28, 0, -1, -29, -2});
  const auto tokens = kernels::sampled::weighed(x, 0, kernels::sampled::octave_temperature);
  std::vector<std::uint32_t> weights;
  for (const auto& token : tokens) weights.push_back(token.weight);
  EXPECT_EQ(weights, (std::vector<std::uint32_t>{0x1fffffff, 0xfffffff, 0x7ffffff, 1}));
  EXPECT_EQ(kernels::sampled::share_of(1000, 0.5F), 500U);
  EXPECT_EQ(kernels::sampled::share_of(1000, -1), 1U);
  kernels::sampled::Draw draw{kernels::sampled::octave_temperature, 0, 1, 0, {1, 2}, 0};
  std::map<std::int64_t, int> drawn_of;
  for (draw.offset = 0; draw.offset < 7000; ++draw.offset) ++drawn_of[drawn(x, 0, draw)];
  EXPECT_NEAR(drawn_of[1], 4000, 200);
  EXPECT_NEAR(drawn_of[2], 2000, 200);
  EXPECT_NEAR(drawn_of[4], 1000, 200);
}

/// A kernel that computes in f32 may round 1 + 2^-8 to either neighbour in bf16, and draws by it.
TEST(SampleReference, ExpectsNoTokenWhereALogitMayBeRoundedEitherWay) {
  const Problem problem = problem_of(DType::bf16, 2, 4, 1);
  const auto specs = sample().tensors(problem);
  const auto reference = sample().reference(
      problem,
      {test::filled(specs[0], {1, 0, -1, -2, 1, 0, -1, -2}),
       test::filled(specs[1], {1, 0, 1, 0, 1, 0, 1, 0}), test::filled(specs[2], {1, 2, 5, 1, 2, 5}),
       test::filled(specs[3], {1, -0x1p-8, 0, 1, 0, 0}), test::filled(specs[4], {0, 0})},
      1);
  const auto tokens = reference->expected().value().back();
  EXPECT_EQ(tokens[0].bound, std::numeric_limits<double>::infinity());
  EXPECT_EQ(tokens[1].bound, 0);
}

TEST(Philox, GivesThePublishedNumbers) {
  using Block = std::array<std::uint32_t, 4>;
  EXPECT_EQ(kernels::philox4x32({0, 0, 0, 0}, {0, 0}),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(kernels::philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(kernels::philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                                {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

Config parsed(const Problem& problem, const DeviceInfo& info, const std::string& text) {
  return sample().space(problem, info).parse(text).value();
}

std::vector<HostTensor> run(Device& device, const Problem& problem, const Config& config,
                            const std::vector<HostTensor>& inputs) {
  const auto plan = sample().plan(problem, device.info(), config).value();
  auto ran = test::run_plan(device, plan, sample().tensors(problem), inputs, 1).value();
  EXPECT_EQ(ran.overrun, "");
  return std::move(ran.outputs);
}

/// Configurations of all variants that the device has.
std::vector<std::string> configs_of(const Device& device) {
  std::vector<std::string> texts{
      "row THREADS=64 VEC=1 ITEMS=1 BINS=256 COPIES=1 LIST=512",
      "split THREADS=64 VEC=2 ITEMS=2 BINS=512 COPIES=2 LIST=512 SPLIT=4"};
  if (device.info().language == Language::hip) {
    texts.emplace_back("early THREADS=64 VEC=2 ITEMS=1 BINS=512 COPIES=2 LIST=512");
  }
  return texts;
}

class Sample : public ::testing::TestWithParam<std::string> {
 protected:
  Device& device_ = test::device(GetParam());
  const DeviceInfo& info_ = device_.info();
};
class EarlySample : public Sample {};

TEST_P(Sample, SpecialLogitsAndSettings) {
  const std::size_t rows = special_rows().size();
  for (const DType in : {DType::f32, DType::f16}) {
    const Problem problem = problem_of(in, static_cast<std::int64_t>(rows), 8);
    const auto inputs = special_inputs(sample().tensors(problem), 1);
    const auto reference = sample().reference(problem, inputs, 1);
    for (const std::string& text : configs_of(device_)) {
      const auto outputs = run(device_, problem, parsed(problem, info_, text), inputs);
      const Verdict verdict = reference->check(outputs);
      EXPECT_TRUE(verdict.passed) << text << ": " << verdict.detail;
    }
  }
}

// 2000 equal logits, of which kept ones exceed the list.
TEST_P(Sample, ManyEqualLogits) {
  const Problem problem = problem_of(DType::bf16, 3, 2000);
  const auto specs = sample().tensors(problem);
  std::vector<double> logits(6000, 1.5);
  for (std::size_t i = 2000; i < 4000; ++i) logits[i] = i % 2 == 0 ? 3 : 2.75;
  const std::vector<HostTensor> inputs{
      test::filled(specs[0], logits),
      test::filled(specs[1], {1, 0, 0.7, 0, 1, 1500, 0.9, 0, 1, 900, 1, 0}),
      test::filled(specs[2], {1, 2, 3, 4, 5, 6, 7, 8, 9})};
  const auto reference = sample().reference(problem, inputs, 1);
  const Config config =
      parsed(problem, info_, "row THREADS=64 VEC=8 ITEMS=1 BINS=256 COPIES=1 LIST=512");
  const Verdict verdict = reference->check(run(device_, problem, config, inputs));
  EXPECT_TRUE(verdict.passed) << verdict.detail;
}

// The bins of `early` are placed by the largest of some logits. Rows for which they do: normal
// logits, with top-p, top-k and min-p, and far from zero. Rows for which they do not: the largest
// logit lies far above the others, where few look; the border lies below all bins, or has more
// tokens than the list; no bin is as near to zero as it must be. Also where some logits are not
// finite.
TEST_P(EarlySample, BinsKeepTheSameTokens) {
  struct Case {
    double scale, offset, peak;
    std::vector<double> settings;
  };
  const std::vector<Case> cases{
      {1, 0, 0, {1, 0, 0.9, 0}},        {1, 0, 0, {1, 40, 0.8, 0}},
      {1, 0, 0, {1, 0, 0.7, 0.05}},     {1, 300, 0, {0.7, 0, 0.95, 0}},
      {1, 0, 30, {1, 0, 0.5, 0}},       {1, 0, 9, {1, 0, 0.9999, 0}},
      {8, 0, 0, {1, 0, 0.9999999, 0}},  {8, 0, 0, {1, 3000, 1, 0}},
      {0.001, 0, 0, {1, 0, 0.9, 0}},    {1, 1e7, 0, {1, 0, 0.9, 0}},
      {1, 0, infinity, {1, 0, 0.9, 0}}, {1, -1e30, 0, {1, 9, 1, 0}},
      {1, 0, nan, {1, 0, 0.3, 0}},      {0, 2, 0, {1, 2500, 0.9, 0}},
      {1, 0, 0, {1e-9, 0, 0.9, 0}},     {8e37, 0, 0, {infinity, 2000, 0.5, 0.3}}};
  constexpr std::size_t cols = 4096;
  const Problem problem = problem_of(DType::f32, static_cast<std::int64_t>(cases.size()), cols);
  const auto specs = sample().tensors(problem);
  const HostTensor normal = sample().inputs(problem, 3, InputStyle::plain).at(0);
  std::vector<double> logits, settings, seeds;
  for (std::size_t row = 0; row < cases.size(); ++row) {
    const Case& c = cases[row];
    for (std::size_t i = 0; i < cols; ++i) {
      logits.push_back(normal.at(row * cols + i) * c.scale + c.offset);
    }
    if (c.peak != 0) logits[row * cols + 1777] = c.peak;
    settings.insert(settings.end(), c.settings.begin(), c.settings.end());
    for (const double word : {3.0, 4.0, static_cast<double>(row)}) seeds.push_back(word);
  }
  const std::vector<HostTensor> inputs{test::filled(specs[0], logits),
                                       test::filled(specs[1], settings),
                                       test::filled(specs[2], seeds)};
  const auto reference = sample().reference(problem, inputs, 1);
  const auto row = run(
      device_, problem,
      parsed(problem, info_, "row THREADS=64 VEC=4 ITEMS=2 BINS=256 COPIES=1 LIST=512"), inputs);
  for (const char* text : {"early THREADS=64 VEC=4 ITEMS=2 BINS=4096 COPIES=1 LIST=512",
                           "early THREADS=256 VEC=4 ITEMS=4 BINS=8192 COPIES=1 LIST=1024",
                           "early THREADS=128 VEC=1 ITEMS=8 BINS=512 COPIES=2 LIST=2048"}) {
    const auto early = run(device_, problem, parsed(problem, info_, text), inputs);
    const Verdict verdict = reference->check(early);
    EXPECT_TRUE(verdict.passed) << text << ": " << verdict.detail;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      EXPECT_EQ(early.back().at(i), row.back().at(i)) << text << ", row " << i;
    }
  }
}

/// The statistic of Pearson's test for draws from one row of logits, and its degrees of freedom.
struct ChiSquare {
  double statistic = 0;
  std::size_t freedom = 0;
};

ChiSquare chi_square(const HostTensor& tokens, const std::vector<double>& probabilities) {
  std::vector<double> counts(probabilities.size());
  const auto draws = tokens.spec.elements();
  for (std::size_t i = 0; i < draws; ++i) ++counts.at(static_cast<std::size_t>(tokens.at(i)));
  ChiSquare result;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = probabilities[i] * static_cast<double>(draws);
    if (expected == 0) {
      EXPECT_EQ(counts[i], 0) << "token " << i << " is not kept";
      continue;
    }
    result.statistic += (counts[i] - expected) * (counts[i] - expected) / expected;
    ++result.freedom;
  }
  --result.freedom;
  return result;
}

// Draws of one row with successive offsets have the probabilities of the softmax of what is kept.
TEST_P(Sample, DrawsHaveTheirProbabilities) {
  constexpr std::int64_t draws = 6000;
  const std::vector<double> logits{0.5, 2, -1, 1, 1, 0, 2.5, -3};
  struct Kept {
    std::vector<double> settings;
    std::set<std::size_t> tokens;
  };
  // Of temperature 0.8, the weights are .08 .54 .01 .15 .15 .04 1 .001, whose sum is 1.98.
  for (const Kept& kept :
       {Kept{{0.8, 0, 1, 0}, {0, 1, 2, 3, 4, 5, 6, 7}}, Kept{{0.8, 0, 0.83, 0}, {1, 3, 6}},
        Kept{{0.8, 5, 1, 0}, {0, 1, 3, 4, 6}}, Kept{{0.8, 0, 1, 0.1}, {1, 3, 4, 6}}}) {
    std::vector<double> probabilities(8), all, settings, seeds;
    double sum = 0;
    for (const std::size_t i : kept.tokens) sum += std::exp(logits[i] / 0.8);
    for (const std::size_t i : kept.tokens) probabilities[i] = std::exp(logits[i] / 0.8) / sum;
    for (std::int64_t i = 0; i < draws; ++i) {
      all.insert(all.end(), logits.begin(), logits.end());
      settings.insert(settings.end(), kept.settings.begin(), kept.settings.end());
      for (const double word : {2026.0, 11.0, static_cast<double>(i)}) seeds.push_back(word);
    }
    const Problem problem = problem_of(DType::f32, draws, 8);
    const auto specs = sample().tensors(problem);
    const auto outputs =
        run(device_, problem,
            parsed(problem, info_, "row THREADS=64 VEC=4 ITEMS=1 BINS=256 COPIES=1 LIST=512"),
            {test::filled(specs[0], all), test::filled(specs[1], settings),
             test::filled(specs[2], seeds)});
    const ChiSquare test = chi_square(outputs[0], probabilities);
    EXPECT_EQ(test.freedom, kept.tokens.size() - 1);
    // Exceeded with a probability below 1e-5 (Wilson and Hilferty's approximation).
    const auto freedom = static_cast<double>(test.freedom);
    const double limit =
        freedom * std::pow(1 - 2 / (9 * freedom) + 4.3 * std::sqrt(2 / (9 * freedom)), 3);
    EXPECT_LT(test.statistic, limit);
  }
}

// Penalties take no launch more in `split`, and one in the other variants.
TEST_P(Sample, HasAtMostTwoLaunches) {
  for (const std::int64_t history : {0, 20}) {
    const Problem problem = problem_of(DType::f32, 3, 1500, history);
    for (const std::string& text : configs_of(device_)) {
      const auto plan = sample().plan(problem, info_, parsed(problem, info_, text)).value();
      const bool split = text.starts_with("split");
      EXPECT_EQ(plan.launches.size(), split || history > 0 ? 2U : 1U) << text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Sample, ::testing::ValuesIn(test::usable_devices()),
                         [](const auto& instance) { return test::device_name(instance.param); });
// The variant exists in HIP.
INSTANTIATE_TEST_SUITE_P(Devices, EarlySample,
                         ::testing::ValuesIn(test::devices_that([](const DeviceInfo& info) {
                           return info.language == Language::hip;
                         })),
                         [](const auto& instance) { return test::device_name(instance.param); });

// Threads keep their parts of the row in registers, so that they leave shared memory to the bins.
TEST(SampleSpace, HasAllBinsThatFitSharedMemory) {
  const Problem problem = problem_of(DType::f16, 2, 65536);
  const auto why = [&](const char* architecture, int threads, int bins, int copies, int list) {
    const Config config{"row",
                        {{"THREADS", threads},
                         {"VEC", 8},
                         {"ITEMS", 1},
                         {"BINS", bins},
                         {"COPIES", copies},
                         {"LIST", list}}};
    return sample().space(problem, *architecture_info(architecture)).rejects(config).value_or("");
  };
  for (const char* architecture : {"gfx942", "gfx1100", "sm_90"}) {
    EXPECT_EQ(why(architecture, 1024, 2048, 4, 1024), "") << architecture;
    EXPECT_EQ(why(architecture, 1024, 4096, 1, 2048), "") << architecture;
    EXPECT_NE(why(architecture, 64, 2048, 4, 2048).find("must fit 48 KiB"), std::string::npos);
  }
}

// Also the penalised logits have equal bits.
TEST(SampleEverywhere, EqualSeedsGiveEqualTokens) {
  for (const std::int64_t history : {0, 20}) {
    const Problem problem = problem_of(DType::f32, 60, 1500, history);
    const auto inputs = sample().inputs(problem, 5, InputStyle::adversarial);
    std::vector<HostTensor> first;
    std::string first_device;
    for (const std::string& id : test::usable_devices()) {
      Device& device = test::device(id);
      for (const std::string& text : configs_of(device)) {
        auto outputs = run(device, problem, parsed(problem, device.info(), text), inputs);
        if (first.empty()) {
          first = std::move(outputs);
          first_device = id;
          continue;
        }
        for (std::size_t i = 0; i < first.size(); ++i) {
          std::size_t other = 0;
          for (std::size_t j = 0; j < first[i].spec.elements(); ++j) {
            const double a = first[i].at(j), b = outputs[i].at(j);
            // Devices may flush subnormal numbers.
            other +=
                a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) < 0x1p-125 ? 0 : 1;
          }
          EXPECT_EQ(other, 0U) << first[i].spec.name << ": " << first_device << " and " << id << " "
                               << text;
        }
      }
    }
  }
}

}  // namespace
}  // namespace greta::test::sample_test
