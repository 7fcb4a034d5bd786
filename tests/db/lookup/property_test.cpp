// Protects: lookups in random databases of two layers and two cards follow their rules, which are
// implemented here a second time without an index.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>

#include "db/distance.hpp"
#include "kernels/prior/predicted_config.hpp"
#include "tests/catalog.hpp"
#include "tests/db/lookup/lookup_fixture.hpp"

namespace greta::test::property_test {
namespace {

using test::card;
using test::gemm;
using test::winner;

struct Expected {
  Config config;
  LookupOrigin origin = LookupOrigin::fallback;
};

/// `layers` are the winners of each database, the user's first.
Expected by_the_rules(const Problem& asked, const DeviceInfo& here,
                      const std::vector<std::vector<StoredWinner>>& layers) {
  using Rank = std::tuple<bool, double, std::vector<std::pair<std::string, std::int64_t>>,
                          std::size_t, std::string>;
  std::vector<std::pair<Rank, const StoredWinner*>> order;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    for (const auto& one : layers[layer]) {
      const auto fingerprint = one.device.fingerprint();
      order.push_back({{fingerprint != here.fingerprint(), shape_distance(asked, one.problem),
                        one.problem.dims, layer, fingerprint},
                       &one});
    }
  }
  std::sort(order.begin(), order.end());
  for (const auto& [rank, one] : order) {
    if (std::get<1>(rank) > 1) continue;  // another shape that is not near
    const bool exact = !std::get<0>(rank) && std::get<1>(rank) == 0;
    const Config config = !exact && one->winner.is_default
                              ? built_in(asked.op).default_config(asked, here)
                              : one->winner.config;
    if (!catalog().valid(asked, here, config)) continue;
    const auto origin = std::get<0>(rank)        ? LookupOrigin::same_architecture
                        : std::get<1>(rank) != 0 ? LookupOrigin::nearest_shape
                                                 : LookupOrigin::exact;
    return {config, origin};
  }
  return {predicted_config(built_in(asked.op), asked, here).value(), LookupOrigin::predicted};
}

Problem random_problem(std::mt19937_64& random) {
  const auto extent = [&] { return std::int64_t{4} << random() % 6; };
  return gemm(extent(), extent(), extent());
}

/// Returns configurations of all variants, each valid for some problems.
std::vector<Config> random_configs(const DeviceInfo& device, std::mt19937_64& random) {
  std::vector<Config> configs;
  for (const Problem& problem : {gemm(4, 64, 64), gemm(32, 32, 128), gemm(128, 128, 128)}) {
    const Space space = built_in("gemm").space(problem, device);
    for (int i = 0; i < 8; ++i) configs.push_back(space.sample(random));
  }
  return configs;
}

/// Returns a random problem, or one that has a winner.
Problem next_problem(const std::vector<std::vector<StoredWinner>>& layers,
                     std::mt19937_64& random) {
  const auto& layer = layers[random() % layers.size()];
  if (layer.empty() || random() % 2 == 0) return random_problem(random);
  return layer[random() % layer.size()].problem;
}

TEST(LookupProperty, AnswersByTheRules) {
  const std::vector<DeviceInfo> cards = {card("gfx942", "aa"), card("gfx942", "bb")};
  std::mt19937_64 random(11);
  const auto configs = random_configs(cards[0], random);
  std::array<int, 4> seen{};
  for (int round = 0; round < 30; ++round) {
    test::Databases databases;
    std::vector<StoredWinner> application, shipped;
    const auto random_winner = [&] {
      const Problem problem = random_problem(random);
      const DeviceInfo& device = cards[random() % 3 != 0];
      auto one = winner(problem, device, configs[random() % configs.size()]);
      one.winner.is_default = random() % 4 == 0;
      one.provenance.driver = random() % 2 ? "driver 1" : "driver 2";
      one.provenance.started_utc = "2026-11-0" + std::to_string(1 + random() % 9) + "T00:00:00Z";
      return one;
    };
    for (auto left = random() % 5; left > 0; --left) databases.add(random_winner());
    for (auto left = random() % 5; left > 0; --left) shipped.push_back(random_winner());
    for (auto left = random() % 3; left > 0; --left) application.push_back(random_winner());
    databases.ship(shipped);
    databases.add_application(application);
    const LookupFiles files = databases.files();
    std::vector<std::filesystem::path> in_order = files.application;
    if (files.own) in_order.insert(in_order.begin(), *files.own);
    if (!shipped.empty()) in_order.push_back(databases.shipped_file("gfx942"));
    std::vector<std::vector<StoredWinner>> layers;
    for (const auto& file : in_order) {
      layers.push_back(TunedDb::open(file, TunedDb::Mode::read_only).winners());
    }
    const auto lookup = databases.open(cards[0]);
    for (int i = 0; i < 12; ++i) {
      const Problem asked = next_problem(layers, random);
      const Expected expected = by_the_rules(asked, cards[0], layers);
      const Answer& answer = lookup.find(asked);
      ASSERT_EQ(answer.origin, expected.origin) << asked.key();
      ASSERT_EQ(answer.config, expected.config) << asked.key();
      ++seen[static_cast<std::size_t>(answer.origin)];
    }
    EXPECT_TRUE(lookup.unreadable().empty());
  }
  for (const int count : seen) EXPECT_GT(count, 5);  // every kind of answer occurred
}

}  // namespace
}  // namespace greta::test::property_test
