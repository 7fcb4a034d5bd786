// Protects: health checks in separate processes, including those whose process dies.

#include <gtest/gtest.h>

#include <string>

#include "tests/layers.hpp"
#include "tuner/bench/health.hpp"

namespace greta::test::bench_health_test {
namespace {

/// Runs a shell script instead of the health check program.
Health check_by(const std::string& script, std::chrono::seconds deadline) {
  return check_health_apart({"sh", "-c", script, "sh"}, "f16", "hip:0", "cache", deadline);
}

const std::string running =
    R"(echo '{"choice":"gemm m=1","config":"naive","seed":1,"status":"running"}'; )";

// Protects: the user learns what was running and what the driver printed last, without a bundle.
TEST(BenchHealth, ADyingProcessIsToldWithWhatItRanAndWhatItSaidLast) {
  const Health health =
      check_by(running + "echo compiled >&2; echo 'illegal address 0x10' >&2; kill -ABRT $$",
               std::chrono::seconds(60));
  EXPECT_EQ(health.failure, Status::crash);
  EXPECT_EQ(health.message,
            "its process was killed by signal 6 (Aborted) while it ran gemm m=1 | naive: illegal "
            "address 0x10");
  ASSERT_EQ(health.choices.size(), 1U);
  EXPECT_EQ(health.choices[0].status, "crash");
  EXPECT_EQ(health.choices[0].message,
            "its process was killed by signal 6 (Aborted): illegal address 0x10");
}

// Protects: no reason is invented if there is no output or the last line is unrelated.
TEST(BenchHealth, AProcessThatSaidNothingOrWasStoppedHasNoReason) {
  EXPECT_EQ(check_by(running + "kill -ABRT $$", std::chrono::seconds(60)).message,
            "its process was killed by signal 6 (Aborted) while it ran gemm m=1 | naive");
  const Health health = check_by(running + "echo compiled >&2; sleep 600", std::chrono::seconds(5));
  EXPECT_EQ(health.failure, Status::timeout);
  EXPECT_EQ(health.message, "its process was killed after 5 s while it ran gemm m=1 | naive");
}

}  // namespace
}  // namespace greta::test::bench_health_test
