// Protects: properties that all operations on rows share: the shortest and longest rows, defaults,
// and reasons for rejected configurations.

#include <gtest/gtest.h>

#include <tuple>

#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/plan_runner.hpp"
#include "tests/kernels/row_cases.hpp"

namespace greta::test::rows_test {
namespace {

/// Returns every operation with dimensions rows and cols and these kernels.
std::vector<std::string> row_operations() {
  std::vector<std::string> names;
  for (const Operation& entry : catalog()) {
    if (entry.variants.front().name == "staged") names.push_back(entry.name);
  }
  return names;
}

class RowOperation : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  const Operation& entry_ = built_in(std::get<0>(GetParam()));
  Device& device_ = test::device(std::get<1>(GetParam()));
  const DeviceInfo& info_ = device_.info();
};

TEST_P(RowOperation, OneColumnAndOneRow) {
  for (const auto& [rows, cols] : {std::pair(70, 1), std::pair(1, 1), std::pair(1, 1001)}) {
    const Problem problem = test::row_problem(entry_, rows, cols, {DType::f16, DType::f16});
    const Config config = entry_.default_config(problem, info_);
    test::expect_right(entry_, problem, entry_.plan(problem, info_, config), config.text(), 2,
                       device_);
  }
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<std::string, std::string>>& info) {
  return std::get<0>(info.param) + "_" + test::device_name(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Devices, RowOperation,
                         ::testing::Combine(::testing::ValuesIn(row_operations()),
                                            ::testing::ValuesIn(test::unlike_devices())),
                         name_of);

class RowSpace : public ::testing::TestWithParam<std::string> {
 protected:
  Config default_of(std::int64_t rows, std::int64_t cols, DType type) const {
    return entry_.default_config(test::row_problem(entry_, rows, cols, {type, type}), info_);
  }
  const Operation& entry_ = built_in(GetParam());
  const DeviceInfo info_ = *architecture_info("sm_90");
};

TEST(RowsOnTheBestDevice, TakeRowsOf131072) {
  for (const std::string& name : row_operations()) {
    const Operation& entry = built_in(name);
    const Problem problem = test::row_problem(entry, 2, 131072, {DType::f16, DType::f16});
    const auto inputs = entry.inputs(problem, 5);
    test::expect_right_for(entry, problem, inputs, test::device());
  }
}

// If possible, a GPU reads a row once, with four 16-byte loads in flight per thread. A long row
// arrives in shared memory; layernorm_rmsnorm needs more registers than are left.
TEST_P(RowSpace, DefaultsHoldWhatFitsAndSplitFewLongRows) {
  const Config usual = default_of(16384, 4096, DType::f16);
  EXPECT_EQ(usual.variant, "held");
  EXPECT_EQ(usual["VEC"], 8);
  EXPECT_EQ(usual["THREADS"] / usual["ROWS"], 128);
  EXPECT_EQ(default_of(16384, 4096, DType::f32)["THREADS"], 256);
  const bool splits = GetParam() != "layernorm_rmsnorm";
  EXPECT_EQ(default_of(4096, 32000, DType::f16).variant, splits ? "staged" : "streamed");
  EXPECT_EQ(default_of(100000, 48, DType::f16)["ROWS"], 64);
  EXPECT_EQ(default_of(2, 131072, DType::f16).variant, splits ? "split" : "streamed");
  const bool in_clusters = GetParam() == "softmax" || GetParam() == "rmsnorm";
  EXPECT_EQ(default_of(4096, 131072, DType::f16).variant, in_clusters ? "staged" : "streamed");
}

// By searches of drawn problems: results/2026-11-27-nvidia-h200-row-defaults.
TEST_P(RowSpace, DefaultsOfFewHundredRowsAndOfShortOnes) {
  struct Case {
    std::int64_t rows, cols;
    DType type;
    int lanes;
  };
  for (const Case& c : {Case{483, 3776, DType::f32, 256}, Case{1064, 11320, DType::bf16, 256},
                        Case{16896, 147, DType::bf16, 32}, Case{1114, 120, DType::f16, 16},
                        Case{2083, 504, DType::f16, 32}, Case{8, 1616, DType::f16, 256}}) {
    const Config config = default_of(c.rows, c.cols, c.type);
    if (GetParam() == "layernorm" && c.cols > 8192) continue;  // staged, see below
    ASSERT_EQ(config.variant, "held");
    EXPECT_EQ(config["THREADS"] / config["ROWS"], c.lanes) << c.rows << " x " << c.cols;
  }
}

// By measurements on NVIDIA GPUs, and only there: results/2026-11-27-nvidia-h200-unseen-shapes.
TEST_P(RowSpace, DefaultsOfLongRowsOnNvidia) {
  if (GetParam() == "layernorm_rmsnorm") return;  // was not measured
  const Config config = default_of(1362, 18456, DType::f16);
  const auto problem = test::row_problem(entry_, 1362, 18456, {DType::f16, DType::f16});
  const Config elsewhere = entry_.default_config(problem, *architecture_info("gfx942"));
  EXPECT_EQ(elsewhere.text(), "held THREADS=1024 ROWS=1 VEC=8 STAY=0");
  if (GetParam() == "layernorm") {
    EXPECT_EQ(config.text(), "staged THREADS=256 VEC=8 STAY=2 AHEAD=2 CLUSTER=2 KEEP=1");
    return;
  }
  EXPECT_EQ(config.text(), "held THREADS=512 ROWS=1 VEC=8 STAY=0");
  const Config alone = default_of(348, 13096, DType::f32);
  EXPECT_EQ(alone["THREADS"], GetParam() == "softmax" ? 256 : 1024);
}

// The same: results/2026-11-30-nvidia-h200-odd-rows.
TEST_P(RowSpace, DefaultsOfRowsOfSingleElementsAndOfShortAndLongOnesOnNvidia) {
  const auto elsewhere = [&](std::int64_t rows, std::int64_t cols) {
    const auto problem = test::row_problem(entry_, rows, cols, {DType::f16, DType::f16});
    return entry_.default_config(problem, *architecture_info("gfx942"));
  };
  const bool two = GetParam() == "add_rmsnorm";
  const Config single = default_of(8000, 1501, DType::f16);
  EXPECT_EQ(single.text(),
            two ? "held THREADS=128 ROWS=1 VEC=1 STAY=8" : "held THREADS=128 ROWS=2 VEC=1 STAY=8");
  EXPECT_EQ(elsewhere(8000, 1501)["STAY"], 0);
  EXPECT_EQ(default_of(8000, 1502, DType::f16)["VEC"], 2);
  EXPECT_EQ(default_of(100, 1501, DType::f16)["STAY"], 0);           // few rows
  const bool holds_more = two || GetParam() == "layernorm_rmsnorm";  // than a row and two weights
  const std::int64_t longest = holds_more ? 8191 : 15359;
  EXPECT_EQ(default_of(300, longest, DType::f16).text(), "held THREADS=512 ROWS=1 VEC=1 STAY=1");
  EXPECT_EQ(default_of(200, longest, DType::f16)["STAY"], 0);  // fewer than two for each unit
  EXPECT_EQ(elsewhere(300, longest)["STAY"], 0);
  EXPECT_EQ(default_of(16000, 640, DType::f16).text(), "held THREADS=64 ROWS=4 VEC=8 STAY=0");
  EXPECT_EQ(elsewhere(16000, 640)["THREADS"], 128);
  EXPECT_EQ(default_of(1000, 640, DType::f16)["THREADS"], 128);
  if (GetParam() == "layernorm") {  // 1536 vectors, of f32 and of f16
    EXPECT_EQ(default_of(8192, 6144, DType::f32).variant, "held");
    EXPECT_EQ(default_of(8192, 12288, DType::f16).variant, "staged");
  } else if (GetParam() != "layernorm_rmsnorm") {
    const Config staged = default_of(1100, 28672, DType::f16);
    EXPECT_EQ(staged.variant, "staged");
    EXPECT_EQ(staged["CLUSTER"], two ? 8 : 4);
    EXPECT_EQ(default_of(32, 28672, DType::f16).variant, "held");
    EXPECT_NE(elsewhere(1100, 28672).variant, "staged");
  }
}

// For example norms of single heads: a wave holds a row, whatever the vector width is.
TEST_P(RowSpace, DefaultsOfFewShortRowsAreOneLaunchOfAWave) {
  for (const auto& [rows, cols] : {std::pair{1, 64}, {1, 128}, {1, 256}, {2, 128}, {4, 64}}) {
    const Config config = default_of(rows, cols, DType::f16);
    EXPECT_EQ(config.variant, "held") << rows << " x " << cols;
    EXPECT_LE(config["THREADS"], 64);
  }
  for (const auto& [rows, cols] : {std::pair{1, 1}, {4, 4}}) {
    EXPECT_EQ(default_of(rows, cols, DType::f16).variant, "naive");
  }
}

TEST_P(RowSpace, SaysWhyAConfigurationIsNotAllowed) {
  const Problem problem = test::row_problem(entry_, 64, 1001, {DType::f16, DType::f16});
  const Space space = entry_.space(problem, info_);
  const auto why = [&space](const char* text) {
    const auto config = space.parse(text);
    if (config) return std::string("valid");
    const std::string& message = config.failure().message;
    return message.substr(message.find("\": ") + 3);
  };
  EXPECT_EQ(why("held THREADS=256 ROWS=1 VEC=1 STAY=0"), "valid");
  EXPECT_EQ(why("held THREADS=256 ROWS=1 VEC=2 STAY=0"), "alignment: VEC must divide cols, 1001");
  EXPECT_EQ(why("held THREADS=128 ROWS=16 VEC=1 STAY=0"),
            "held: THREADS / ROWS threads must hold a row of 1001 with at most 64 elements each");
  EXPECT_EQ(
      why("held THREADS=256 ROWS=128 VEC=1 STAY=0"),
      "rows_of_workgroup: ROWS must not exceed THREADS, or the next power of 2 after rows, 64");
  EXPECT_EQ(why("streamed THREADS=32 ROWS=4 VEC=1 ITEMS=8"),
            "rounds: a thread must add the elements of a row in at most 8 rounds");
}

// More rows than workgroups stay, the last of which have fewer: rows arrive in turn in each place.
TEST(StagedRows, AreRightForAnyNumberOfRowsAhead) {
  Device& device = test::device("hip-host:0");
  for (const std::string& name : row_operations()) {
    const Operation& entry = built_in(name);
    for (const auto& [text, cols] :
         {std::pair("staged THREADS=64 VEC=4 STAY=1 AHEAD=1 CLUSTER=1 KEEP=0", 1000),
          std::pair("staged THREADS=32 VEC=8 STAY=1 AHEAD=2 CLUSTER=1 KEEP=0", 256),
          std::pair("staged THREADS=128 VEC=2 STAY=2 AHEAD=3 CLUSTER=1 KEEP=1", 258),
          std::pair("staged THREADS=64 VEC=8 STAY=1 AHEAD=4 CLUSTER=1 KEEP=1", 512),
          std::pair("staged THREADS=64 VEC=4 STAY=1 AHEAD=2 CLUSTER=1 KEEP=2", 1000)}) {
      if (name == "softmax" && !std::string(text).ends_with("KEEP=0")) continue;  // no weights
      const Problem problem = test::row_problem(entry, 77, cols, {DType::f16, DType::f16});
      const Config config = entry.space(problem, device.info()).parse(text).value();
      test::expect_right(entry, problem, entry.plan(problem, device.info(), config), text, 3,
                         device);
    }
  }
}

TEST_P(RowSpace, ClustersThatStayHaveTheirPlaces) {
  const Problem problem = test::row_problem(entry_, 4096, 32000, {DType::f16, DType::f16});
  for (const auto& [text, clusters] :
       {std::pair("staged THREADS=512 VEC=8 STAY=2 AHEAD=1 CLUSTER=4 KEEP=0", 57U),
        std::pair("staged THREADS=512 VEC=8 STAY=1 AHEAD=1 CLUSTER=2 KEEP=0", 66U),
        std::pair("staged THREADS=1024 VEC=8 STAY=1 AHEAD=1 CLUSTER=1 KEEP=0", 132U)}) {
    const Config config = entry_.space(problem, info_).parse(text).value();
    const LaunchPlan plan = entry_.plan(problem, info_, config).value();
    const auto cluster = static_cast<std::uint32_t>(config["CLUSTER"]);
    EXPECT_EQ(plan.launches[0].grid, (std::array<std::uint32_t, 3>{clusters, 1, cluster})) << text;
    const std::uint32_t inputs = GetParam() == "add_rmsnorm" ? 2 : 1;
    const std::uint32_t part = 32768 / cluster * 2;  // bytes, of whole vectors of all threads
    EXPECT_EQ(plan.sources[0].dynamic_shared_bytes, inputs * part) << text;
  }
}

TEST_P(RowSpace, StagedRowsNeedCopiesRowsAndRoom) {
  const auto why = [this](std::int64_t rows, std::int64_t cols, const DeviceInfo& device,
                          const char* text) {
    const Problem problem = test::row_problem(entry_, rows, cols, {DType::f16, DType::f16});
    const auto config = entry_.space(problem, device).parse(text);
    if (config) return std::string("valid");
    const std::string reason = config.failure().message;
    const auto from = reason.find("\": ") + 3;
    return reason.substr(from, reason.find(':', from) - from);
  };
  const char* one = "staged THREADS=256 VEC=8 STAY=1 AHEAD=2 CLUSTER=1 KEEP=0";
  const char* four = "staged THREADS=256 VEC=8 STAY=1 AHEAD=2 CLUSTER=4 KEEP=0";
  EXPECT_EQ(why(4096, 8192, info_, one), "valid");
  EXPECT_EQ(why(4096, 8192, *architecture_info("gfx942"), one), "lane_copies");
  EXPECT_EQ(why(256, 8192, info_, one), "turns");
  EXPECT_EQ(why(4096, 8192, info_, four), "valid");
  EXPECT_EQ(why(4096, 4096, info_, four), "idle_threads");
  EXPECT_EQ(why(4096, 32000, info_, one), "held");
  EXPECT_EQ(why(4096, 32000, info_, "staged THREADS=1024 VEC=8 STAY=1 AHEAD=4 CLUSTER=1 KEEP=0"),
            "shared_memory");
  if (entry_.name == "layernorm") {
    EXPECT_EQ(why(4096, 32000, info_, "staged THREADS=1024 VEC=8 STAY=1 AHEAD=1 CLUSTER=1 KEEP=2"),
              "valid");
    EXPECT_EQ(why(4096, 32000, info_, "staged THREADS=1024 VEC=8 STAY=1 AHEAD=2 CLUSTER=1 KEEP=2"),
              "shared_memory");
  }
  EXPECT_EQ(why(4096, 32000, info_, "staged THREADS=1024 VEC=8 STAY=4 AHEAD=1 CLUSTER=1 KEEP=0"),
            "resident");
  EXPECT_EQ(why(4096, 512, info_, "staged THREADS=256 VEC=1 STAY=1 AHEAD=1 CLUSTER=1 KEEP=0"),
            "copies");
}

INSTANTIATE_TEST_SUITE_P(Operations, RowSpace, ::testing::ValuesIn(row_operations()),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace greta::test::rows_test
