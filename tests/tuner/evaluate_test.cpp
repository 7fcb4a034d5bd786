// Protects: a kernel that is wrong, writes out of bounds, hangs or crashes is one candidate's
// failure, is classified correctly, and leaves the evaluator usable. Runs on the device "auto".

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "runtime/device/backend.hpp"
#include "runtime/device/system/log.hpp"
#include "tests/catalog.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tuner/tiny_kernel.hpp"
#include "tuner/evaluate/local_evaluator.hpp"
#include "tuner/evaluate/worker_evaluator.hpp"

namespace greta::test::evaluate_test {
namespace {

Problem small_problem() {
  return Problem::parse("gemm dtype=f32 out=f32 m=65 n=48 k=33").value();
}

Config default_of(const Evaluator& evaluator, const Problem& problem) {
  return built_in(problem.op).default_config(problem, evaluator.device());
}

std::vector<std::string> worker_command() {
  return {GRETA_TUNE, "worker"};
}

void expect_right(const Trial& trial) {
  EXPECT_TRUE(trial.ok()) << trial.message;
  EXPECT_TRUE(trial.verdict.passed);
  EXPECT_GT(trial.verdict.bound, 0);
}

TEST(CheckSpills, NamesTheFirstKernelThatSpillsWithItsFigures) {
  KernelStatistics clean;
  clean.registers = 255;
  clean.spilled_scalar_registers = 4;  // into vector registers, at low cost
  EXPECT_TRUE(check_spills({{"gemm/tiled", clean}, {"gemm/reduce", {}}}));
  KernelStatistics spilling = clean;
  spilling.scratch_bytes = 64;
  const auto nvidia = check_spills({{"gemm/tiled", clean}, {"gemm/reduce", spilling}});
  ASSERT_FALSE(nvidia);
  EXPECT_EQ(nvidia.failure().status, Status::constraints);
  EXPECT_EQ(nvidia.failure().message, "gemm/reduce spills 64 B of scratch memory per thread");
  spilling.spilled_registers = 12;
  EXPECT_EQ(check_spills({{"gemm/tiled", spilling}}).failure().message,
            "gemm/tiled spills 12 registers, 64 B of scratch memory per thread");
}

TEST(LocalEvaluator, VerifiesAndMeasuresTheDefault) {
  LocalEvaluator evaluator({});
  const auto problem = small_problem();
  const auto trial = evaluator.evaluate(problem, default_of(evaluator, problem), {});
  expect_right(trial);
  EXPECT_GT(trial.measurement.median_us, 0);
  EXPECT_TRUE(trial.measurement.cold);
  EXPECT_GE(trial.measurement.flush_bytes, evaluator.device().last_level_cache_bytes);
  EXPECT_FALSE(trial.content_keys.empty());
}

TEST(LocalEvaluator, AnInvalidConfigurationIsAConstraintsFailure) {
  LocalEvaluator evaluator({});
  const auto problem = small_problem();
  Config config = default_of(evaluator, problem);
  config.values.front().second = 12345;
  EXPECT_EQ(evaluator.evaluate(problem, config, {}).failure, Status::constraints);
  expect_right(evaluator.evaluate(problem, default_of(evaluator, problem), {}));
}

TEST(LocalEvaluator, TheNaiveKernelIsRight) {
  LocalEvaluator evaluator({});
  expect_right(evaluator.evaluate(small_problem(), *built_in("gemm").naive, {}));
}

TEST(LocalEvaluator, RoundsTimeEachCandidateOnceARound) {
  LocalEvaluator evaluator({});
  const auto problem = small_problem();
  const Config config = default_of(evaluator, problem);
  const auto rounds = evaluator.time_rounds(problem, {config, config}, 5, 60, 1, {});
  EXPECT_FALSE(rounds.failure);
  ASSERT_EQ(rounds.us.size(), 2U);
  EXPECT_EQ(rounds.us[0].size() + static_cast<std::size_t>(rounds.dropped), 5U);
  EXPECT_EQ(rounds.us[0].size(), rounds.us[1].size());
}

TEST(LocalEvaluator, AMissedDeadlineIsATimeoutAndTheNextOneWorks) {
  LocalEvaluator evaluator({});
  const auto large = Problem::parse("gemm dtype=f32 out=f32 m=512 n=512 k=512").value();
  TrialLimits hasty;
  hasty.run_s = 1e-6;
  const auto late = evaluator.evaluate(large, *built_in("gemm").naive, hasty);
  if (late.ok()) GTEST_FAIL() << "a 512³ product within a microsecond: the deadline was not kept";
  EXPECT_EQ(late.failure, Status::timeout);
  const auto problem = small_problem();
  expect_right(evaluator.evaluate(problem, default_of(evaluator, problem), {}));
}

// Runs the steps of the other tests for HIP kernels on hip-host: slow, but the same code path.
TEST(LocalEvaluator, HipHostVerifiesMeasuresTimesRoundsAndSurvivesATimeout) {
  EvaluatorOptions options;
  options.device = "hip-host:2";
  LocalEvaluator evaluator(options);
  EXPECT_EQ(evaluator.lookahead(), 1);
  const auto problem = small_problem();
  const Config config = default_of(evaluator, problem);
  const auto trial = evaluator.evaluate(problem, config, {});
  expect_right(trial);
  EXPECT_GT(trial.measurement.median_us, 0);
  ASSERT_FALSE(trial.kernels.empty());
  EXPECT_EQ(trial.kernels.front().name, "gemm/" + config.variant);
  const auto rounds = evaluator.time_rounds(problem, {config, config}, 2, 60, 1, {});
  EXPECT_FALSE(rounds.failure) << rounds.failure->message;
  EXPECT_EQ(rounds.us[0].size() + static_cast<std::size_t>(rounds.dropped), 2U);
  const auto large = Problem::parse("gemm dtype=f32 out=f32 m=256 n=256 k=256").value();
  TrialLimits hasty;
  hasty.run_s = 1e-6;
  const auto late = evaluator.evaluate(large, *built_in("gemm").naive, hasty);
  EXPECT_EQ(late.failure, Status::timeout);
  TrialLimits others;  // and on problems with the same kernels
  others.small = 2;
  expect_right(evaluator.verify(problem, config, 7, others));
}

TEST(WorkerEvaluator, RunsHipHostAsWell) {
  EvaluatorOptions options;
  options.device = "hip-host:1";
  WorkerEvaluator worker(worker_command(), options);
  EXPECT_EQ(worker.device().language, Language::hip);
  EXPECT_FALSE(worker.device().matrix_operations.empty());
  const auto problem = small_problem();
  expect_right(worker.verify(problem, default_of(worker, problem), 3, {}));
}

TEST(WorkerEvaluator, SanitizesInAProcessThatHasTheRuntime) {
  EvaluatorOptions options;
  options.device = "hip-host:3";
  const WorkerEvaluator plain(worker_command(), options);
  options.sanitize = Sanitize::address;
  WorkerEvaluator worker(worker_command(), options);
  EXPECT_TRUE(worker.device().compiler.ends_with("with sanitizers")) << worker.device().compiler;
#if !defined(__SANITIZE_ADDRESS__)  // otherwise the plain worker has the runtime as well
  EXPECT_NE(worker.device().fingerprint(), plain.device().fingerprint());
#endif
  const auto problem = small_problem();
  expect_right(worker.verify(problem, default_of(worker, problem), 3, {}));
}

TEST(WorkerEvaluator, WhatSanitizersReportIsTheFailure) {
  const std::string report = "= ERROR\\nSUMMARY: AddressSanitizer: overrun a.hip:3 in k\\nmore";
  EvaluatorOptions options;
  options.sanitize = Sanitize::address;
  try {
    WorkerEvaluator worker({"/bin/sh", "-c", "printf '" + report + "' >&2; kill -ABRT $$"},
                           options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "opening the device: AddressSanitizer: overrun a.hip:3 in k");
  }
}

TEST(WorkerEvaluator, SanitizesOnlyDevicesThatCan) {
  EvaluatorOptions options;
  options.device = "vulkan:0";
  options.sanitize = Sanitize::address;
  EXPECT_THROW(WorkerEvaluator(worker_command(), options), Error);
}

TEST(WorkerEnvironment, AVariableTakesThePlaceOfItsName) {
  ASSERT_EQ(setenv("GRETA_TEST_NAME", "old", 1), 0);
  ASSERT_EQ(setenv("GRETA_TEST_NAME_TOO", "kept", 1), 0);
  const auto environment = environment_with({"GRETA_TEST_NAME=new", "GRETA_TEST_OTHER=added"});
  const auto has = [&](const std::string& variable) {
    return std::count(environment.begin(), environment.end(), variable);
  };
  EXPECT_EQ(has("GRETA_TEST_NAME=old"), 0);
  EXPECT_EQ(has("GRETA_TEST_NAME=new"), 1);
  EXPECT_EQ(has("GRETA_TEST_NAME_TOO=kept"), 1);
  EXPECT_EQ(has("GRETA_TEST_OTHER=added"), 1);
}

TEST(WorkerEvaluator, GivesTheSameVerdictAsThisProcess) {
  WorkerEvaluator worker(worker_command(), {});
  LocalEvaluator local({});
  EXPECT_EQ(worker.device().fingerprint(), local.device().fingerprint());
  const auto problem = small_problem();
  const auto config = default_of(worker, problem);
  const auto far = worker.evaluate(problem, config, {});
  const auto near = local.evaluate(problem, config, {});
  expect_right(far);
  EXPECT_EQ(far.verdict.error, near.verdict.error);
  EXPECT_EQ(far.content_keys, near.content_keys);
}

/// Returns the single trial that a worker lost.
Trial lost_by(WorkerEvaluator& worker) {
  const auto lost = worker.take_lost();
  EXPECT_EQ(lost.size(), 1U);
  if (lost.empty()) return {};
  EXPECT_EQ(lost[0].failure, Status::crash);
  EXPECT_NE(lost[0].message.find("killed by signal 9 (Killed)"), std::string::npos)
      << lost[0].message;
  return lost[0];
}

// A candidate can't send SIGKILL, so work killed from outside is restarted and reported.
TEST(WorkerEvaluator, AKilledWorkerIsReplacedAndLeavesATrace) {
  WorkerEvaluator worker(worker_command(), {});
  const auto problem = small_problem();
  const auto config = default_of(worker, problem);
  expect_right(worker.evaluate(problem, config, {}));
  EXPECT_TRUE(worker.take_lost().empty());
  const pid_t first = worker.worker_pid();
  kill(first, SIGKILL);
  expect_right(worker.evaluate(problem, config, {}));
  EXPECT_NE(worker.worker_pid(), first);
  EXPECT_EQ(lost_by(worker).config, config);
  kill(worker.worker_pid(), SIGKILL);
  const auto rounds = worker.time_rounds(problem, {config, config}, 3, 1, 1, {});
  EXPECT_FALSE(rounds.failure);
  EXPECT_FALSE(rounds.us.at(1).empty());
  EXPECT_TRUE(lost_by(worker).message.starts_with("timing it and others in rounds: "));
  kill(worker.worker_pid(), SIGKILL);
  EXPECT_FALSE(worker.measure_ceilings({std::string(ceiling_fma_f32)}).empty());
  EXPECT_TRUE(lost_by(worker).config.variant.empty());
}

TEST(WorkerEvaluator, AWorkerKilledWhileItOpensTheDeviceIsStartedAgain) {
  const test::TemporaryFolder folder;
  const std::string script = fmt::format(
      "for i in 1 2 3; do mkdir {}/$i 2>/dev/null && kill -KILL $$; done; exec {} worker",
      folder.path().string(), GRETA_TUNE);
  WorkerEvaluator worker({"/bin/sh", "-c", script}, {});
  EXPECT_EQ(worker.take_lost().size(), 3U);
  EXPECT_THROW(WorkerEvaluator({"/bin/sh", "-c", "kill -KILL $$"}, {}), Error) << "not for ever";
}

// The session reports its worker's warnings, because nothing else reads the worker's messages.
TEST(WorkerEvaluator, WarningsOfTheWorkerAreTheSessions) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "file") << "where a folder should be";
  std::vector<std::string> warnings;
  set_log_sink([&](LogLevel level, std::string_view line) {
    if (level == LogLevel::warning) warnings.emplace_back(line);
  });
  EvaluatorOptions options;
  options.cache_directory = folder / "file";
  WorkerEvaluator worker(worker_command(), options);
  const auto problem = small_problem();
  expect_right(worker.evaluate(problem, default_of(worker, problem), {}));
  set_log_sink({});
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_TRUE(warnings[0].starts_with("compiled kernels can't be kept in ")) << warnings[0];
}

TEST(WorkerEvaluator, ACrashWhileRunningIsACrash) {
  WorkerEvaluator worker(worker_command(), {});
  const auto slow = Problem::parse("gemm dtype=f32 out=f32 m=1024 n=1024 k=1024").value();
  std::thread killer([pid = worker.worker_pid()] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    kill(pid, SIGSEGV);
  });
  const auto crashed = worker.evaluate(slow, *built_in("gemm").naive, {});
  killer.join();
  EXPECT_EQ(crashed.failure, Status::crash);
  const auto problem = small_problem();
  expect_right(worker.evaluate(problem, default_of(worker, problem), {}));
}

TEST(WorkerEvaluator, AHangingKernelIsATimeoutAndItsProcessIsGone) {
  WorkerEvaluator worker(worker_command(), {});
  const auto slow = Problem::parse("gemm dtype=f32 out=f32 m=1024 n=1024 k=1024").value();
  TrialLimits hasty;
  hasty.run_s = 1e-6;
  const auto late = worker.evaluate(slow, *built_in("gemm").naive, hasty);
  EXPECT_EQ(late.failure, Status::timeout);
  EXPECT_EQ(worker.worker_pid(), 0);
  const auto problem = small_problem();
  expect_right(worker.evaluate(problem, default_of(worker, problem), {}));
}

// Its answer, when it comes, must not be taken for the next candidate's.
TEST(WorkerEvaluator, AWorkerThatDoesNotAnswerInTimeIsKilledAndTheNextOneWorks) {
  WorkerEvaluator worker(worker_command(), {});
  const auto problem = small_problem();
  const auto config = default_of(worker, problem);
  expect_right(worker.evaluate(problem, config, {}));
  ASSERT_EQ(kill(worker.worker_pid(), SIGSTOP), 0);
  TrialLimits hasty;
  hasty.run_s = hasty.measure_s = 0;
  hasty.compile_s = -29;  // of the 30 s that bringing back and comparing results may take
  const auto late = worker.evaluate(problem, config, hasty);
  EXPECT_EQ(late.failure, Status::timeout);
  EXPECT_EQ(late.message, "no answer within 1 s: the worker process was killed");
  ASSERT_EQ(worker.worker_pid(), 0);
  expect_right(worker.evaluate(problem, config, {}));
}

// A driver that hangs: no code in the process can end the call, and the next call hangs as well.
TEST(WorkerEvaluator, LaunchesThatNeverReturnAreTimeoutsAndThenEndTheSession) {
  EvaluatorOptions options;
  options.device = "hip:0";
  WorkerEvaluator worker(
      {"/usr/bin/env", "LD_LIBRARY_PATH=" GRETA_FAKE_AMD, "GRETA_FAKE_ARCHITECTURE=gfx90a",
       "GRETA_FAKE_FAULTS=hipModuleLaunchKernel:1:block", GRETA_TUNE, "worker"},
      options, 0.5);
  const auto problem = small_problem();
  const auto config = default_of(worker, problem);
  TrialLimits hasty;
  hasty.run_s = 0.5;
  for (int i = 0; i < 2; ++i) {
    const auto trial = worker.evaluate(problem, config, hasty);
    EXPECT_EQ(trial.failure, Status::timeout);
    EXPECT_NE(trial.message.find("did not return"), std::string::npos) << trial.message;
    EXPECT_EQ(worker.worker_pid(), 0);
  }
  try {
    static_cast<void>(worker.evaluate(problem, config, hasty));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::timeout);
    EXPECT_NE(std::string(error.what()).find("hip:0 does not answer, 3 times in a row"),
              std::string::npos)
        << error.what();
  }
  const auto lost = worker.take_lost();
  ASSERT_EQ(lost.size(), 1U) << "the candidate that no call's result tells of";
  EXPECT_EQ(lost[0].config, config);
  EXPECT_EQ(lost[0].failure, Status::timeout);
}

// Calls without a deadline, such as allocations and loads, soon end with the process as well.
TEST(WorkerEvaluator, CallsThatNeverReturnAreTimeoutsSoon) {
  for (const char* fault : {"hipMalloc:3:block", "hipModuleLoadData:4:block"}) {
    SCOPED_TRACE(fault);
    EvaluatorOptions options;
    options.device = "hip:0";
    WorkerEvaluator worker(
        {"/usr/bin/env", "LD_LIBRARY_PATH=" GRETA_FAKE_AMD, "GRETA_FAKE_ARCHITECTURE=gfx90a",
         fmt::format("GRETA_FAKE_FAULTS={}", fault), GRETA_TUNE, "worker"},
        options, 0.5);
    // These operands are larger than a chunk of the memory pool, so they are allocated directly.
    const auto problem = Problem::parse("gemm dtype=f32 out=f32 m=4096 n=4096 k=64").value();
    const auto trial = worker.evaluate(problem, default_of(worker, problem), {});
    EXPECT_EQ(trial.failure, Status::timeout);
    EXPECT_NE(trial.message.find("did not return"), std::string::npos) << trial.message;
  }
}

// Mesa gets SIGBUS when the disk of its shader cache is full.
TEST(WorkerEvaluator, ADriverThatDiesOfItsCacheIsStartedWithout) {
  const std::string script =
      R"([ -n "$MESA_SHADER_CACHE_DISABLE" ] || kill -BUS $$; exec )" GRETA_TUNE " worker";
  WorkerEvaluator worker({"/bin/sh", "-c", script}, {});
  const auto problem = small_problem();
  expect_right(worker.evaluate(problem, default_of(worker, problem), {}));
}

// Neither the deadline of the call nor the worker's answer is waited for.
TEST(WorkerEvaluator, AStopEndsACallThatDoesNotReturn) {
  std::atomic<bool> stop = false;
  EvaluatorOptions options;
  options.stop = &stop;
  WorkerEvaluator worker(worker_command(), options);
  const pid_t process = worker.worker_pid();
  ASSERT_EQ(kill(process, SIGSTOP), 0);
  std::thread stopping([&stop] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    stop = true;
  });
  const auto problem = small_problem();
  try {
    worker.evaluate(problem, default_of(worker, problem), {});
    ADD_FAILURE() << "it returned";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::interrupted);
  }
  stopping.join();
  EXPECT_NE(kill(process, 0), 0);
  EXPECT_TRUE(worker.take_lost().empty());
  EXPECT_THROW(worker.verify(problem, default_of(worker, problem), 1, {}), Error);
  EXPECT_EQ(worker.worker_pid(), 0) << "none is started after a stop";
}

TEST(WorkerEvaluator, AWorkerThatCannotStartIsAnError) {
  EXPECT_THROW(WorkerEvaluator({"/nonexistent"}, {}), Error);
  EXPECT_THROW(WorkerEvaluator({"/bin/false"}, {}), Error);
}

TEST(WorkerEvaluator, AnUnknownDeviceIsAnErrorThatSaysSo) {
  EvaluatorOptions options;
  options.device = "no such device";
  try {
    WorkerEvaluator worker(worker_command(), options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("no such device"), std::string::npos);
  }
}

}  // namespace
}  // namespace greta::test::evaluate_test
