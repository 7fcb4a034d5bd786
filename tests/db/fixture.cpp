#include "tests/db/fixture.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "tests/layers.hpp"

namespace greta::test {
namespace fs = std::filesystem;

DeviceInfo sample_device() {
  DeviceInfo device;
  device.backend = Api::vulkan;
  device.language = Language::hip;
  device.index = 2;
  device.name = "Example GPU 9000";
  device.vendor = "Example";
  device.architecture = "ex90";
  device.driver = "example 1.2.3";
  device.compiler = "glslang 12.0.0";
  device.kind = DeviceKind::discrete_gpu;
  device.card.uuid = "00112233445566778899aabbccddeeff";
  device.card.pci_address = "0000:01:00.0";
  device.max_workgroup_invocations = 1024;
  device.max_workgroup_size = {1024, 1023, 64};
  device.max_grid = {2147483647, 65535, 65534};
  device.shared_memory_bytes = 49152;
  device.subgroup_size = 32;
  device.min_subgroup_size = 16;
  device.max_subgroup_size = 64;
  device.max_argument_bytes = 256;
  device.compute_units = 132;
  device.unit_registers = 65536;
  device.unit_shared_memory_bytes = 233472;
  device.unit_threads = 2048;
  device.memory_bytes = 150'000'000'000;
  device.max_allocation_bytes = 4'294'967'295;
  device.last_level_cache_bytes = 62'914'560;
  device.timestamp_period_ns = 1.25;
  device.f16_arithmetic = true;
  device.f16_storage = false;
  device.subgroup_size_control = true;
  device.matrix_operations = {{DType::f16, DType::f32, 16, 16, 8},
                              {DType::bf16, DType::f32, 32, 32, 8}};
  device.unified_memory = false;
  return device;
}

Problem sample_problem() {
  return {"gemm", DType::f16, DType::f32, {{"layout", "nt"}}, {{"m", 16}, {"n", 32}, {"k", 4096}}};
}

SessionRecord sample_session() {
  SessionRecord session;
  session.device = sample_device();
  session.problem = sample_problem();
  session.provenance = {"0.1.0", "0123abcd", "example 1.2.3", "glslang 12.0.0",
                        "2026-11-20T12:00:00Z"};
  session.strategy = "random";
  session.budget = "60s";
  session.seed = 18'446'744'073'709'551'615U;
  session.command = "greta-tune gemm --m 16";
  return session;
}

namespace {

KernelStatistics sample_statistics() {
  return {128, 64, 48, 32768, 16, 4, 2, 5120, 96, 8, 1234.5, 0.25};
}

}  // namespace

Trial sample_trial(const std::string& id) {
  Trial trial;
  trial.config = {"tiled", {{"BM", 128}, {"BN", 64}, {"BK", 16}}};
  trial.verdict = {true, 1e-6, 2e-6, "full", ""};
  trial.measurement.samples_us = {10.5, 10.25, 11};
  trial.measurement.median_us = 10.5;
  trial.measurement.low_us = 10.25;
  trial.measurement.high_us = 11;
  trial.problem_key = sample_problem().key();
  trial.content_keys = id;
  trial.card = sample_device().card.uuid;
  trial.kernels = {{"gemm/tiled", sample_statistics()}};
  return trial;
}

namespace {

double random_number(std::mt19937_64& random) {
  switch (random() % 12) {
    case 0:
      return std::numeric_limits<double>::quiet_NaN();
    case 1:
      return std::numeric_limits<double>::infinity();
    case 2:
      return -std::numeric_limits<double>::infinity();
    case 3:
      return std::numeric_limits<double>::denorm_min();
    case 4:
      return -0.0;
    default:
      return std::ldexp(static_cast<double>(random() % 1'000'003) - 500'000,
                        static_cast<int>(random() % 200) - 100);
  }
}

std::string random_text(std::mt19937_64& random) {
  static const std::string pieces[] = {"a", "\"",   "\\",   "\n", "\t", std::string(1, '\0'),
                                       "é", "界",   "🙂", "'",  ";",  "--",
                                       "%", "\x01", " "};
  std::string text;
  for (auto left = random() % 20; left > 0; --left) text += pieces[random() % std::size(pieces)];
  return text;
}

}  // namespace

Measurement random_measurement(std::mt19937_64& random) {
  Measurement measurement;
  for (auto left = random() % 40; left > 0; --left) {
    measurement.samples_us.push_back(random_number(random));
  }
  measurement.median_us = random_number(random);
  measurement.low_us = random_number(random);
  measurement.high_us = random_number(random);
  measurement.p99_us = random_number(random);
  measurement.cold = random() % 2;
  measurement.raced = random() % 2;
  measurement.batch = static_cast<int>(random() % 1000);
  measurement.dropped = static_cast<int>(random() % 1000);
  measurement.flush_bytes = random();
  measurement.clocks = random_text(random);
  return measurement;
}

Trial random_trial(std::mt19937_64& random) {
  static const Status statuses[] = {Status::constraints,   Status::compile, Status::launch,
                                    Status::correctness,   Status::timeout, Status::crash,
                                    Status::out_of_memory, Status::io};
  Trial trial;
  trial.config.variant = random() % 2 ? "tiled" : "split_k";
  for (auto left = random() % 6; left > 0; --left) {
    trial.config.values.emplace_back("P" + std::to_string(left),
                                     static_cast<int>(random() % 2048) - 1024);
  }
  if (random() % 2) trial.failure = statuses[random() % std::size(statuses)];
  trial.message = random_text(random);
  trial.log = random_text(random) + std::string(random() % 20'000, 'x');
  trial.verdict = {random() % 2 == 0, random_number(random), random_number(random),
                   random_text(random), random_text(random)};
  trial.measurement = random_measurement(random);
  trial.problem_key = random() % 2 ? sample_problem().key() : random_text(random);
  trial.content_keys = random_text(random);
  trial.card = random_text(random);
  for (auto left = random() % 3; left > 0; --left) {
    auto& kernel = trial.kernels.emplace_back();
    kernel.name = random_text(random);
    kernel.statistics.registers = static_cast<std::uint32_t>(random());
    kernel.statistics.code_bytes = static_cast<std::uint32_t>(random() % 100);
    kernel.statistics.latency = random_number(random);
  }
  trial.compile_s = random_number(random);
  trial.verify_s = random_number(random);
  trial.measure_s = random_number(random);
  return trial;
}

Winner sample_winner() {
  Winner winner;
  winner.config = {"split_k", {{"BM", 64}, {"SPLIT", 8}}};
  winner.is_default = false;
  winner.default_us = 25;
  winner.speedup = 2;
  winner.speedup_low = 1.9;
  winner.speedup_high = 2.1;
  winner.confidence = 0.99;
  winner.rounds = 4;
  winner.measurement.samples_us = {12.5, 12.25, 12.75, 12.5};
  winner.measurement.median_us = 12.5;
  winner.measurement.low_us = 12.25;
  winner.measurement.high_us = 12.75;
  winner.measurement.p99_us = 12.75;
  winner.measurement.batch = 3;
  winner.measurement.dropped = 2;
  winner.measurement.flush_bytes = 18'446'744'073'709'551'615U;
  winner.measurement.clocks = "SM 1980 MHz";
  winner.kernels = {{"gemm/tiled", sample_statistics()}, {"gemm/reduce", {}}};
  winner.default_samples_us = {25, 24.5, 25.5, 1e-300};
  winner.roofline = 0.75;
  winner.verdict = {true, 1e-6, 2e-6, "16 rows in full", ""};
  winner.ties = {{{"split_k", {{"BM", 32}, {"SPLIT", 8}}}, 1.001},
                 {{"tiled", {{"BM", 64}}}, std::numeric_limits<double>::infinity()}};
  winner.card = sample_device().card.uuid;
  return winner;
}

std::vector<Finalist> sample_finalists() {
  const auto config = [](int bm) { return Config{"tiled", {{"BM", bm}}}; };
  return {{.config = config(64), .us = {25, 24.5, 25.5, 1e-300}, .batch = 3, .is_default = true},
          {.config = sample_winner().config, .us = {12.5, 12.25, 12.75, 12.5}, .batch = 3},
          {.config = config(16), .us = {30, 31}, .left = Departure::slower},
          {.config = config(32), .us = {}, .left = Departure::failed},
          {.config = config(8), .us = {11, 12, 13, 14}, .left = Departure::slower_elsewhere}};
}

namespace {

void expect_same(double actual, double expected) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(actual)) << actual;
  } else {
    EXPECT_EQ(actual, expected);
  }
}

void expect_same(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) expect_same(actual[i], expected[i]);
}

}  // namespace

void expect_equal(const Verdict& actual, const Verdict& expected) {
  EXPECT_EQ(actual.passed, expected.passed);
  expect_same(actual.error, expected.error);
  expect_same(actual.bound, expected.bound);
  EXPECT_EQ(actual.method, expected.method);
  EXPECT_EQ(actual.detail, expected.detail);
}

void expect_equal(const Measurement& actual, const Measurement& expected) {
  expect_same(actual.samples_us, expected.samples_us);
  expect_same(actual.median_us, expected.median_us);
  expect_same(actual.low_us, expected.low_us);
  expect_same(actual.high_us, expected.high_us);
  expect_same(actual.p99_us, expected.p99_us);
  EXPECT_EQ(actual.cold, expected.cold);
  EXPECT_EQ(actual.raced, expected.raced);
  EXPECT_EQ(actual.batch, expected.batch);
  EXPECT_EQ(actual.dropped, expected.dropped);
  EXPECT_EQ(actual.flush_bytes, expected.flush_bytes);
  EXPECT_EQ(actual.clocks, expected.clocks);
}

void expect_equal(const std::vector<KernelFigures>& actual,
                  const std::vector<KernelFigures>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    auto got = actual[i];
    expect_same(got.statistics.latency, expected[i].statistics.latency);
    got.statistics.latency = expected[i].statistics.latency;  // NaN does not equal itself
    EXPECT_TRUE(std::isnan(expected[i].statistics.latency) || got == expected[i]);
  }
}

void expect_equal(const Trial& actual, const Trial& expected) {
  EXPECT_EQ(actual.config, expected.config);
  EXPECT_EQ(actual.failure, expected.failure);
  EXPECT_EQ(actual.message, expected.message);
  EXPECT_EQ(actual.log, expected.log);
  expect_equal(actual.verdict, expected.verdict);
  expect_equal(actual.measurement, expected.measurement);
  EXPECT_EQ(actual.problem_key, expected.problem_key);
  EXPECT_EQ(actual.content_keys, expected.content_keys);
  EXPECT_EQ(actual.card, expected.card);
  expect_equal(actual.kernels, expected.kernels);
  expect_same(actual.compile_s, expected.compile_s);
  expect_same(actual.verify_s, expected.verify_s);
  expect_same(actual.measure_s, expected.measure_s);
}

void expect_equal(const DeviceInfo& actual, const DeviceInfo& expected) {
  EXPECT_EQ(actual.fingerprint(), expected.fingerprint());
  EXPECT_EQ(actual.id(), expected.id());
  EXPECT_EQ(actual.language, expected.language);
  EXPECT_EQ(actual.name, expected.name);
  EXPECT_EQ(actual.vendor, expected.vendor);
  EXPECT_EQ(actual.architecture, expected.architecture);
  EXPECT_EQ(actual.driver, expected.driver);
  EXPECT_EQ(actual.compiler, expected.compiler);
  EXPECT_EQ(actual.kind, expected.kind);
  EXPECT_EQ(actual.card.uuid, expected.card.uuid);
  EXPECT_EQ(actual.card.pci_address, expected.card.pci_address);
  EXPECT_EQ(actual.max_workgroup_invocations, expected.max_workgroup_invocations);
  EXPECT_EQ(actual.max_workgroup_size, expected.max_workgroup_size);
  EXPECT_EQ(actual.max_grid, expected.max_grid);
  EXPECT_EQ(actual.shared_memory_bytes, expected.shared_memory_bytes);
  EXPECT_EQ(actual.subgroup_size, expected.subgroup_size);
  EXPECT_EQ(actual.min_subgroup_size, expected.min_subgroup_size);
  EXPECT_EQ(actual.max_subgroup_size, expected.max_subgroup_size);
  EXPECT_EQ(actual.max_argument_bytes, expected.max_argument_bytes);
  EXPECT_EQ(actual.compute_units, expected.compute_units);
  EXPECT_EQ(actual.unit_registers, expected.unit_registers);
  EXPECT_EQ(actual.unit_shared_memory_bytes, expected.unit_shared_memory_bytes);
  EXPECT_EQ(actual.unit_threads, expected.unit_threads);
  EXPECT_EQ(actual.memory_bytes, expected.memory_bytes);
  EXPECT_EQ(actual.max_allocation_bytes, expected.max_allocation_bytes);
  EXPECT_EQ(actual.last_level_cache_bytes, expected.last_level_cache_bytes);
  EXPECT_EQ(actual.timestamp_period_ns, expected.timestamp_period_ns);
  EXPECT_EQ(actual.f16_arithmetic, expected.f16_arithmetic);
  EXPECT_EQ(actual.f16_storage, expected.f16_storage);
  EXPECT_EQ(actual.subgroup_size_control, expected.subgroup_size_control);
  EXPECT_EQ(actual.matrix_operations, expected.matrix_operations);
  EXPECT_EQ(actual.unified_memory, expected.unified_memory);
}

void expect_equal(const Winner& actual, const Winner& expected) {
  EXPECT_EQ(actual.config, expected.config);
  EXPECT_EQ(actual.is_default, expected.is_default);
  expect_same(actual.default_us, expected.default_us);
  expect_same(actual.speedup, expected.speedup);
  expect_same(actual.speedup_low, expected.speedup_low);
  expect_same(actual.speedup_high, expected.speedup_high);
  expect_same(actual.confidence, expected.confidence);
  EXPECT_EQ(actual.rounds, expected.rounds);
  expect_equal(actual.measurement, expected.measurement);
  expect_same(actual.default_samples_us, expected.default_samples_us);
  expect_same(actual.roofline, expected.roofline);
  expect_equal(actual.verdict, expected.verdict);
  expect_equal(actual.kernels, expected.kernels);
  EXPECT_EQ(actual.cold, expected.cold);
  EXPECT_EQ(actual.card, expected.card);
  ASSERT_EQ(actual.ties.size(), expected.ties.size());
  for (std::size_t i = 0; i < actual.ties.size(); ++i) {
    EXPECT_EQ(actual.ties[i].config, expected.ties[i].config);
    expect_same(actual.ties[i].ratio_to_winner, expected.ties[i].ratio_to_winner);
  }
}

std::string read_file(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream content;
  content << stream.rdbuf();
  return content.str();
}

void write_file(const fs::path& file, const std::string& content) {
  std::ofstream(file, std::ios::binary) << content;
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return "";
}

std::string open_error(const fs::path& file, TunedDb::Mode mode) {
  const auto line = error_of([&] { TunedDb::open(file, mode); });
  EXPECT_NE(line.find(file.string() + ": "), std::string::npos) << line;
  EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  return line;
}

pid_t start_child(const std::function<void()>& work) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  int code = 0;
  try {
    work();
    code = ::testing::Test::HasFailure() ? 1 : 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "child: %s\n", error.what());
    code = 1;
  }
  std::fflush(nullptr);
  _exit(code);
}

bool succeeded(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void become_nobody() {
  if (geteuid() == 0 && (setegid(65534) != 0 || seteuid(65534) != 0)) {
    throw std::runtime_error("can't drop root's rights");
  }
}

}  // namespace greta::test
