// Protects: winners of a hardware model are found for every API, and "which API is faster" is
// answered only with the certainty of the measurements.

#include <gtest/gtest.h>

#include "db/hardware.hpp"
#include "tests/db/fixture.hpp"
#include "tests/layers.hpp"

namespace greta::test::hardware_winners_test {
namespace {

/// Returns the sample device as HIP reports it.
DeviceInfo through_hip() {
  DeviceInfo device = sample_device();
  device.backend = Api::hip;
  device.index = 0;
  device.name = "Example GPU 9000 (another driver's words)";
  device.card.uuid = "ffffffffffffffffffffffffffffffff";  // drivers may differ
  return device;
}

DeviceInfo another_model() {
  DeviceInfo device = through_hip();
  device.index = 1;
  device.name = "Example GPU 9000 SE";
  device.card.pci_address = "0000:41:00.0";
  device.card.uuid = "0123456789abcdef0123456789abcdef";
  return device;
}

/// Returns another card of the model that HIP reports.
DeviceInfo sister() {
  DeviceInfo device = through_hip();
  device.index = 1;
  device.card = {"99999999999999999999999999999999", "0000:42:00.0"};
  return device;
}

StoredDevice with_cards(const DeviceInfo& device, const std::vector<Card>& cards) {
  StoredDevice stored{device, "", "", {}};
  for (const auto& card : cards) stored.cards.push_back({card, "", ""});
  return stored;
}

class HardwareWinnersTest : public ::testing::Test {
 protected:
  /// Adds a session on this device with its winner. Returns the session.
  std::int64_t add(const DeviceInfo& device, double low_us, double median_us, double high_us,
                   bool cold = true) {
    auto about = sample_session();
    about.device = device;
    about.cold = cold;
    auto winner = sample_winner();
    winner.cold = cold;
    winner.measurement.low_us = low_us;
    winner.measurement.median_us = median_us;
    winner.measurement.high_us = high_us;
    const auto session = db_.begin_session(about);
    db_.set_winner(session, winner);
    return session;
  }
  HardwareWinners find(const DeviceInfo& device) {
    return db_.find_winners_of_hardware(device, sample_problem().key(), true);
  }

  TemporaryFolder folder_;
  TunedDb db_ = TunedDb::open(folder_ / "t.db", TunedDb::Mode::read_write);
};

TEST(HardwareGroups, AreOfDevicesThatShareACard) {
  const auto vulkan = sample_device(), hip = through_hip(), other = another_model();
  const HardwareGroups groups({with_cards(vulkan, {vulkan.card}),
                               with_cards(hip, {sister().card, hip.card}),
                               with_cards(other, {other.card})});
  EXPECT_TRUE(groups.same(vulkan, hip));
  EXPECT_TRUE(groups.same(hip, sister()));
  EXPECT_TRUE(groups.same(vulkan, sister()));
  EXPECT_FALSE(groups.same(vulkan, other));
  EXPECT_FALSE(groups.same(hip, other));
  auto unknown = hip;
  unknown.name = "unknown";
  EXPECT_FALSE(groups.same(unknown, hip));
  EXPECT_TRUE(groups.same(unknown, unknown));
}

TEST(HardwareGroups, AreJoinedByADeviceThatSharesACardWithEach) {
  const auto vulkan = sample_device(), hip = through_hip();
  const auto other = sister().card;
  auto second_driver = vulkan;
  second_driver.name = "Example GPU 9000 by another driver";
  const auto first = with_cards(vulkan, {vulkan.card}), second = with_cards(second_driver, {other});
  EXPECT_FALSE(HardwareGroups({first, second}).same(vulkan, second_driver));
  EXPECT_TRUE(HardwareGroups({first, second, with_cards(hip, {hip.card, other})})
                  .same(vulkan, second_driver));
  // The card in use may be new to a device that the database has.
  EXPECT_FALSE(HardwareGroups({first, with_cards(hip, {other})}).same(vulkan, hip));
  EXPECT_TRUE(HardwareGroups({first, with_cards(hip, {other}), with_cards(hip, {hip.card})})
                  .same(vulkan, hip));
}

TEST(HardwareGroups, NeedMoreThanAPlaceInAMachine) {
  const auto vulkan = sample_device();
  const auto same = [&](DeviceInfo hip) {
    return HardwareGroups({with_cards(vulkan, {vulkan.card}), with_cards(hip, {hip.card})})
        .same(vulkan, hip);
  };
  EXPECT_TRUE(same(through_hip()));
  auto hip = through_hip();
  hip.vendor = "Another";
  EXPECT_FALSE(same(hip));
  hip = through_hip();
  hip.compute_units = 60;
  EXPECT_FALSE(same(hip));
  hip.compute_units = 0;  // not every API reports it
  EXPECT_TRUE(same(hip));
  hip = through_hip();
  hip.kind = DeviceKind::cpu;
  EXPECT_FALSE(same(hip));
  hip = through_hip();
  hip.card.pci_address = "";
  EXPECT_FALSE(same(hip));
  hip.card.uuid = vulkan.card.uuid;
  EXPECT_TRUE(same(hip));
}

TEST_F(HardwareWinnersTest, WinnersOfBothApisAreFoundThroughEither) {
  const auto vulkan = add(sample_device(), 19, 20, 21);
  const auto hip = add(through_hip(), 9, 10, 11);
  add(another_model(), 1, 2, 3);
  add(sample_device(), 4, 5, 6, false);
  for (const auto& device : {sample_device(), through_hip()}) {
    const auto found = find(device);
    ASSERT_EQ(found.winners.size(), 2U);
    EXPECT_EQ(found.winners[0].session, hip);
    EXPECT_EQ(found.winners[0].device_id, "hip:0");
    EXPECT_EQ(found.winners[1].session, vulkan);
    ASSERT_EQ(found.comparisons.size(), 1U);
    EXPECT_TRUE(found.sure());
    EXPECT_FALSE(found.comparisons[0].measured());
    EXPECT_DOUBLE_EQ(found.comparisons[0].ratio, 2);
    EXPECT_DOUBLE_EQ(found.comparisons[0].low, 19.0 / 11);
    EXPECT_DOUBLE_EQ(found.comparisons[0].high, 21.0 / 9);
  }
  EXPECT_EQ(find(another_model()).winners.size(), 1U);
  EXPECT_TRUE(
      db_.find_winners_of_hardware(sample_device(), "another problem", true).winners.empty());
}

TEST_F(HardwareWinnersTest, CardsOfAModelHaveOneWinner) {
  add(through_hip(), 19, 20, 21);
  const auto later = add(sister(), 29, 30, 31);
  add(sample_device(), 9, 10, 11);
  for (const auto& device : {through_hip(), sister(), sample_device()}) {
    const auto found = find(device);
    ASSERT_EQ(found.winners.size(), 2U);
    EXPECT_EQ(found.winners[1].session, later);
    EXPECT_EQ(found.winners[1].device.card, sister().card);
  }
  EXPECT_EQ(db_.counts().devices, 2);
  EXPECT_EQ(db_.counts().cards, 3);
  EXPECT_EQ(db_.sessions().size(), 3U);
}

TEST_F(HardwareWinnersTest, OverlappingIntervalsAreNotSure) {
  add(sample_device(), 9.5, 10.1, 10.5);
  const auto hip = add(through_hip(), 9.8, 10, 10.2);
  const auto found = find(sample_device());
  EXPECT_EQ(found.winners[0].session, hip);
  EXPECT_FALSE(found.sure());
}

TEST_F(HardwareWinnersTest, AlternatingTurnsDecideWhereTheyWereTaken) {
  const auto vulkan = add(sample_device(), 9.5, 10.1, 10.5);
  const auto hip = add(through_hip(), 9.8, 10, 10.2);
  Comparison turns{vulkan, hip, 1.02, 1.01, 1.03, 0.95, {10, 10.1}, {10.2, 10.3}};
  db_.set_comparison(turns);
  auto found = find(through_hip());
  EXPECT_EQ(found.winners[0].session, vulkan);
  EXPECT_TRUE(found.sure());
  EXPECT_EQ(found.comparisons[0].slower_us, turns.slower_us);
  EXPECT_EQ(found.comparisons[0].confidence, 0.95);

  std::swap(turns.faster, turns.slower);  // a later comparison of the same two replaces it
  db_.set_comparison(turns);
  found = find(through_hip());
  EXPECT_EQ(found.winners[0].session, hip);

  add(sample_device(), 4, 5, 6);  // a new winner; the turns belong to the old one
  found = find(through_hip());
  EXPECT_FALSE(found.comparisons[0].measured());
  EXPECT_EQ(found.winners[0].device_id, "vulkan:2");
}

TEST_F(HardwareWinnersTest, OnlySessionsOfOneProblemCompare) {
  const auto cold = add(sample_device(), 9, 10, 11);
  const auto warm = add(through_hip(), 9, 10, 11, false);
  Comparison comparison{cold, warm, 1, 1, 1, 0.95, {1}, {1}};
  EXPECT_NE(error_of([&] { db_.set_comparison(comparison); }).find("of one problem"),
            std::string::npos);
  comparison.slower = 99;
  EXPECT_THROW(db_.set_comparison(comparison), Error);
}

TEST_F(HardwareWinnersTest, AllWinnersComeByProblemAndHardware) {
  add(sample_device(), 19, 20, 21);
  add(another_model(), 1, 2, 3);
  add(through_hip(), 9, 10, 11);
  add(through_hip(), 4, 5, 6, false);
  const auto all = db_.winners_by_hardware();
  ASSERT_EQ(all.size(), 3U);
  std::size_t largest = 0;
  for (const auto& card : all) largest = std::max(largest, card.winners.size());
  EXPECT_EQ(largest, 2U);
}

TEST(CompareCertified, HasTheFasterOneFirstWhicheverComesFirst) {
  Measurement fast;
  fast.low_us = 9, fast.median_us = 10, fast.high_us = 11;
  Measurement slow;
  slow.low_us = 10.5, slow.median_us = 12, slow.high_us = 13;
  for (const auto& c : {compare_certified(1, fast, 2, slow), compare_certified(2, slow, 1, fast)}) {
    EXPECT_EQ(c.faster, 1);
    EXPECT_EQ(c.slower, 2);
    EXPECT_DOUBLE_EQ(c.ratio, 1.2);
    EXPECT_FALSE(c.sure());
  }
}

}  // namespace
}  // namespace greta::test::hardware_winners_test
