// Protects: copies between devices arrive, in both directions and at offsets; ranges and devices
// that don't fit are refused; an API without such copies says so in one line.
#include "runtime/device/peer.hpp"

#include <gtest/gtest.h>

#include "runtime/device/backend.hpp"
#include "tests/layers.hpp"

namespace greta::test::peer_test {
namespace {

class PeerTest : public testing::Test {
 protected:
  std::unique_ptr<Device> a_ = open_device("hip-host:0", {}).value();
  std::unique_ptr<Device> b_ = open_device("hip-host:1", {}).value();
  PeerCopies& copies_ = *peer_copies(*a_).value();
};

TEST_F(PeerTest, CopiesBothWaysAtOffsets) {
  EXPECT_TRUE(copies_.reach(*b_).value());
  EXPECT_TRUE(copies_.reach(*b_).value());  // again
  std::vector<std::byte> sent(1000), got(1000);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i % 251);
  const auto own = a_->allocate(2000).value(), back = a_->allocate(1000).value();
  const auto other = b_->allocate(1500).value();
  a_->upload(*own, 100, sent).value();
  const auto stream = a_->create_stream().value();
  copies_.copy_between(*stream, *other, 500, *own, 100, 1000).value();
  copies_.copy_between(*stream, *back, 0, *other, 500, 1000).value();
  stream->synchronize(std::chrono::seconds(10)).value();
  b_->download(*other, 500, got).value();
  EXPECT_EQ(got, sent);
  a_->download(*back, 0, got).value();
  EXPECT_EQ(got, sent);
}

TEST_F(PeerTest, RefusesWhatDoesNotFit) {
  const auto own = a_->allocate(100).value(), other = b_->allocate(100).value();
  const auto stream = a_->create_stream().value(), of_b = b_->create_stream().value();
  const auto status = [](const auto& result) {
    return result ? Status{} : result.failure().status;
  };
  EXPECT_EQ(status(copies_.copy_between(*stream, *other, 1, *own, 0, 100)),
            Status::invalid_argument);
  EXPECT_EQ(status(copies_.copy_between(*of_b, *other, 0, *own, 0, 100)), Status::invalid_argument);
  EXPECT_EQ(status(copies_.reach(*a_)), Status::invalid_argument);
}

TEST(Peer, VulkanSaysThatItHasNone) {
  const auto device = open_device("lavapipe", {});
  ASSERT_TRUE(device) << device.failure().message;
  const auto none = peer_copies(**device);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.failure().status, Status::unavailable);
  EXPECT_NE(none.failure().message.find("no copies between devices"), std::string::npos);
}

}  // namespace
}  // namespace greta::test::peer_test
