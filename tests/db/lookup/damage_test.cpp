// Protects: unsafe, unreadable and missing data is not used and is reported; everything else is
// used.
#include <gtest/gtest.h>

#include <random>

#include "tests/catalog.hpp"
#include "tests/db/lookup/lookup_fixture.hpp"

namespace greta::test::damage_test {
namespace {

using test::card;
using test::gemm;
using test::plain_config;
using test::winner;

class LookupDamage : public ::testing::Test {
 protected:
  void SetUp() override {
    databases_.add(winner(asked_, here_, plain_config(1)));
    databases_.add(winner(near_, here_, plain_config(2)));
  }

  const DeviceInfo here_ = card("gfx942", "aa"), beside_ = card("gfx942", "bb");
  const Problem asked_ = gemm(64, 64, 64), near_ = gemm(128, 64, 64);
  test::Databases databases_;
};

TEST_F(LookupDamage, AnUnreadableConfigurationIsPassedOver) {
  databases_.damage("UPDATE winners SET config = '= =' WHERE problem LIKE '%m=64 %'");
  const auto lookup = databases_.open(here_);
  EXPECT_TRUE(lookup.unreadable().empty());  // nothing was looked up
  EXPECT_EQ(lookup.find(asked_).origin, LookupOrigin::nearest_shape);
  ASSERT_EQ(lookup.unreadable().size(), 1U);
  EXPECT_NE(lookup.unreadable()[0].find("own.db"), std::string::npos);
  EXPECT_EQ(lookup.find(near_).origin, LookupOrigin::exact);
}

TEST_F(LookupDamage, AConfigurationWithAnotherDigitIsCheckedAsAnyOther) {
  databases_.damage("UPDATE winners SET config = 'naive THREADS=257' WHERE problem LIKE '%m=64 %'");
  EXPECT_EQ(databases_.open(here_).find(asked_).problem, near_.key());
}

TEST_F(LookupDamage, AKeyThatIsNoneIsPassedOverAndSaid) {
  for (const char* key :
       {"gemm", "gemm dtype=f32 out=f32 m=064 n=64 k=64", "gemm dtype=f32 out=f32 m=64 n=64 k=",
        "gemm dtype=f32 out=f32 m=64 n=64 k=64 ", "gemm dtype=f32 out=f32 m=64 n=64k=64"}) {
    databases_.damage(std::string("UPDATE winners SET problem = '") + key + "' WHERE problem <> '" +
                      near_.key() + "'");
    const auto lookup = databases_.open(here_);
    ASSERT_EQ(lookup.unreadable().size(), 1U) << key;
    EXPECT_NE(lookup.unreadable()[0].find(key), std::string::npos);
    EXPECT_EQ(lookup.find(asked_).problem, near_.key());
  }
}

TEST_F(LookupDamage, AnUnreadableDeviceTakesOnlyItsOwnWinnersAlong) {
  databases_.add(winner(asked_, beside_, plain_config(3)));
  databases_.damage("UPDATE devices SET info = '{}' WHERE fingerprint = '" + beside_.fingerprint() +
                    "'");
  const auto lookup = databases_.open(here_);
  EXPECT_EQ(lookup.unreadable().size(), 1U);
  EXPECT_EQ(lookup.find(asked_).origin, LookupOrigin::exact);
}

TEST_F(LookupDamage, AResultThatIsRemovedMeanwhileIsPassedOver) {
  const auto lookup = databases_.open(here_);
  databases_.damage("DELETE FROM winners WHERE problem LIKE '%m=64 %'");
  EXPECT_EQ(lookup.find(asked_).problem, near_.key());
}

TEST_F(LookupDamage, AShippedFileMayBeReplacedWhileItIsOpen) {
  test::Databases databases;
  databases.ship({winner(asked_, here_, plain_config(1))});
  const auto lookup = databases.open(here_);
  databases.ship({winner(asked_, here_, plain_config(2))});
  EXPECT_EQ(lookup.find(asked_).config, plain_config(1));
  EXPECT_EQ(databases.open(here_).find(asked_).config, plain_config(2));
}

TEST_F(LookupDamage, AnUnsafeDeviceIsRefusedUnlessTheUserInsists) {
  databases_.own().set_unsafe(here_, {"fill", "crash", "it crashed", "", ""});
  try {
    databases_.open(here_);
    FAIL() << "it was opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::unavailable);
    EXPECT_NE(std::string(error.what()).find("health checks"), std::string::npos);
  }
  EXPECT_EQ(databases_.open(here_, {true, true}).find(asked_).origin, LookupOrigin::exact);
  EXPECT_EQ(databases_.open(beside_).find(asked_).origin, LookupOrigin::same_architecture);
}

TEST_F(LookupDamage, UnsafePartsAreNotUsed) {
  auto half = gemm(512, 512, 512);
  half.dtype = half.out_dtype = DType::f16;
  std::mt19937_64 random(1);
  const auto matrix = built_in("gemm").space(half, here_).sample("matrix", random);
  databases_.add(winner(half, here_, matrix));
  ASSERT_EQ(databases_.open(here_).find(half).origin, LookupOrigin::exact);
  databases_.own().set_unsafe(here_, {"matrix", "correctness", "wrong", "", ""});
  const auto lookup = databases_.open(here_);
  EXPECT_TRUE(lookup.device().matrix_operations.empty());
  EXPECT_EQ(lookup.find(half).origin, LookupOrigin::predicted);
  EXPECT_NE(lookup.find(half).config.variant, "matrix");
  databases_.own().set_unsafe(here_, {"f16", "correctness", "wrong", "", ""});
  EXPECT_THROW(databases_.open(here_).find(half), Error);  // no f16 kernel can run
}

}  // namespace
}  // namespace greta::test::damage_test
