// Protects: trials, measurements and devices survive JSON unchanged, and malformed JSON is an
// error.

#include "db/json.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <set>

#include "tests/db/fixture.hpp"
#include "tests/layers.hpp"

namespace greta::test::json_test {
namespace {

using Json = nlohmann::json;

/// Serialises and parses like another process.
Json through_text(const Json& json) {
  return Json::parse(json.dump());
}

TEST(JsonForms, RandomTrialsComeBackAsTheyWere) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 300; ++i) {
    const auto trial = random_trial(random);
    expect_equal(trial_from_json(through_text(to_json(trial))), trial);
  }
}

TEST(JsonForms, MeasurementOfAWinnerComesBackAsItWas) {
  const auto winner = sample_winner();
  const auto json = through_text(to_json(winner));
  expect_equal(measurement_from_json(json["measurement"]), winner.measurement);
}

TEST(JsonForms, DeviceComesBackAsItWas) {
  expect_equal(device_from_json(through_text(to_json(sample_device()))), sample_device());
  for (const auto kind : {DeviceKind::discrete_gpu, DeviceKind::integrated_gpu,
                          DeviceKind::virtual_gpu, DeviceKind::cpu}) {
    auto device = sample_device();
    device.kind = kind;
    EXPECT_EQ(device_from_json(to_json(device)).kind, kind);
  }
}

TEST(JsonForms, FieldNamesAreStable) {
  // docs/json.md documents these names.
  const auto trial = to_json(sample_trial("key1,key2"));
  EXPECT_EQ(
      trial.dump(),
      R"({"card":"00112233445566778899aabbccddeeff","compile_s":0.0,"config":{"values":[["BM",128],["BN",64],["BK",16]],)"
      R"("variant":"tiled"},"content_keys":"key1,key2",)"
      R"("kernels":[{"accumulator_registers":64,"code_bytes":5120,)"
      R"("inverse_throughput":0.25,"latency":1234.5,"matrix_instructions":96,)"
      R"("name":"gemm/tiled","registers":128,"scalar_registers":48,"scratch_bytes":16,)"
      R"("shared_memory_bytes":32768,"spilled_registers":4,"spilled_scalar_registers":2,)"
      R"("subgroups_per_simd":8}],)"
      R"("log":"","measure_s":0.0,)"
      R"("measurement":{"batch":1,"clocks":"","cold":true,"dropped":0,"flush_bytes":0,)"
      R"("high_us":11.0,"low_us":10.25,"median_us":10.5,"p99_us":0.0,"raced":false,)"
      R"("samples_us":[10.5,10.25,11.0]},"message":"",)"
      R"("problem":"gemm dtype=f16 out=f32 layout=nt m=16 n=32 k=4096","status":"ok",)"
      R"("verdict":{"bound":2e-06,"detail":"","error":1e-06,"method":"full","passed":true},)"
      R"("verify_s":0.0})");
  auto failed = sample_trial("x");
  failed.failure = Status::out_of_memory;
  EXPECT_EQ(to_json(failed)["status"], "out_of_memory");

  const auto winner = to_json(sample_winner());
  EXPECT_EQ(winner["speedup_low"], 1.9);
  EXPECT_EQ(winner["roofline"], 0.75);
  EXPECT_EQ(winner["measurement"], to_json(sample_winner().measurement));
  EXPECT_EQ(winner["measurement"]["samples_us"].dump(), "[12.5,12.25,12.75,12.5]");
  EXPECT_EQ(winner["measurement"]["dropped"], 2);
  EXPECT_EQ(winner["default_samples_us"].dump(), "[25.0,24.5,25.5,1e-300]");
  EXPECT_EQ(winner["ties"][0]["ratio_to_winner"], 1.001);
  EXPECT_EQ(winner["ties"][1]["ratio_to_winner"], "Infinity");
  EXPECT_EQ(winner["verdict"]["method"], "16 rows in full");
  EXPECT_EQ(winner["kernels"][1]["name"], "gemm/reduce");
  EXPECT_EQ(winner["median_us"], 12.5);
  const auto device = to_json(sample_device());
  EXPECT_EQ(device["id"], "vulkan:2");
  EXPECT_EQ(device["language"], "hip");
  EXPECT_EQ(device["unit_threads"], 2048);
  EXPECT_EQ(device["matrix_operations"][1].dump(),
            R"({"accumulator":"f32","input":"bf16","k":8,"m":32,"n":32})");
  EXPECT_EQ(to_json(sample_device())["fingerprint"], sample_device().fingerprint());
}

TEST(JsonForms, BytesThatAreNotUtf8AreReplaced) {
  auto trial = sample_trial("x");
  trial.failure = Status::compile;
  trial.log = "bad \xff byte";
  EXPECT_EQ(trial_from_json(through_text(to_json(trial))).log, "bad \xEF\xBF\xBD byte");
}

TEST(JsonForms, UnknownFieldsAreIgnored) {
  auto json = to_json(sample_trial("x"));
  json["later"] = 1;
  expect_equal(trial_from_json(json), sample_trial("x"));
}

/// Damages each value and each field of `good` in turn, which must be rejected. Fields that are not
/// `needed` may be missing.
template <typename Read>
void expect_strict(const Json& good, const Read& read, const std::set<std::string>& optional,
                   const std::optional<std::set<std::string>>& needed = std::nullopt) {
  for (const Json& top : {Json(), Json(1), Json("text"), Json::array()}) {
    EXPECT_THROW(read(top), Error);
  }
  const auto leaves = good.flatten();
  EXPECT_GT(leaves.size(), optional.size());
  for (const auto& [path, leaf] : leaves.items()) {
    if (optional.contains(path)) continue;
    const Json::json_pointer pointer(path);
    for (const Json& wrong : {Json(), Json::object(), Json("nonsense"), Json(1.5), Json(1e300),
                              Json(-1), Json(true), Json::array({1})}) {
      const bool number_for_number = leaf.is_number() && wrong.is_number();
      if (wrong.type() == leaf.type() || number_for_number) continue;
      if (leaf.is_string() && wrong.is_string()) continue;
      auto bad = good;
      bad[pointer] = wrong;
      EXPECT_THROW(read(bad), Error) << path << " = " << wrong;
    }
    auto bad = good;
    const bool may_lack = needed && pointer.parent_pointer().empty() && !needed->contains(path);
    if (bad[pointer.parent_pointer()].is_object() && !may_lack) {
      bad[pointer.parent_pointer()].erase(pointer.back());
      EXPECT_THROW(read(bad), Error) << path << " missing";
    }
  }
}

/// Fields that identify a device.
const std::set<std::string> identity{"/backend",      "/language", "/index",        "/name",
                                     "/vendor",       "/driver",   "/compiler",     "/kind",
                                     "/architecture", "/uuid",     "/compute_units"};

TEST(JsonForms, WrongFormIsAnError) {
  const auto trial = to_json(sample_trial("x"));
  std::set<std::string> needed;
  for (const auto& [name, value] : trial.items()) needed.insert("/" + name);
  needed.erase("/card");  // trials of older versions have none
  expect_strict(trial, trial_from_json, {}, needed);
  expect_strict(to_json(sample_device()), device_from_json, {"/id", "/fingerprint"}, identity);
}

// A version of GRETA with a new field must read devices of older versions.
TEST(JsonForms, ADeviceWithoutAFieldHasThatFieldsDefault) {
  const auto whole = to_json(sample_device());
  for (const auto& [name, value] : whole.items()) {
    if (identity.contains("/" + name) || name == "id" || name == "fingerprint") continue;
    auto json = whole;
    json.erase(name);
    auto expected = whole;
    expected[name] = to_json(DeviceInfo{})[name];
    expected["fingerprint"] = device_from_json(expected).fingerprint();
    EXPECT_EQ(to_json(device_from_json(json)), expected) << name;
  }
}

TEST(JsonForms, NumbersOutOfRangeAreErrors) {
  const auto with = [](const char* path, const Json& value) {
    auto json = to_json(sample_trial("x"));
    json[Json::json_pointer(path)] = value;
    return json;
  };
  EXPECT_THROW(trial_from_json(with("/measurement/batch", 1e12)), Error);
  EXPECT_THROW(trial_from_json(with("/measurement/batch", 1'000'000'000'000)), Error);
  EXPECT_THROW(trial_from_json(with("/measurement/batch", 1.5)), Error);
  EXPECT_THROW(trial_from_json(with("/measurement/flush_bytes", -1)), Error);
  EXPECT_THROW(trial_from_json(with("/config/values/0/1", 1LL << 40)), Error);
  EXPECT_THROW(trial_from_json(with("/status", "fine")), Error);
  EXPECT_THROW(trial_from_json(with("/measurement/median_us", "fast")), Error);
  EXPECT_EQ(error_of([&] { trial_from_json(with("/measurement/batch", "many")); }),
            "measurement: batch is not an integer in the valid range");
  auto device = to_json(sample_device());
  device["kind"] = "toaster";
  EXPECT_EQ(error_of([&] { device_from_json(device); }), "device: kind is unknown");
  device = to_json(sample_device());
  device["max_grid"] = {1, 2};
  EXPECT_EQ(error_of([&] { device_from_json(device); }),
            "device: max_grid does not have three elements");
}

}  // namespace
}  // namespace greta::test::json_test
