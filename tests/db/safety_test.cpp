// Protects: failed health checks are kept per device and driver, and disable exactly the features
// they stand for.

#include "db/safety.hpp"

#include <gtest/gtest.h>

#include "db/tuned_db.hpp"
#include "tests/db/fixture.hpp"
#include "tests/layers.hpp"

namespace greta::test::safety_test {
namespace {

UnsafePart part(const std::string& check) {
  return {check, "timeout", "its process was killed", "", "2026-11-20T12:00:00Z"};
}

TEST(Safety, FailuresAreKeptForADeviceWithItsDriver) {
  const TemporaryFolder folder;
  auto db = TunedDb::open(folder / "t.db", TunedDb::Mode::read_write);
  DeviceInfo device = sample_device();
  EXPECT_TRUE(db.unsafe(device).empty());
  db.set_unsafe(device, part("matrix"));
  db.set_unsafe(device, part("f16"));
  db.set_unsafe(device, part("f16"));  // found again
  ASSERT_EQ(db.unsafe(device).size(), 2U);
  EXPECT_EQ(db.unsafe(device)[0].check, "f16");
  EXPECT_EQ(db.unsafe(device)[0].driver, device.driver);
  EXPECT_EQ(db.unsafe(device)[0].message, "its process was killed");
  EXPECT_TRUE(db.check().empty());

  DeviceInfo updated = device;
  updated.driver += " and one more";
  EXPECT_TRUE(db.unsafe(updated).empty());
  db.clear_unsafe(updated, "f16");
  EXPECT_EQ(db.unsafe(device).size(), 2U);
  db.clear_unsafe(device, "f16");
  ASSERT_EQ(db.unsafe(device).size(), 1U);
  EXPECT_EQ(db.unsafe(device)[0].check, "matrix");
}

TEST(Safety, PruningKeepsThem) {
  const TemporaryFolder folder;
  auto db = TunedDb::open(folder / "t.db", TunedDb::Mode::read_write);
  db.set_unsafe(sample_device(), part("default"));
  static_cast<void>(db.prune({}, false));
  EXPECT_EQ(db.unsafe(sample_device()).size(), 1U);
}

TEST(Safety, ChecksForbidWhatTheyStandFor) {
  EXPECT_EQ(avoided({}), Avoided{});
  EXPECT_EQ(avoided({part("f16")}), (Avoided{false, true, false}));
  EXPECT_EQ(avoided({part("matrix")}), (Avoided{false, false, true}));
  for (const char* check : {"fill", "ultrasafe", "default"}) {
    EXPECT_TRUE(avoided({part(check)}).device) << check;
  }
}

TEST(Safety, FeaturesAreMaskedAndTheIdentityStays) {
  DeviceInfo device = sample_device();
  device.f16_arithmetic = device.f16_storage = true;
  device.matrix_operations = {{DType::f16, DType::f32, 16, 16, 16},
                              {DType::f32, DType::f32, 16, 16, 4}};
  const DeviceInfo no_f16 = without(device, {false, true, false});
  EXPECT_FALSE(no_f16.f16_arithmetic || no_f16.f16_storage);
  ASSERT_EQ(no_f16.matrix_operations.size(), 1U);
  EXPECT_EQ(no_f16.matrix_operations[0].input, DType::f32);
  EXPECT_TRUE(without(device, {false, false, true}).matrix_operations.empty());
  EXPECT_EQ(no_f16.fingerprint(), device.fingerprint());
}

}  // namespace
}  // namespace greta::test::safety_test
