// Protects: exceptions that become failures keep their status.

#include "runtime/device/refusal.hpp"

#include <gtest/gtest.h>

#include <new>

#include "tests/layers.hpp"

namespace greta::test::refusal_test {

namespace {

template <typename Thrown>
Failure failure_of(const Thrown& thrown) {
  try {
    throw thrown;
  } catch (const std::exception&) {
    return current_failure();
  }
}

TEST(Refusals, KeepTheStatusOfWhatWasThrown) {
  const Failure lost{Status::device_lost, "it is gone", {}};
  for (const Failure& failure : {failure_of(Refusal(lost)), failure_of(Error(lost))}) {
    EXPECT_EQ(failure.status, Status::device_lost);
    EXPECT_EQ(failure.message, "it is gone");
  }
  EXPECT_EQ(failure_of(std::bad_alloc()).status, Status::out_of_memory);
  EXPECT_EQ(failure_of(std::runtime_error("unknown")).status, Status::launch);
}

}  // namespace

}  // namespace greta::test::refusal_test
