// Protects: the reader of presets. Every error is reported with its place in the file.

#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "tests/catalog.hpp"
#include "tests/temporary_folder.hpp"
#include "tuner/bench/preset.hpp"

namespace greta::test::bench_preset_test {
namespace {

class BenchPreset : public testing::Test {
 protected:
  Result<Preset> read(const std::string& text) {
    const auto file = folder_.path() / "p.json";
    std::ofstream(file) << text;
    return read_preset(file, catalog());
  }
  std::string failure(const std::string& text) {
    const auto preset = read(text);
    return preset ? "" : preset.failure().message;
  }
  test::TemporaryFolder folder_;
};

TEST_F(BenchPreset, ListsStandForAllTheirValues) {
  const auto preset = read(R"({"iterations": 3, "batch": 5, "checks": "all", "platform": ["copy"],
    "problems": [{"op": "gemm", "dtype": ["f32", "f16"], "m": [1, 2, 3], "n": 8, "k": 8}]})");
  ASSERT_TRUE(preset) << preset.failure().message;
  EXPECT_EQ(preset->name, "p");
  EXPECT_EQ(preset->iterations, 3);
  EXPECT_EQ(preset->batch, 5);
  EXPECT_GE(preset->checks.size(), 5U);
  EXPECT_EQ(preset->platform, std::vector<std::string>{"copy"});
  ASSERT_EQ(preset->problems.size(), 6U);
  EXPECT_EQ(preset->problems[4].problem.key(), "gemm dtype=f16 out=f16 m=2 n=8 k=8");
  EXPECT_TRUE(preset->problems[4].where.ends_with("p.json: problems[0]"));
}

TEST_F(BenchPreset, ProblemsNameConfigurationsAndVariants) {
  const auto preset = read(R"({"problems": [
    {"op": "gemm", "m": [1, 2], "n": 8, "k": 8, "config": "naive THREADS=64", "variants": ["tiled", "gemv"]},
    {"op": "softmax", "rows": 8, "cols": 8, "variants": "all"}]})");
  ASSERT_TRUE(preset) << preset.failure().message;
  ASSERT_EQ(preset->problems.size(), 3U);
  for (const std::size_t i : {0, 1}) {
    EXPECT_EQ(preset->problems[i].configs, std::vector<std::string>{"naive THREADS=64"});
    EXPECT_EQ(preset->problems[i].variants, (std::vector<std::string>{"tiled", "gemv"}));
  }
  EXPECT_EQ(preset->problems[2].variants.size(), built_in("softmax").variants.size());
  EXPECT_TRUE(preset->problems[2].configs.empty());
}

TEST_F(BenchPreset, EntriesHaveGates) {
  const auto preset = read(R"({"problems": [
    {"op": "gemm", "m": [1, 2], "n": 8, "k": 8, "expect": ["us <= 40 on hip", ">= 10x vulkan:b.csv"]},
    {"op": "softmax", "rows": 8, "cols": 8, "expect": "error <= 50 %"}]})");
  ASSERT_TRUE(preset) << preset.failure().message;
  for (const std::size_t i : {0, 1}) {
    ASSERT_EQ(preset->problems[i].expect.size(), 2U);
    EXPECT_EQ(preset->problems[i].expect[0].device, "hip");
    EXPECT_EQ(preset->problems[i].expect[1].file, folder_.path() / "b.csv");  // beside the preset
  }
  EXPECT_EQ(preset->problems[2].expect[0].limit, 0.5);
  EXPECT_TRUE(read(R"({"measure": false, "problems": [
    {"op": "gemm", "m": 8, "n": 8, "k": 8, "expect": "error <= 0.5"}]})"));
}

TEST_F(BenchPreset, MistakesAreToldWithTheirPlace) {
  const std::string gemm = R"({"problems": [{"op": "gemm", "m": 8, "n": 8, "k": 8}, )";
  const std::vector<std::pair<std::string, std::string>> cases{
      {gemm + R"({"op": "gemm", "m": 8, "n": 8, "k": 8, "z": 1}]})", "p.json: problems[1].z: gemm"},
      {gemm + R"({"op": "conv"}]})", "p.json: problems[1].op: conv is not an operation"},
      {gemm + R"({"m": 1}]})", "p.json: problems[1]: \"op\" is missing"},
      {gemm + R"({"op": "gemm", "m": 8, "n": 8}]})", "p.json: problems[1].k: is missing"},
      {gemm + R"({"op": "gemm", "m": 0, "n": 8, "k": 8}]})", "p.json: problems[1].m: 0: must be"},
      {gemm + R"({"op": "gemm", "m": [8, {}], "n": 8, "k": 8}]})",
       "p.json: problems[1].m[1]: must"},
      {gemm + R"({"op": "gemm", "m": [], "n": 8, "k": 8}]})", "p.json: problems[1].m: is an empty"},
      {gemm + R"({"op": "gemm", "m": 8, "n": 8, "k": 8, "out_dtype": "f64"}]})",
       "p.json: problems[1].out_dtype: f64: must be"},
      {gemm + R"({"op": "gemm", "m": 8, "n": 8, "k": 8, "config": ["tiled", "nope X=1"]}]})",
       "p.json: problems[1].config[1]: gemm has no variant nope; it has"},
      {gemm + R"({"op": "gemm", "m": 8, "n": 8, "k": 8, "config": 7}]})",
       "p.json: problems[1].config[0]: must be text"},
      {gemm + R"({"op": "gemm", "m": 8, "n": 8, "k": 8, "variants": ["nope"]}]})",
       "p.json: problems[1].variants[0]: nope is not one of"},
      {gemm + R"({"op": "gemm", "m": 8, "n": 8, "k": 8, "expect": ["us <= 1", "us < 40"]}]})",
       "p.json: problems[1].expect[1]: \"us < 40\" is none of the limits"},
      {gemm + R"({"op": "gemm", "m": 8, "n": 8, "k": 8, "expect": {"us": 40}}]})",
       "p.json: problems[1].expect[0]: must be text"},
      {R"({"measure": false, "problems": [{"op": "gemm", "m": 8, "n": 8, "k": 8, "expect": "us <= 1"}]})",
       "p.json: problems[0].expect: \"us <= 1\" needs times"},
      {gemm + "7]}", "p.json: problems[1]: is not an object"},
      {R"({"problem": []})", "p.json: problem: unknown key"},
      {R"({"problems": 7})", "p.json: problems: is not a list"},
      {R"({"platform": ["copy", "coffee"]})", "p.json: platform[1]: coffee is not one of"},
      {R"({"runtime": ["dispatch", "dispatch"]})", "p.json: runtime[1]: dispatch is listed twice"},
      {R"({"checks": "some"})", "p.json: checks: must be"},
      {R"({"batch": 0})", "p.json: batch: must be a whole number"},
      {R"({"batch": 1.5})", "p.json: batch: must be a whole number"},
      {R"({"iterations": 18446744073709551615})", "p.json: iterations: must be a whole number"},
      {R"({"measure": 1})", "p.json: measure: must be true or false"},
      {R"({"budget": "long"})", "p.json: budget: "},
      {R"({"batch": 1, "batch": 2})", "p.json: batch: is given twice"},
      {R"({"pro\nblems": []})", "p.json: pro\\x0ablems: unknown key"},
      {R"({"name": "nothing"})", "p.json: lists nothing"},
      {"{", "p.json: is not JSON: parse error at line 1, column 2: "},
      {"[]", "p.json: is not a JSON object"}};
  for (const auto& [text, expected] : cases) {
    EXPECT_NE(failure(text).find(expected), std::string::npos)
        << text << "\n gave " << failure(text) << "\n not " << expected;
  }
  EXPECT_NE(
      read_preset(folder_.path() / "none.json", catalog()).failure().message.find("No such file"),
      std::string::npos);
}

// A product of lists is rejected before it exhausts the memory.
TEST_F(BenchPreset, TooManyProblemsAreRefused) {
  std::string list = "[1";
  for (int i = 2; i <= 300; ++i) list += "," + std::to_string(i);
  list += "]";
  const auto text = R"({"problems": [{"op": "gemm", "m": )" + list + R"(, "n": )" + list +
                    R"(, "k": )" + list + "}]}";
  EXPECT_NE(failure(text).find("problems[0]: is more than the 10000 problems"), std::string::npos);
}

TEST_F(BenchPreset, MutatedPresetsAreReadOrRefused) {
  const std::string good = R"({"name": "p", "iterations": 3, "platform": ["copy"], "problems": [
    {"op": "gemm", "dtype": ["f32", "f16"], "m": 128, "n": 128, "k": 128, "layout": "nt"}]})";
  ASSERT_TRUE(read(good));
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    std::string text = good;
    for (int edits = 1 + static_cast<int>(random() % 3); edits > 0; --edits) {
      const auto at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 8));
      }
      if (text.empty()) text = "{";
    }
    const auto message = failure(text);
    EXPECT_EQ(message.find('\n'), std::string::npos) << text;
  }
}

TEST(BenchPresetSchema, IsTheOneThatIsShipped) {
  std::ifstream in(std::string(GRETA_TEST_DATA) + "/../../presets/schema.json");
  const std::string shipped((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  EXPECT_EQ(shipped, preset_schema(catalog())) << "greta-bench schema > presets/schema.json";
}

}  // namespace
}  // namespace greta::test::bench_preset_test
