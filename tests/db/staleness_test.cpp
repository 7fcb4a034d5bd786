// Protects: two drivers of one card, such as RADV and AMDVLK, don't make each other's results
// stale.

#include "db/staleness.hpp"

#include <gtest/gtest.h>

#include "tests/catalog.hpp"

namespace greta::test::staleness_test {
namespace {

DeviceInfo card(const char* name, const char* driver) {
  DeviceInfo device;
  device.backend = Api::vulkan;
  device.name = name;
  device.architecture = "gfx1100";
  device.driver = driver;
  return device;
}

StoredWinner result_of(const DeviceInfo& device) {
  StoredWinner result;
  result.problem = Problem::parse("gemm dtype=f32 out=f32 m=8 n=8 k=8").value();
  result.device = device;
  result.provenance.driver = device.driver;
  result.provenance.template_key = built_in("gemm").key();
  return result;
}

const DeviceInfo radv = card("AMD Radeon RX 7900 XTX (RADV NAVI31)", "radv Mesa 24.1.0");
const DeviceInfo amdvlk = card("AMD Radeon RX 7900 XTX", "AMD open-source driver 2024.Q2.1");

std::vector<std::string> reasons(const DeviceInfo& found_with, std::vector<DeviceInfo> present) {
  return StalenessJudge(catalog(), present).reasons(result_of(found_with));
}

TEST(Staleness, EachOfTwoDriversKeepsItsResults) {
  ASSERT_EQ(radv.fingerprint(), amdvlk.fingerprint());
  EXPECT_TRUE(reasons(radv, {radv, amdvlk}).empty());
  EXPECT_TRUE(reasons(amdvlk, {radv, amdvlk}).empty());
}

TEST(Staleness, AnUpdateConcernsTheResultsOfItsDriver) {
  DeviceInfo updated = radv;
  updated.driver = "radv Mesa 25.0.0";
  EXPECT_EQ(reasons(radv, {amdvlk, updated}),
            std::vector<std::string>{"driver was radv Mesa 24.1.0, is radv Mesa 25.0.0"});
  EXPECT_TRUE(reasons(amdvlk, {amdvlk, updated}).empty());
}

TEST(Staleness, AnotherDriverAloneIsNamed) {
  EXPECT_EQ(reasons(radv, {amdvlk}).size(), 1U);
}

}  // namespace
}  // namespace greta::test::staleness_test
