// Protects: search spaces count, sample, index and list exactly the valid configurations.

#include "kernels/model/space.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "kernels/model/first_valid.hpp"
#include "kernels/model/random.hpp"
#include "tests/layers.hpp"

namespace greta::test::space_test {
namespace {

/// Returns a constraint that allows a random subset of its parameters' combinations.
Constraint random_constraint(const std::vector<Parameter>& parameters, std::mt19937_64& random) {
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters) {
    if (uniform_below(random, 3) == 0) names.push_back(parameter.name);
  }
  const std::uint64_t salt = random();
  const std::uint64_t share = 3 + uniform_below(random, 6);
  const auto holds = [names, salt, share](const Config& config) {
    std::uint64_t state = salt;
    for (const std::string& name : names) {
      state = mix64(state ^ static_cast<std::uint64_t>(config[name]));
    }
    return state % 10 < share;
  };
  return {"random", "by chance", {names, holds}};
}

Alternative random_alternative(const std::string& variant, std::mt19937_64& random) {
  Alternative alternative{variant, {}, {}};
  const std::uint64_t parameters = uniform_below(random, 6);
  for (std::uint64_t i = 0; i < parameters; ++i) {
    Parameter parameter{"P" + std::to_string(i), {}};
    const auto values = static_cast<int>(1 + uniform_below(random, 4));
    for (int value = 0; value < values; ++value) parameter.values.push_back(7 * value - 3);
    alternative.parameters.push_back(parameter);
  }
  const std::uint64_t constraints = uniform_below(random, 5);
  for (std::uint64_t i = 0; i < constraints; ++i) {
    alternative.constraints.push_back(random_constraint(alternative.parameters, random));
  }
  return alternative;
}

Space random_space(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  return Space({random_alternative("one", random), random_alternative("two", random)});
}

/// Returns all valid configurations by enumerating the whole Cartesian product.
std::set<Config> brute_force(const Space& space) {
  std::set<Config> found;
  for (const Alternative& alternative : space.alternatives()) {
    std::vector<Config> partial{Config{alternative.variant, {}}};
    for (const Parameter& parameter : alternative.parameters) {
      std::vector<Config> longer;
      for (const Config& config : partial) {
        for (const int value : parameter.values) {
          longer.push_back(config);
          longer.back().values.emplace_back(parameter.name, value);
        }
      }
      partial = std::move(longer);
    }
    for (const Config& config : partial) {
      if (std::all_of(
              alternative.constraints.begin(), alternative.constraints.end(),
              [&](const Constraint& constraint) { return constraint.condition.holds(config); })) {
        found.insert(config);
      }
    }
  }
  return found;
}

class RandomSpaces : public testing::TestWithParam<std::uint64_t> {
 protected:
  Space space_ = random_space(GetParam());
  std::set<Config> all_ = brute_force(space_);
};

TEST_P(RandomSpaces, CountEqualsBruteForce) {
  EXPECT_EQ(space_.count(), all_.size());
  EXPECT_EQ(space_.count("one") + space_.count("two"), all_.size());
}

TEST_P(RandomSpaces, AtAndIndexAreInverseBijections) {
  std::set<Config> seen;
  for (std::uint64_t i = 0; i < space_.count(); ++i) {
    const Config config = space_.at(i);
    EXPECT_TRUE(all_.contains(config)) << config.text();
    EXPECT_EQ(space_.index(config), i);
    EXPECT_EQ(space_.rejects(config), std::nullopt);
    seen.insert(config);
  }
  EXPECT_EQ(seen.size(), all_.size());
  EXPECT_THROW(space_.at(space_.count()), Error);
}

TEST_P(RandomSpaces, AListOfTheValidOnesGivesTheSameSpace) {
  std::vector<std::vector<Space::Positions>> valid(space_.alternatives().size());
  for (const Config& config : all_) {
    const Choice choice = space_.choice(config).value();
    valid[choice.variant].push_back(choice.values);
  }
  const Space listed = Space::listed(space_.alternatives(), std::move(valid));
  EXPECT_EQ(listed.count(), space_.count());
  std::set<Config> seen;
  for (std::uint64_t i = 0; i < listed.count(); ++i) {
    const Choice choice = listed.choice(i);
    EXPECT_EQ(listed.index(choice), i);
    EXPECT_TRUE(space_.index(choice));
    EXPECT_EQ(listed.neighbours(choice, false), space_.neighbours(choice, false));
    seen.insert(listed.config(choice));
  }
  EXPECT_EQ(seen.size(), all_.size());
}

TEST_P(RandomSpaces, UsedValuesAreThoseOfValidConfigurations) {
  for (const Alternative& alternative : space_.alternatives()) {
    std::map<std::string, std::set<int>> expected;
    for (const Config& config : all_) {
      if (config.variant != alternative.variant) continue;
      for (const auto& [name, value] : config.values) expected[name].insert(value);
    }
    const auto used = space_.used(alternative.variant);
    ASSERT_EQ(used.size(), alternative.parameters.size());
    for (std::size_t i = 0; i < used.size(); ++i) {
      EXPECT_EQ(used[i].name, alternative.parameters[i].name);
      const std::set<int> values(used[i].values.begin(), used[i].values.end());
      EXPECT_EQ(values, expected[used[i].name]);
      EXPECT_EQ(values.size(), used[i].values.size());
    }
  }
}

TEST_P(RandomSpaces, NeighboursAreValidAndComplete) {
  for (const Config& config : all_) {
    for (const bool adjacent : {false, true}) {
      std::set<Config> expected;
      for (const Config& other : all_) {
        if (other.variant != config.variant) continue;
        int differing = 0;
        bool one_step = true;
        for (std::size_t i = 0; i < config.values.size(); ++i) {
          const int distance = std::abs(config.values[i].second - other.values[i].second);
          differing += distance != 0;
          one_step = one_step && distance <= 7;
        }
        if (differing == 1 && (one_step || !adjacent)) expected.insert(other);
      }
      std::set<Config> found;
      for (const Choice& near : space_.neighbours(*space_.choice(config), adjacent)) {
        EXPECT_TRUE(found.insert(space_.config(near)).second);
      }
      EXPECT_EQ(found, expected) << config.text();
    }
  }
}

TEST_P(RandomSpaces, TextIsReadBackInAnyOrder) {
  for (const Config& config : all_) {
    EXPECT_EQ(space_.parse(config.text()).value(), config);
    Config reversed = config;
    std::reverse(reversed.values.begin(), reversed.values.end());
    EXPECT_EQ(space_.parse(reversed.text()).value(), config);
  }
}

constexpr std::uint64_t first_seed = 1, last_seed = 60;
INSTANTIATE_TEST_SUITE_P(Seeds, RandomSpaces, testing::Range(first_seed, last_seed + 1));

// The tests above would be meaningless if most random spaces were empty.
TEST(RandomSpacesThatAreTested, AreMostlyNotEmpty) {
  int full = 0;
  for (std::uint64_t seed = first_seed; seed <= last_seed; ++seed) {
    full += brute_force(random_space(seed)).size() > 3 ? 1 : 0;
  }
  EXPECT_GE(full, 25);
}

Space tiles() {
  const auto threads = [](const Config& c) { return c["BM"] * c["BN"] <= 1024; };
  return Space({{"tiled",
                 {{"BM", {16, 32, 64}}, {"BN", {16, 32, 64}}},
                 {{"threads", "more than 1024 threads", {{"BM", "BN"}, threads}}}},
                {"gemv", {{"ROWS", {1, 2, 4}}}, {}},
                {"none", {{"X", {1}}}, {{"never", "not here", false}}}});
}

TEST(Space, SamplesAreUniform) {
  const Space space = random_space(28);
  ASSERT_GT(space.count(), 50U);
  std::mt19937_64 random(5);
  std::map<Config, double> seen;
  const double each = 200;
  const double draws = each * static_cast<double>(space.count());
  for (double i = 0; i < draws; ++i) ++seen[space.sample(random)];
  double chi_square = 0;
  for (std::uint64_t i = 0; i < space.count(); ++i) {
    const double difference = seen[space.at(i)] - each;
    chi_square += difference * difference / each;
  }
  const double freedom = static_cast<double>(space.count()) - 1;
  EXPECT_NEAR(chi_square, freedom, 4 * std::sqrt(2 * freedom));
}

TEST(Space, SamplesOneVariant) {
  const Space space = tiles();
  std::mt19937_64 random(5);
  std::set<Config> seen;
  for (int i = 0; i < 200; ++i) seen.insert(space.sample("gemv", random));
  EXPECT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen.begin()->variant, "gemv");
  EXPECT_THROW(space.sample("none", random), Error);
  EXPECT_THROW(space.sample("absent", random), Error);
}

TEST(Space, CountsPerVariant) {
  const Space space = tiles();
  EXPECT_EQ(space.cartesian_size(), 9U + 3U + 1U);
  EXPECT_EQ(space.count(), 6U + 3U);
  EXPECT_EQ(space.count("none"), 0U);
  EXPECT_THROW(space.count("absent"), Error);
  EXPECT_EQ(Space(std::vector<Alternative>{}).count(), 0U);
}

// Also where no constraint alone is the reason.
TEST(Space, NamesTheConstraintsThatLeaveNothing) {
  const auto space = [](std::vector<Constraint> constraints) {
    Alternative one{"one", {{"X", {1, 2, 4}}}, {}};
    one.constraints = std::move(constraints);
    return std::vector{one};
  };
  const Constraint large{"large", "X must be at least 2", p["X"] >= 2};
  const Constraint more{"more", "X must be above 4", p["X"] > 4};
  const Constraint most{"most", "X must be above 7", p["X"] > 7};
  EXPECT_EQ(why_empty(space({large, more})), "one: more: X must be above 4");
  EXPECT_EQ(why_empty(space({large, more, most})),
            "one: more: X must be above 4, and most: X must be above 7");
}

TEST(Space, NamesTheConstraintThatRejects) {
  const Space space = tiles();
  EXPECT_EQ(space.rejects({"tiled", {{"BM", 64}, {"BN", 64}}}), "threads: more than 1024 threads");
  EXPECT_EQ(space.rejects({"tiled", {{"BM", 100}, {"BN", 64}}}),
            "domain: BM=100 is not one of 16, 32, 64");
  EXPECT_EQ(space.rejects({"tiled", {{"BN", 16}}}), "domain: the parameters of tiled are BM BN");
  EXPECT_EQ(space.rejects({"odd", {}}), "domain: variant \"odd\" is not one of tiled, gemv, none");
  EXPECT_EQ(space.index({"tiled", {{"BM", 64}, {"BN", 64}}}), std::nullopt);
  EXPECT_EQ(space.index({"odd", {}}), std::nullopt);
}

TEST(Space, ParseSaysWhatIsWrong) {
  const Space space = tiles();
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "variant \"\" is not one of tiled, gemv, none"},
      {"tiled BM=100 BN=16", "domain: BM=100 is not one of 16, 32, 64"},
      {"tiled BM=100", "domain: BM=100 is not one of 16, 32, 64"},
      {"tiled BM=64 BN=64", "threads: more than 1024 threads"},
      {"tiled BM=16", "BN is missing"},
      {"tiled BM=16 BM=16 BN=16", "BM is given twice"},
      {"tiled BM=16 BN=16 BK=4", "\"BK=4\" names no parameter"},
      {"tiled BM=16 BN", "\"BN\" has no integer value"},
      {"tiled BM=16 BN=", "\"BN=\" has no integer value"},
      {"tiled BM=16 BN=16x", "\"BN=16x\" has no integer value"},
      {"tiled BM=16 BN=99999999999", "\"BN=99999999999\" has no integer value"},
  };
  for (const auto& [text, why] : cases) {
    const auto parsed = space.parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.failure().message, "configuration \"" + text + "\": " + why);
    EXPECT_EQ(parsed.failure().status, Status::constraints);
  }
}

TEST(Space, RefusesContradictions) {
  const auto yes = [](const Config&) { return true; };
  EXPECT_THROW(Space({{"a", {}, {}}, {"a", {}, {}}}), Error);
  EXPECT_THROW(Space({{"a", {{"X", {1}}, {"X", {2}}}, {}}}), Error);
  EXPECT_THROW(Space({{"a", {{"X", {1, 1}}}, {}}}), Error);
  EXPECT_THROW(Space({{"a", {{"X", {1}}}, {{"c", "", {{"Y"}, yes}}}}}), Error);
  const auto reads_more = [](const Config& c) { return c["X"] == c["Y"]; };
  EXPECT_THROW(Space({{"a", {{"X", {1}}, {"Y", {1}}}, {{"c", "", {{"X"}, reads_more}}}}}).count(),
               Error);
}

TEST(Space, EstimatesRejectionRates) {
  const auto rates = tiles().rejection_rates(3, 13000);
  ASSERT_EQ(rates.size(), 2U);
  EXPECT_EQ(rates[0].first, "threads");
  EXPECT_NEAR(rates[0].second, 3.0 / 13, 0.02);
  EXPECT_EQ(rates[1].first, "never");
  EXPECT_NEAR(rates[1].second, 1.0 / 13, 0.02);
}

/// Returns 12 parameters of 10 values, each coupled to the next. `calls` counts constraint
/// evaluations.
Space chain(const std::shared_ptr<std::uint64_t>& calls) {
  Alternative alternative{"chain", {}, {}};
  for (int i = 0; i < 12; ++i) {
    alternative.parameters.push_back({"P" + std::to_string(i), {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}});
  }
  for (std::size_t i = 0; i + 1 < alternative.parameters.size(); ++i) {
    const std::string left = alternative.parameters[i].name;
    const std::string right = alternative.parameters[i + 1].name;
    alternative.constraints.push_back(
        {"ascending" + left, "values must not fall", {{left, right}, [=](const Config& config) {
                                                        ++*calls;
                                                        return config[left] <= config[right];
                                                      }}});
  }
  return Space({alternative});
}

TEST(Space, CountsTenToTheTwelveWithoutEnumerating) {
  const auto calls = std::make_shared<std::uint64_t>(0);
  const Space space = chain(calls);
  EXPECT_EQ(space.cartesian_size(), 1'000'000'000'000U);
  EXPECT_EQ(space.count(), 293'930U);  // multisets of 12 out of 10: C(21, 9)
  EXPECT_LE(*calls, 11U * 100U);       // every pair of values of every constraint once
  std::mt19937_64 random(1);
  for (int i = 0; i < 100; ++i) space.sample(random);
  EXPECT_LE(*calls, 11U * 100U);
}

TEST(Space, SaturatesTheCartesianSize) {
  Alternative alternative{"huge", {}, {}};
  for (int i = 0; i < 30; ++i) {
    alternative.parameters.push_back({"P" + std::to_string(i), {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}});
  }
  const std::string first = alternative.parameters.front().name;
  for (const Parameter& parameter : alternative.parameters) {
    alternative.constraints.push_back({"equal", "", p[first] == p[parameter.name]});
  }
  const Space space({alternative});
  EXPECT_EQ(space.cartesian_size(), std::uint64_t{1} << 63);
  EXPECT_EQ(space.count(), 10U);
}

TEST(FirstValid, IsTheFirstOfTheVariantsSpace) {
  std::mt19937_64 random(3);
  int none = 0, impossible = 0;
  for (int i = 0; i < 300; ++i) {
    const Alternative alternative = random_alternative("one", random);
    const Space space({alternative});
    const auto first = first_valid(alternative);
    ASSERT_EQ(first.has_value(), space.count() > 0);
    if (first) ASSERT_EQ(*first, space.at(0));
    if (!is_possible(alternative)) ASSERT_FALSE(first);
    none += first ? 0 : 1;
    impossible += is_possible(alternative) ? 0 : 1;
  }
  EXPECT_GT(impossible, 10);
  EXPECT_GT(none, impossible);
  EXPECT_LT(none, 200);
}

TEST(FirstValid, RefusesConstraintsOfParametersThatAreNotThere) {
  EXPECT_THROW(first_valid({"one", {{"A", {1, 2}}}, {{"other", "", p["B"] == 1}}}), Error);
}

TEST(Config, TextHashAndLookup) {
  const Config config{"tiled", {{"BM", 128}, {"BN", -1}}};
  EXPECT_EQ(config.text(), "tiled BM=128 BN=-1");
  EXPECT_EQ(config["BN"], -1);
  EXPECT_TRUE(config.has("BM"));
  EXPECT_FALSE(config.has("BK"));
  EXPECT_THROW(config["BK"], Error);
  Config other = config;
  EXPECT_EQ(config.hash(), other.hash());
  other.values[1].second = 1;
  EXPECT_NE(config.hash(), other.hash());
  EXPECT_NE(config, other);
}

}  // namespace
}  // namespace greta::test::space_test
