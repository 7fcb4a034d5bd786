// Protects: every strategy returns each valid configuration once, starts from the seeds, tolerates
// failures and is reproducible.

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <functional>
#include <limits>
#include <ostream>
#include <random>
#include <set>

#include "tests/layers.hpp"
#include "tuner/search/permutation.hpp"
#include "tuner/search/ranking.hpp"
#include "tuner/search/strategy.hpp"

namespace greta::test::search_strategy_test {
namespace {

std::vector<int> range(int count) {
  std::vector<int> values;
  for (int value = 0; value < count; ++value) values.push_back(value);
  return values;
}

/// Three variants of very different sizes with 253 valid configurations.
Space small_space() {
  return Space({{"wide",
                 {{"A", range(10)}, {"B", range(10)}, {"C", range(4)}},
                 {{"below", "A + B must not exceed 9", p["A"] + p["B"] <= 9}}},
                {"narrow", {{"C", range(4)}, {"D", range(8)}}, {}},
                {"single", {{"A", {3}}}, {}}});
}

Trial success(const Config& config, double time_us) {
  Trial trial;
  trial.config = config;
  trial.measurement.median_us = time_us;
  return trial;
}

Trial failure(const Config& config) {
  Trial trial;
  trial.config = config;
  trial.failure = Status::compile;
  return trial;
}

using Objective = std::function<Trial(const Config&)>;

/// Asks `lookahead` configurations ahead of the results. Ends after `most` trials or when none is
/// left.
std::vector<Config> search(Strategy& strategy, const Space& space, const Objective& objective,
                           std::size_t most, std::size_t lookahead) {
  std::vector<Config> asked;
  std::deque<Choice> waiting;
  while (asked.size() < most || !waiting.empty()) {
    while (asked.size() < most && waiting.size() < lookahead) {
      auto choice = strategy.ask();
      if (!choice) break;
      asked.push_back(space.config(*choice));
      waiting.push_back(*std::move(choice));
    }
    if (waiting.empty()) break;
    strategy.tell(waiting.front(), objective(space.config(waiting.front())));
    waiting.pop_front();
  }
  return asked;
}

double bowl(const Config& config) {
  if (config.variant != "wide") return 200;
  const double a = config["A"] - 6;
  const double b = config["B"] - 2;
  const double c = config["C"] - 1;
  return 10 + a * a + 2 * b * b + 3 * c * c;
}

struct Case {
  StrategyEntry entry;
  std::size_t lookahead;
};

/// For GoogleTest's messages.
void PrintTo(const Case& value, std::ostream* out) {
  *out << value.entry.name << ", lookahead " << value.lookahead;
}

class EveryStrategy : public testing::TestWithParam<Case> {
 protected:
  std::unique_ptr<Strategy> create(const std::vector<Config>& seeds = {},
                                   std::uint64_t seed = 1) const {
    std::vector<Choice> choices;
    for (const Config& config : seeds) choices.push_back(space_.choice(config).value());
    return create_strategy(GetParam().entry.name, {&space_, std::move(choices), seed});
  }

  std::vector<Config> run(Strategy& strategy, const Objective& objective,
                          std::size_t most = 100000) const {
    return search(strategy, space_, objective, most, GetParam().lookahead);
  }

  void expect_all_once(const std::vector<Config>& asked) const {
    const std::set<Config> distinct(asked.begin(), asked.end());
    EXPECT_EQ(distinct.size(), asked.size()) << "something was asked for twice";
    EXPECT_EQ(asked.size(), space_.count());
    for (const Config& config : asked) EXPECT_TRUE(space_.valid(config)) << config.text();
  }

  Space space_ = small_space();
};

TEST_P(EveryStrategy, GivesEveryValidConfigurationOnce) {
  const auto strategy = create();
  expect_all_once(run(*strategy, [](const Config& c) { return success(c, bowl(c)); }));
  EXPECT_EQ(strategy->ask(), std::nullopt);
}

TEST_P(EveryStrategy, StartsFromTheSeeds) {
  const std::vector<Config> seeds{space_.at(200), space_.at(3), space_.at(200), space_.at(250)};
  const auto strategy = create(seeds);
  const auto asked = run(*strategy, [](const Config& c) { return success(c, bowl(c)); });
  expect_all_once(asked);
  EXPECT_EQ(asked[0], seeds[0]);
  EXPECT_EQ(asked[1], seeds[1]);
  EXPECT_EQ(asked[2], seeds[3]);
}

TEST_P(EveryStrategy, SurvivesNothingButFailures) {
  const auto strategy = create();
  expect_all_once(run(*strategy, failure));
}

TEST_P(EveryStrategy, SurvivesRareSuccess) {
  const auto strategy = create();
  expect_all_once(run(*strategy, [](const Config& c) {
    return c.hash() % 20 == 0 ? success(c, bowl(c)) : failure(c);
  }));
}

TEST_P(EveryStrategy, SurvivesEqualTimes) {
  const auto strategy = create();
  expect_all_once(run(*strategy, [](const Config& c) { return success(c, 5); }));
}

TEST_P(EveryStrategy, RepeatsItselfWithTheSameSeed) {
  const auto objective = [](const Config& c) { return success(c, bowl(c)); };
  EXPECT_EQ(run(*create({}, 7), objective, 60), run(*create({}, 7), objective, 60));
}

TEST_P(EveryStrategy, HandlesSpacesOfNoneAndOne) {
  const Space none(std::vector<Alternative>{});
  EXPECT_EQ(create_strategy(GetParam().entry.name, {&none, {}, 1})->ask(), std::nullopt);
  const Space one(std::vector<Alternative>{{"only", {}, {}}});
  const auto strategy = create_strategy(GetParam().entry.name, {&one, {}, 1});
  const auto objective = [](const Config& c) { return success(c, 1); };
  EXPECT_EQ(search(*strategy, one, objective, 10, GetParam().lookahead),
            std::vector<Config>{one.at(0)});
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const StrategyEntry& entry : strategies()) {
    for (const std::size_t lookahead : {1, 4, 16}) cases.push_back({entry, lookahead});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(List, EveryStrategy, testing::ValuesIn(all_cases()), [](const auto& test) {
  return std::string(test.param.entry.name) + "_" + std::to_string(test.param.lookahead);
});

TEST(Strategies, AreFoundByName) {
  for (const StrategyEntry& entry : strategies()) {
    ASSERT_NE(find_strategy(entry.name), nullptr);
    EXPECT_EQ(find_strategy(entry.name)->create, entry.create);
    EXPECT_FALSE(entry.summary.empty());
  }
  EXPECT_EQ(find_strategy("absent"), nullptr);
  EXPECT_EQ(strategies().front().name, "auto");
}

TEST(Strategies, AreParsedWithTheirOptions) {
  const auto plain = parse_strategy("genetic").value();
  EXPECT_EQ(plain.entry, find_strategy("genetic"));
  EXPECT_EQ(plain.options.at("population"), 20);
  const auto changed = parse_strategy("genetic:population=8,mutations=0.5").value();
  EXPECT_EQ(changed.options.at("population"), 8);
  EXPECT_EQ(changed.options.at("mutations"), 0.5);
  for (const StrategyEntry& entry : strategies()) {
    const auto parsed = parse_strategy(entry.name);
    ASSERT_TRUE(parsed) << entry.name;
    for (const StrategyOption& option : entry.options) {
      EXPECT_EQ(parsed->options.at(std::string(option.name)), option.standard);
      EXPECT_GE(option.standard, option.least) << option.name;
      EXPECT_LE(option.standard, option.most) << option.name;
      EXPECT_FALSE(option.help.empty()) << option.name;
    }
  }
}

TEST(Strategies, RefuseUnknownNamesAndOptions) {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "must be one of"},
      {"genetics", "did you mean genetic"},
      {"genetic:", "must be one of"},
      {"genetic:size=3", "must be one of"},
      {"genetic:population", "must be a whole number from"},
      {"genetic:population=", "must be a whole number from"},
      {"genetic:population=1", "must be a whole number from"},
      {"genetic:population=nan", "must be a whole number from"},
      {"genetic:population=8x", "must be a whole number from"},
      {"genetic:population=8,", "must be one of"},
      {"genetic:population=2.9", "must be a whole number from"},
      {"auto:prior=0.5", "must be a whole number from"},
      {"basin:design=5,design=6", "design is given twice"},
      {"annealing:cold=1", "cold must be at most hot"},
      {"random:seed=3", "has no options"},
  };
  for (const auto& [text, reason] : wrong) {
    const auto parsed = parse_strategy(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.failure().field->field, "strategy");
    EXPECT_NE(parsed.failure().message.find(reason), std::string::npos) << parsed.failure().message;
    const Space space = small_space();
    EXPECT_THROW(create_strategy(text, {&space, {}, 1}), Error);
  }
}

TEST(Strategies, ADesignOfMoreThanTheSpaceEndsWithTheSpace) {
  const Space space = small_space();
  SearchProblem problem{&space, {}, 1};
  int predictions = 0;
  problem.prior = [&](const Choice&) { return ++predictions, 1.0; };
  for (const bool prior : {false, true}) {
    if (!prior) problem.prior = nullptr;
    const auto strategy = create_strategy("auto:design=1000000", problem);
    std::set<std::uint64_t> given;
    while (const auto choice = strategy->ask()) given.insert(space.index(*choice).value());
    EXPECT_EQ(given.size(), space.count());
  }
}

TEST(Strategies, RefuseAnInvalidSeed) {
  const Space space = small_space();
  for (const StrategyEntry& entry : strategies()) {
    const auto strategy = create_strategy(entry.name, {&space, {{0, {9, 9, 0}}}, 1});
    EXPECT_THROW(strategy->ask(), Error) << entry.name;
  }
}

TEST(Exhaustive, GoesInOrder) {
  const Space space = small_space();
  const auto strategy = create_strategy("exhaustive", {&space, {}, 1});
  for (std::uint64_t i = 0; i < space.count(); ++i) EXPECT_EQ(strategy->ask(), space.choice(i));
}

/// 10^7 configurations in one variant and 6 in another.
Space large_space() {
  Alternative large{"large", {}, {}};
  for (int i = 0; i < 7; ++i) large.parameters.push_back({"P" + std::to_string(i), range(10)});
  return Space({large, {"small", {{"P0", range(6)}}, {}}});
}

/// A convex objective with one best configuration: all 6, with value 10.
Trial large_bowl(const Config& config) {
  double time = 10;
  for (const auto& value : config.values) time += std::abs(value.second - 6);
  return success(config, config.variant == "large" ? time : 100);
}

/// Every strategy that learns finds a good configuration of a space of 253 in 100 trials.
TEST(LearningStrategies, FindTheirWayThroughASmallSpace) {
  const Space space = small_space();
  const auto objective = [](const Config& c) { return success(c, bowl(c)); };
  for (const StrategyEntry& entry : strategies()) {
    if (entry.name == "random" || entry.name == "exhaustive") continue;
    for (const std::size_t lookahead : {1, 8}) {
      double worst = 0;
      for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        const auto strategy = create_strategy(entry.name, {&space, {}, seed, 100});
        double best = 1000;
        for (const Config& config : search(*strategy, space, objective, 100, lookahead)) {
          best = std::min(best, bowl(config));
        }
        worst = std::max(worst, best);
      }
      EXPECT_LE(worst, 12) << entry.name << ", lookahead " << lookahead;  // five of 253
    }
  }
}

/// Strategies with a Gaussian process.
class EveryModel : public testing::TestWithParam<const char*> {};

TEST_P(EveryModel, FindsTheBottomOfABowl) {
  const Space space = large_space();
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    for (const std::size_t lookahead : {1, 16}) {
      const auto strategy = create_strategy(GetParam(), {&space, {}, seed});
      double best = 1000;
      for (const Config& config : search(*strategy, space, large_bowl, 400, lookahead)) {
        best = std::min(best, large_bowl(config).measurement.median_us);
      }
      EXPECT_LE(best, 11) << "seed " << seed << ", lookahead " << lookahead;  // 15 of 10^7
    }
  }
}

TEST_P(EveryModel, StartsInEveryVariant) {
  const Space space = large_space();
  const auto strategy = create_strategy(GetParam(), {&space, {}, 1});
  int small = 0;
  for (const Config& config : search(*strategy, space, large_bowl, 10, 1)) {
    small += config.variant == "small" ? 1 : 0;
  }
  EXPECT_GE(small, 4);
}

INSTANTIATE_TEST_SUITE_P(List, EveryModel, testing::Values("auto", "local"),
                         [](const auto& test) { return std::string(test.param); });

TEST(Auto, LearnsWhereConfigurationsFail) {
  const Space space = large_space();
  const auto objective = [](const Config& config) {
    if (config.variant == "large" && config["P0"] + config["P1"] > 9) return failure(config);
    return large_bowl(config);
  };
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const auto strategy = create_strategy("auto", {&space, {}, seed});
    int failures = 0;
    for (const Config& config : search(*strategy, space, objective, 200, 4)) {
      failures += objective(config).ok() ? 0 : 1;
    }
    // 45 % of the space fail, and the bottom of the bowl would be among them.
    EXPECT_LT(failures, 60) << "seed " << seed;
  }
}

double away_from(const Choice& choice, int x, int y) {
  return 1 + std::abs(choice.values[0] - x) + std::abs(choice.values[1] - y);
}

TEST(Auto, StartsWithWhatThePriorPredicts) {
  const Space space = large_space();
  SearchProblem problem{&space, {space.choice(7)}, 1};
  problem.prior = [&](const Choice& choice) {
    return choice.variant == 0 ? away_from(choice, 2, 8) : std::numeric_limits<double>::infinity();
  };
  const auto strategy = create_strategy("auto", problem);
  EXPECT_EQ(strategy->ask(), space.choice(7)) << "seeds come first";
  for (int i = 0; i < 8; ++i) {
    const auto choice = strategy->ask();
    ASSERT_TRUE(choice);
    EXPECT_EQ(choice->variant, 0U) << "nothing is predicted for the other variant";
    EXPECT_LE(problem.prior(*choice), 3);
  }
}

TEST(Auto, NeedsFewTrialsWithAGoodPriorAndNotManyMoreWithAWrongOne) {
  const Space space = large_space();
  const auto best_of = [&](const char* strategy, double exponent, std::size_t trials) {
    double sum = 0;
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      SearchProblem problem{&space, {}, seed};
      problem.prior = [&](const Choice& choice) {
        return std::pow(large_bowl(space.config(choice)).measurement.median_us, exponent);
      };
      double best = 1e9;
      const auto searching = create_strategy(strategy, problem);
      for (const Config& config : search(*searching, space, large_bowl, trials, 1)) {
        best = std::min(best, large_bowl(config).measurement.median_us);
      }
      sum += best / 4;
    }
    return sum;
  };
  EXPECT_LE(best_of("auto", 0.7, 20), 11);  // 15 of 10^7 are
  EXPECT_LE(best_of("auto", -0.7, 300), 1.3 * best_of("auto:prior=0", -0.7, 300));
}

TEST(RankByPrior, IsAscendingWithoutRepetitionsAndFullInSmallSpaces) {
  std::mt19937_64 random(5);
  const Space small({{"only", {{"A", {1, 2, 4, 8}}, {"B", {1, 2, 4, 8}}}, {}}});
  const SearchProblem::Prior prior = [](const Choice& choice) {
    // The other variant of the large space has one parameter.
    return choice.variant == 0 ? away_from(choice, 1, 2) : std::numeric_limits<double>::infinity();
  };
  const auto all = rank_by_prior(small, prior, 100, random);
  EXPECT_EQ(all.size(), small.count());
  EXPECT_EQ(all.front().first, 1);
  const Space large = large_space();
  const auto some = rank_by_prior(large, prior, 50, random);
  ASSERT_EQ(some.size(), 50U);
  EXPECT_EQ(some.front().first, 1);
  std::set<std::uint64_t> places;
  for (std::size_t i = 0; i < some.size(); ++i) {
    EXPECT_TRUE(places.insert(large.index(some[i].second).value()).second);
    if (i > 0) {
      EXPECT_LE(some[i - 1].first, some[i].first);
    }
  }
}

TEST(Random, IsUniformOverTheWholeSpace) {
  const Space space = large_space();
  const auto strategy = create_strategy("random", {&space, {}, 1});
  constexpr int draws = 10000;
  std::vector<int> seen(10);
  for (int i = 0; i < draws; ++i)
    ++seen[static_cast<std::size_t>(space.config(*strategy->ask())["P0"])];
  double chi_square = 0;
  for (const int count : seen) chi_square += std::pow(count - draws / 10, 2) / (draws / 10.0);
  EXPECT_LT(chi_square, 27.9);  // 0.1 % quantile for 9 degrees of freedom
}

TEST(Permutation, GivesEveryNumberOnceInAnOrderOfItsSeed) {
  for (const std::uint64_t size : {1, 2, 3, 4, 5, 63, 64, 65, 1000, 4097}) {
    std::set<std::uint64_t> seen;
    const Permutation order(size, 9);
    for (std::uint64_t place = 0; place < size; ++place) {
      EXPECT_LT(order[place], size);
      seen.insert(order[place]);
    }
    EXPECT_EQ(seen.size(), size);
  }
  const Permutation one(1000000, 1);
  const Permutation other(1000000, 2);
  int same = 0;
  for (std::uint64_t place = 0; place < 1000; ++place) same += one[place] == other[place] ? 1 : 0;
  EXPECT_LT(same, 5);
}

}  // namespace
}  // namespace greta::test::search_strategy_test
