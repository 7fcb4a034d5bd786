// Protects: attention on matrix cores is right where the heads that share a KV head are packed into
// tiles, and where waves and workgroups divide the keys, for lengths of every kind.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/attention_cpu.hpp"
#include "tests/kernels/attention_runs.hpp"
#include "tests/kernels/cooperative_gpu.hpp"
#include "tests/kernels/plan_runner.hpp"

namespace greta::test::attention_packed_test {
namespace {

using test::attention_problem;
using test::AttentionShape;
using test::expect_right_attention;

/// What a case varies; the other parameters follow from the device.
struct Tiles {
  int bk, wq, waves, key_waves, qreg, pack, split;
  bool dealt = false;  // to dies, if the device has several
};

struct Case {
  AttentionShape shape;  // batch, heads, kv_heads, queries, keys, dim, causal
  DType in, out;
  Tiles tiles;
  std::vector<std::int64_t> lengths;
};

/// Which of the ways to transpose values each configuration has: the next one, or every one.
enum class Turning { in_turn, every };

class AttentionPacked : public ::testing::TestWithParam<std::pair<std::string, Turning>> {
 protected:
  /// Returns the configurations of these tiles: with all products that fill them.
  std::vector<Config> configs_of(const Tiles& t, const AttentionShape& shape) {
    const bool async = info_.architecture.find("sm_") != std::string::npos;
    const Config config{"matrix",
                        {{"BK", t.bk},
                         {"WQ", t.wq},
                         {"WAVES", t.waves},
                         {"KWAVES", t.key_waves},
                         {"BUFFERS", async ? 3 : 2},
                         {"ASYNC", async},
                         {"QREG", async ? std::min(t.qreg, 1) : t.qreg},
                         {"PACK", t.pack},
                         {"SPLIT", t.split},
                         {"FOLD", 1},
                         {"TOGETHER", 2},
                         {"XCDS", t.dealt ? accelerator_dies(info_) : 1}}};
    if (matrix_cores(info_.architecture) != MatrixCores::mfma) return {config};
    std::vector<Config> configs;
    for (const int span : {16, 32}) {
      if (t.wq % span != 0) continue;
      configs.push_back(config);
      configs.back().values.emplace_back("INSTR", span);
      if (has_turning_reads(info_.architecture)) add_turning(configs, shape);
    }
    return configs;
  }

  /// Replaces the last configuration by some that transpose values in each way, or by the next of
  /// them, with tiles that wait in registers or are copied to shared memory: three of them where
  /// there is room.
  void add_turning(std::vector<Config>& configs, const AttentionShape& shape) {
    const Config config = configs.back();
    configs.pop_back();
    const bool short_lines = config["BK"] * std::max(shape.dim, shape.v_dim) <= 64 * 80;
    constexpr std::array<std::pair<int, int>, 3> ways{{{0, 0}, {1, 0}, {1, 1}}};
    const bool every = GetParam().second == Turning::every;
    for (std::size_t i = 0; i < (every ? ways.size() : 1); ++i) {
      const auto& [turn, async] = ways[way_++ % ways.size()];
      Config& c = configs.emplace_back(config);
      c.values.emplace_back("TURN", turn);
      for (auto& [name, value] : c.values) {
        if (name == "ASYNC") value = async;
        if (name == "BUFFERS") value = async != 0 && short_lines ? 3 : 2;
      }
    }
  }

  /// Returns the first parameter that can make a tile smaller, and its next value.
  static std::optional<std::pair<const char*, int>> smaller_value(const Config& config) {
    for (const auto& [name, least] :
         {std::pair{"WQ", 16}, std::pair{"WAVES", 1}, std::pair{"BK", 32}}) {
      if (config[name] > least) return std::pair{name, config[name] / 2};
    }
    if (config["QREG"] == 0) return std::nullopt;
    return std::pair{"QREG", config["QREG"] - 1};
  }

  /// Returns the configuration with as many queries and keys of a tile, and of queries in
  /// registers, as the device has registers and lanes for, and without asynchronous copies where
  /// they leave no zeros between keys and values.
  Config fitted(const Problem& problem, Config config) const {
    const auto rejected = [&] {
      const auto plan = test::built_in("attention").plan(problem, info_, config);
      return plan ? "" : plan.failure().message;
    };
    for (std::string why = rejected(); !why.empty(); why = rejected()) {
      if (why.starts_with("copies: ") && config["ASYNC"] != 0) {
        config.value("ASYNC") = 0;
        config.value("BUFFERS") = 2;
      } else if (const auto smaller = smaller_value(config)) {
        config.value(smaller->first) = smaller->second;
      } else {
        break;
      }
    }
    return config;
  }

  void expect_right(const std::vector<Case>& cases) {
    for (const Case& c : cases) {
      const Problem problem = attention_problem(c.shape, c.in, c.out);
      for (const Config& config : configs_of(c.tiles, c.shape)) {
        expect_right_attention(device_, problem, fitted(problem, config), c.lengths);
      }
    }
  }

  Device& device_ = test::device(GetParam().first);
  const DeviceInfo& info_ = device_.info();

 private:
  std::size_t way_ = 0;
};

constexpr DType f16 = DType::f16, bf16 = DType::bf16, f32 = DType::f32;

/// Groups of 3, 5, 7 and 8 leave rows of a tile without a query, or end in the middle of one.
TEST_P(AttentionPacked, HeadsOfAGroupShareATile) {
  expect_right({
      {{4, 8, 1, 1, 150, 128, false}, f16, f16, {32, 16, 1, 1, 0, 1, 1}, {150, 0, 1, 65}},
      {{4, 6, 2, 5, 100, 80, true}, bf16, bf16, {32, 16, 1, 1, 1, 1, 1}, {100, 0, 3, 64}},
      {{2, 5, 1, 4, 130, 96, true}, f16, f32, {32, 16, 1, 1, 0, 1, 1}, {130, 33}},
      {{2, 14, 2, 3, 90, 64, true}, bf16, f32, {32, 16, 2, 1, 0, 1, 1}, {2, 90}},
      {{1, 6, 2, 37, 110, 40, true}, f16, f16, {32, 32, 2, 1, 0, 1, 1}, {101}},
  });
}

/// Slices are chosen by each sequence's own length: some have all slices, some one, some nothing.
TEST_P(AttentionPacked, WorkgroupsDivideTheKeysOfEachSequence) {
  expect_right({
      {{5, 2, 2, 1, 300, 64, false}, f16, f16, {32, 16, 1, 1, 0, 0, 8}, {300, 0, 1, 33, 257}},
      {{4, 9, 3, 5, 260, 80, true}, bf16, bf16, {32, 16, 1, 1, 0, 1, 4}, {260, 2, 4, 129}},
      {{3, 40, 2, 2, 400, 256, true}, f16, f32, {32, 16, 4, 1, 0, 1, 12}, {400, 64, 1}},
      {{2, 3, 3, 40, 300, 64, true}, bf16, bf16, {64, 16, 2, 1, 0, 0, 3}, {300, 39}},
  });
}

/// Of a short sequence's tile, only some of the waves have keys.
TEST_P(AttentionPacked, WavesDivideTheKeysOfATile) {
  expect_right({
      {{4, 7, 1, 1, 200, 128, false}, f16, f16, {64, 16, 1, 2, 0, 1, 1}, {200, 0, 31, 65}},
      {{4, 14, 2, 2, 290, 64, true}, bf16, f32, {128, 16, 1, 4, 1, 1, 2}, {290, 1, 40, 160}},
      {{2, 5, 5, 40, 90, 96, true}, f16, f16, {64, 32, 1, 2, 0, 0, 1}, {90, 41}},
      {{3, 4, 2, 3, 500, 80, true}, f16, f32, {64, 16, 1, 2, 0, 1, 6}, {500, 130, 0}},
  });
}

/// Values have fewer elements than keys, or more, in whole blocks of matrix instructions or not.
TEST_P(AttentionPacked, ValuesOfAnotherSize) {
  expect_right({
      {{1, 3, 3, 70, 130, 192, true, 128}, f16, f16, {32, 16, 4, 1, 0, 0, 1}, {}},
      {{2, 16, 1, 3, 300, 192, true, 128}, bf16, bf16, {32, 16, 2, 1, 0, 1, 3}, {300, 60}},
      {{2, 7, 1, 2, 290, 64, true, 80}, bf16, f32, {128, 16, 1, 4, 0, 1, 2}, {290, 1}},
      {{3, 4, 2, 37, 90, 96, false, 40}, f16, f32, {64, 32, 1, 2, 0, 0, 1}, {90, 0, 33}},
      {{1, 2, 2, 20, 70, 32, true, 256}, f16, f16, {32, 16, 2, 1, 0, 0, 1}, {65}},
  });
}

/// On CDNA, products of 32 x 32 compute the same as those of 16 x 16.
TEST_P(AttentionPacked, ProductsOfSeveralSizes) {
  expect_right({
      {{2, 3, 3, 70, 130, 128, true}, f16, f16, {64, 32, 2, 1, 1, 0, 1}, {130, 77}},
      {{1, 2, 2, 90, 100, 80, false}, bf16, bf16, {32, 32, 2, 1, 0, 0, 1}, {99}},
      {{2, 8, 2, 17, 290, 64, true, 96}, bf16, f32, {128, 64, 1, 2, 0, 1, 2}, {290, 30}},
      {{1, 4, 1, 33, 200, 40, true}, f16, f32, {64, 64, 1, 1, 1, 1, 3}, {150}},
  });
}

/// Lines that begin with each bank, one in two or one in four of them, and whole or partial last
/// tiles; copies of a tile are a multiple of the threads, or not. Where the device transposes no
/// values as it reads them, these are tiles as any others.
TEST_P(AttentionPacked, LinesOfEveryLength) {
  std::vector<Case> cases;
  for (const std::int64_t dim : {16, 32, 48, 64, 96, 112, 160}) {
    cases.push_back({{2, 3, 1, 19, 140, dim, true, 8 + dim / 2 / 8 * 8},
                     dim % 32 == 0 ? bf16 : f16,
                     f32,
                     {64, 32, 1, 1, 0, 1, 2},
                     {140, 64}});
  }
  expect_right(cases);
}

/// On AMD, queries that stay in registers need not pass shared memory: rows without a query, and
/// elements after the last one of a head, are zeros.
TEST_P(AttentionPacked, QueriesComeStraightFromMemory) {
  expect_right({
      {{2, 3, 3, 70, 130, 128, true}, f16, f16, {64, 32, 2, 1, 2, 0, 1}, {130, 77}},
      {{1, 2, 2, 21, 100, 80, false}, bf16, bf16, {32, 32, 1, 1, 2, 0, 1}, {99}},
      {{2, 6, 2, 5, 200, 40, true, 96}, f16, f32, {64, 16, 2, 2, 2, 1, 2}, {200, 30}},
      {{1, 2, 1, 40, 90, 192, true, 64}, bf16, f32, {32, 32, 2, 1, 2, 0, 1}, {}},
  });
}

/// Numbers of tiles that dies share evenly, or not, or of which some dies have none.
TEST_P(AttentionPacked, DiesHaveNeighbouringTiles) {
  expect_right({
      {{1, 4, 4, 40, 50, 64, true}, f16, f16, {32, 16, 1, 1, 0, 0, 1, true}, {}},
      {{3, 5, 5, 20, 40, 32, true}, f16, f32, {32, 16, 1, 1, 0, 0, 1, true}, {40, 0, 21}},
      {{1, 3, 3, 9, 40, 64, false}, bf16, bf16, {32, 16, 1, 1, 0, 0, 1, true}, {}},
      {{2, 8, 2, 3, 200, 64, true}, bf16, f32, {32, 16, 1, 1, 0, 1, 3, true}, {200, 65}},
  });
}

/// 64 heads of one KV head are four tiles of 16 rows, or one of 64.
TEST_P(AttentionPacked, ManyHeadsOfOneKvHead) {
  expect_right({
      {{3, 64, 1, 1, 400, 128, false}, f16, f16, {64, 16, 1, 2, 0, 1, 6}, {400, 0, 100}},
      {{2, 64, 1, 1, 300, 64, false}, bf16, bf16, {64, 16, 4, 2, 0, 1, 3}, {300, 65}},
  });
}

/// Where matrix cores have no place for packed heads, `decode` takes them: tiles of one head, and
/// those of plain multiplications, would read keys many times or with few threads.
TEST(AttentionPackedDefaults, FewQueriesHaveOneOfDecodeOrOfMatrixCoresEverywhere) {
  std::vector<DeviceInfo> devices{test::cooperative_gpu(test::nvidia_products),
                                  test::cooperative_gpu(test::intel_products)};
  for (const std::string& name : known_architectures()) {
    devices.push_back(architecture_info(name).value());
  }
  std::size_t packed = 0;
  for (const DeviceInfo& device : devices) {
    for (const DType type : {f16, bf16}) {
      for (const std::int64_t dim : {8, 40, 64, 80, 128, 192, 256}) {
        for (const std::int64_t group : {1, 3, 8, 16, 64}) {
          for (const std::int64_t queries : {1, 2}) {
            const Problem problem =
                attention_problem({1, 2 * group, 2, queries, 8192, dim, true}, type, type);
            const Config config = built_in("attention").default_config(problem, device);
            // One head for each KV head is as good as packed, where waves divide the keys.
            const bool packs = config.variant == "matrix" &&
                               (config["PACK"] != 0 || (group == 1 && config["KWAVES"] > 1));
            EXPECT_TRUE(packs || config.variant == "decode")
                << device.architecture << ' ' << problem.key() << " | " << config.text();
            packed += packs ? 1 : 0;
          }
        }
      }
    }
  }
  EXPECT_GT(packed, devices.size() * 20);
}

/// Returns the devices whose matrix cores HIP kernels use: GPUs, and those that hip-host emulates.
std::vector<std::pair<std::string, Turning>> matrix_devices() {
  std::vector<std::pair<std::string, Turning>> devices;
  for (const std::string& id : test::usable_devices()) {
    const DeviceInfo& info = test::device(id).info();
    if (info.language != Language::hip || info.matrix_operations.empty()) continue;
    devices.emplace_back(id, Turning::in_turn);
    if (has_turning_reads(info.architecture)) devices.emplace_back(id, Turning::every);
  }
  return devices;
}

std::string name_of(const ::testing::TestParamInfo<AttentionPacked::ParamType>& instance) {
  const bool every = instance.param.second == Turning::every;
  return test::device_name(instance.param.first) + (every ? "_every_way" : "");
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionPacked, ::testing::ValuesIn(matrix_devices()), name_of);

}  // namespace
}  // namespace greta::test::attention_packed_test
