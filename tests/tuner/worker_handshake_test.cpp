// Protects: a session and a worker process of another build refuse each other in one line.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/device/version.hpp"
#include "tests/catalog.hpp"
#include "tuner/evaluate/worker_evaluator.hpp"

namespace greta::test::worker_handshake_test {
namespace {

std::string error_of(const std::vector<std::string>& command) {
  try {
    const WorkerEvaluator worker(command, {});
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// A worker of another build would misread requests or evaluate different kernels.
TEST(WorkerHandshake, AWorkerThatSpeaksAnotherProtocolIsAnErrorInOneLine) {
  const auto answering = [](const std::string& result) {
    return std::vector<std::string>{
        "/bin/sh", "-c", "read line <&3; echo '{\"result\":" + result + "}' >&3; cat <&3"};
  };
  EXPECT_EQ(
      error_of(answering("{}")),
      fmt::format("this process speaks version {} of the worker protocol (GRETA {}), the other "
                  "one 0 (no version that it reports): a worker must be of the same build as the "
                  "program that starts it",
                  worker_protocol, version()));
  EXPECT_NE(error_of(answering("{\"greeting\":{\"protocol\":99,\"greta\":\"9.1\"}}"))
                .find("the other one 99 (GRETA 9.1)"),
            std::string::npos);
}

TEST(WorkerHandshake, BothEndsHaveTheSameOperations) {
  const auto ours = greeting(test::catalog());
  auto theirs = ours;
  EXPECT_TRUE(check_greeting(ours, theirs));
  theirs["operations"]["gemm"] = "0123";
  EXPECT_EQ(check_greeting(ours, theirs).failure().message,
            "two processes have different kernels of operation gemm: a worker must be of the same "
            "build as the program that starts it");
  theirs["operations"].erase("gemm");
  EXPECT_EQ(check_greeting(ours, theirs).failure().message,
            "a worker does not know the operation gemm: it must be of the same build, and read the "
            "same descriptions of kernels, as the program that starts it");
}

// The worker checks its catalog as well: it serves the operations of tune's worker command.
TEST(WorkerHandshake, AWorkerWithoutAnOperationOfTheSessionRefuses) {
  Operation own = built_in("gelu");
  own.name = "own";
  EvaluatorOptions options;
  options.catalog = Catalog({own});
  try {
    const WorkerEvaluator worker({GRETA_TUNE, "worker"}, options);
    FAIL() << "it started";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("a worker does not know the operation "),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace greta::test::worker_handshake_test
