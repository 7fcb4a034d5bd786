// Protects: every operation with tensors of more than 2^31 elements, some with more than 2^32.
// Around the elements and bytes whose indices exceed 31 and 32 bits, results equal the reference.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <memory>

#include "kernels/reference/elements.hpp"
#include "runtime/device/backend.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/wide/sampled_problem.hpp"

namespace greta::test::wide_test {
namespace {

/// Returns indices below `extent`, each of `elements` elements: the first and last ones, and those
/// on both sides of 2^29, 2^30, 2^31 and 2^32 elements.
std::vector<std::int64_t> boundaries(std::int64_t extent, std::int64_t elements) {
  std::vector<std::int64_t> list{0, extent - 1};
  for (const int power : {29, 30, 31, 32}) {
    const std::int64_t at = (std::int64_t{1} << power) / elements;
    for (const std::int64_t index : {at - 1, at, at + 1}) {
      if (index > 0 && index < extent) list.push_back(index);
    }
  }
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

/// Transforms the values of a tensor of indices.
void change_indices(HostTensor& tensor, const std::function<std::int64_t(std::int64_t)>& change) {
  for (std::size_t i = 0; i < tensor.spec.elements(); ++i) {
    const auto index = static_cast<std::int64_t>(tensor.at(i));
    store_element(DType::i32, tensor.data.data(), i, static_cast<double>(change(index)));
  }
}

struct WideCase {
  std::string name;
  std::string variant;
  SampledProblem problem;
};

SampledProblem sampled(const char* key, const char* dimension, std::int64_t elements) {
  SampledProblem problem{Problem::parse(key).value(), {dimension}, {}};
  problem.samples = boundaries(problem.whole.dim(dimension), elements);
  return problem;
}

/// Consecutive tokens around 2^32 elements of the caches.
SampledProblem long_cache() {
  constexpr std::int64_t first = (std::int64_t{1} << 32) / 128 - 4;
  const char* key = "kv_update dtype=f16 out=f16 tokens=4 kv_heads=1 dim=128 capacity=33554500";
  SampledProblem problem{Problem::parse(key).value(), {"capacity"}, {}};
  for (std::int64_t slot = first; slot < first + 8; ++slot) problem.samples.push_back(slot);
  problem.translate = [](std::vector<HostTensor>& inputs) {
    change_indices(inputs[2], [](std::int64_t position) { return position + first; });
  };
  return problem;
}

SampledProblem large_table() {
  const char* key = "embedding dtype=bf16 out=f32 tokens=64 vocabulary=66000 dim=32768";
  SampledProblem problem = sampled(key, "vocabulary", 32768);
  problem.translate = [samples = problem.samples](std::vector<HostTensor>& inputs) {
    change_indices(inputs[0],
                   [&](std::int64_t id) { return samples[static_cast<std::size_t>(id)]; });
  };
  return problem;
}

/// Scores that differ by hundreds: the keys between the samples, whose score is 0, have no weight.
SampledProblem long_sequence() {
  const char* key =
      "attention dtype=f16 out=f16 scale=\"20000\" batch=1 heads=1 kv_heads=1 q=1 kv=16777400 "
      "dim=128";
  SampledProblem problem = sampled(key, "kv", 128);
  problem.translate = [](std::vector<HostTensor>& inputs) {
    change_indices(inputs[3], [](std::int64_t) { return std::int64_t{16777400}; });
  };
  return problem;
}

/// Caches of more than 2^32 elements. The sequences between the samples have no keys.
SampledProblem long_caches() {
  const char* key = "attention dtype=f16 out=f16 batch=520 heads=1 kv_heads=1 q=9 kv=65536 dim=128";
  return sampled(key, "batch", 65536 * 128);
}

std::vector<WideCase> elementwise_cases() {
  const char* packed = "silu_mul dtype=f16 out=f16 layout=packed rows=65600 cols=16384";
  const char* in_place =
      "rope dtype=f16 out=f16 style=half place=in tokens=32800 heads=512 dim=128 "
      "positions=300";
  const char* new_heads =
      "kv_update dtype=f16 out=f16 tokens=1024 kv_heads=16400 dim=128 capacity=1030";
  return {
      {"add", "flat", sampled("add dtype=f16 out=f16 rows=65537 cols=32771", "rows", 32771)},
      {"gelu", "flat", sampled("gelu dtype=bf16 out=bf16 rows=131100 cols=32768", "rows", 32768)},
      {"silu_mul", "flat",
       sampled("silu_mul dtype=f16 out=f16 rows=65600 cols=32768", "rows", 32768)},
      {"silu_mul_packed", "flat", sampled(packed, "rows", 32768)},
      {"rope", "heads",
       sampled("rope dtype=f16 out=f16 tokens=32800 heads=512 dim=128 positions=300", "tokens",
               65536)},
      {"rope_in_place", "heads", sampled(in_place, "tokens", 65536)},
      {"rope_append", "heads",
       sampled("rope_append dtype=f16 out=f16 place=in batch=1 tokens=32800 heads=512 kv_heads=1 "
               "dim=128 positions=300 capacity=32800",
               "tokens", 65536)},
      {"kv_update_of_many", "append", sampled(new_heads, "kv_heads", 1030 * 128)},
      {"kv_update_behind_many", "append", long_cache()},
      {"embedding_of_many", "gather",
       sampled("embedding dtype=f16 out=f16 tokens=65600 vocabulary=50 dim=32768", "tokens",
               32768)},
      {"embedding_of_a_large_table", "gather", large_table()},
      {"argmax_row", "row",
       sampled("argmax dtype=f16 out=i32 rows=65600 cols=32768", "rows", 32768)},
      {"argmax_split", "split",
       sampled("argmax dtype=f16 out=i32 rows=65600 cols=32768", "rows", 32768)},
  };
}

/// Each way to traverse rows, and the special loads and stores of each operation.
std::vector<WideCase> row_cases() {
  std::vector<WideCase> cases;
  const auto add = [&cases](const std::string& op, const std::string& variant) {
    const std::string key = op + " rows=65600 cols=32768";
    const std::string name = op.substr(0, op.find(' ')) + "_" + variant;
    cases.push_back({name, variant, sampled(key.c_str(), "rows", 32768)});
  };
  add("softmax dtype=f16 out=f16 mask=additive", "held");
  for (const char* variant : {"split", "streamed", "naive"}) {
    add("softmax dtype=f16 out=f16", variant);
  }
  for (const char* variant : {"held", "split"}) add("layernorm dtype=f16 out=f16", variant);
  for (const char* variant : {"held", "streamed"}) {
    add("rmsnorm dtype=bf16 out=bf16", variant);
    add("layernorm_rmsnorm dtype=f16 out=f16", variant);
    add("add_rmsnorm dtype=f16 out=f16", variant);
  }
  return cases;
}

std::vector<WideCase> product_cases() {
  const auto gemm = [](const std::string& extents, const char* dimension, std::int64_t elements) {
    return sampled(("gemm dtype=f16 out=f16 " + extents).c_str(), dimension, elements);
  };
  return {
      {"gemm_naive_c", "naive", gemm("m=131100 n=32768 k=1", "m", 32768)},
      {"gemm_tiled_c", "tiled", gemm("m=65600 n=32768 k=8", "m", 32768)},
      {"gemm_tiled_a", "tiled", gemm("m=131100 n=16 k=32768", "m", 32768)},
      {"gemm_matrix_c", "matrix", gemm("m=65600 n=32768 k=16", "m", 32768)},
      {"gemm_matrix_a", "matrix", gemm("m=131100 n=16 k=32768", "m", 32768)},
      {"gemm_matrix_b", "matrix", gemm("layout=nt m=16 n=65600 k=32768", "n", 32768)},
      {"gemm_split_k_b", "split_k", gemm("m=16 n=16 k=134300000", "k", 16)},
      {"gemm_gemv_a", "gemv", gemm("m=8 n=1 k=268440000", "k", 8)},
      {"gemm_gemv_b", "gemv", gemm("m=1 n=33600000 k=64", "n", 64)},
      {"gemm_gemv_b_along_k", "gemv", gemm("layout=nt m=2 n=65600 k=32768", "n", 32768)},
  };
}

std::vector<WideCase> attention_cases() {
  const auto batch = [](const std::string& extents, std::int64_t elements) {
    const std::string key = "attention dtype=f16 out=f16 " + extents + " dim=128";
    return sampled(key.c_str(), "batch", elements);
  };
  const std::string queries = "batch=8200 heads=32 kv_heads=4 q=64 kv=16";
  return {
      {"attention_vector", "vector", batch(queries, 64 * 32 * 128)},
      {"attention_matrix", "matrix", batch(queries, 64 * 32 * 128)},
      {"attention_decode", "decode",
       batch("batch=16400 heads=8 kv_heads=8 q=1 kv=128", 8 * 128 * 128)},
      {"attention_decode_of_a_long_sequence", "decode", long_sequence()},
      {"attention_matrix_of_long_caches", "matrix", long_caches()},
  };
}

/// Few rows with large strides: the last one begins after 2^32 elements; those of kv_update, which
/// reads two such tensors, after 2^31. Some strides allow wide loads, others don't.
std::vector<WideCase> strided_cases() {
  const std::vector<std::array<const char*, 3>> keys{
      {"softmax_far_x", "held",
       "softmax dtype=f16 out=f16 x_stride=\"1431655767\" rows=4 cols=1024"},
      {"softmax_far_y", "split",
       "softmax dtype=f16 out=f16 y_stride=\"1431655768\" rows=4 cols=1024"},
      {"rmsnorm_far_x", "streamed",
       "rmsnorm dtype=f16 out=f16 x_stride=\"1431655768\" rows=4 cols=1024"},
      {"rmsnorm_far_y", "held",
       "rmsnorm dtype=f16 out=f16 y_stride=\"1431655767\" rows=4 cols=1024"},
      {"argmax_row_far_x", "row",
       "argmax dtype=f16 out=i32 x_stride=\"1431655767\" rows=4 cols=1024"},
      {"argmax_split_far_x", "split",
       "argmax dtype=f16 out=i32 x_stride=\"1431655768\" rows=4 cols=1024"},
      {"rope_far_x", "heads",
       "rope dtype=f16 out=f16 x_stride=\"1431655768\" tokens=4 heads=8 dim=128 positions=300"},
      {"rope_in_place_far_x", "heads",
       "rope dtype=f16 out=f16 style=half place=in x_stride=\"1431655767\" tokens=4 heads=8 "
       "dim=128 positions=300"},
      {"kv_update_far_kv", "append",
       "kv_update dtype=f16 out=f16 kv_stride=\"1073741832\" tokens=3 kv_heads=8 dim=128 "
       "capacity=100"},
      {"rope_append_far_q", "heads",
       "rope_append dtype=f16 out=f16 place=in q_stride=\"1431655768\" batch=1 tokens=4 heads=8 "
       "kv_heads=2 dim=128 positions=300 capacity=100"},
      {"attention_vector_far_q", "vector",
       "attention dtype=f16 out=f16 q_stride=\"1431655768\" batch=1 heads=8 kv_heads=4 q=4 kv=100 "
       "dim=128"},
      {"attention_matrix_far_q", "matrix",
       "attention dtype=f16 out=f16 q_stride=\"1431655768\" batch=1 heads=8 kv_heads=4 q=4 kv=100 "
       "dim=128"},
      {"attention_decode_far_q", "decode",
       "attention dtype=f16 out=f16 q_stride=\"1431655768\" batch=4 heads=8 kv_heads=4 q=1 kv=100 "
       "dim=128"},
  };
  std::vector<WideCase> cases;
  for (const auto& [name, variant, key] : keys) {
    cases.push_back({name, variant, {Problem::parse(key).value(), {}, {}}});
  }
  return cases;
}

std::vector<WideCase> wide_cases() {
  std::vector<WideCase> cases;
  for (const auto& some :
       {elementwise_cases(), row_cases(), strided_cases(), product_cases(), attention_cases()}) {
    cases.insert(cases.end(), some.begin(), some.end());
  }
  return cases;
}

/// Opened for one test, so that its memory is returned to the system.
std::unique_ptr<Device> open(const std::string& id) {
  return open_device(id, {}).value();
}

void expect_right(const WideCase& wide, Device& device) {
  const Operation& kernel = built_in(wide.problem.whole.op);
  const Config config = config_of(kernel, wide.problem.whole, device.info(), wide.variant);
  SCOPED_TRACE(wide.problem.whole.key() + " | " + config.text());
  const auto verdict = run_sampled(kernel, wide.problem, device, config);
  ASSERT_TRUE(verdict) << verdict.failure().message << '\n' << verdict.failure().log;
  EXPECT_TRUE(verdict->passed) << verdict->detail;
}

class ManyElements : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(ManyElements, AreRight) {
  const auto device = open(std::get<1>(GetParam()));
  for (const WideCase& wide : wide_cases()) {
    if (wide.name == std::get<0>(GetParam())) expect_right(wide, *device);
  }
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const WideCase& wide : wide_cases()) names.push_back(wide.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(
    Wide, ManyElements,
    ::testing::Combine(::testing::ValuesIn(case_names()), ::testing::ValuesIn(spacious_devices())),
    [](const auto& instance) {
      std::string name = std::get<0>(instance.param) + "_" + std::get<1>(instance.param);
      std::replace_if(
          name.begin(), name.end(), [](char c) { return c == ':' || c == '-'; }, '_');
      return name;
    });

/// The longest possible row, with its largest value in the last column.
class LongestRow : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(LongestRow, HasItsLargestValueFound) {
  const auto device = open(std::get<1>(GetParam()));
  const Operation& kernel = built_in("argmax");
  SampledProblem problem{
      Problem::parse("argmax dtype=f16 out=i32 rows=1 cols=2147483647").value(), {"cols"}, {}};
  const Config config = config_of(kernel, problem.whole, device->info(), std::get<0>(GetParam()));
  for (const std::int64_t largest : {2147483646LL, 1073741824LL}) {
    problem.samples = {largest};
    problem.translate = [](std::vector<HostTensor>& inputs) {
      store_element(DType::f16, inputs[0].data.data(), 0, 1.0);
    };
    const auto results = run_whole(kernel, problem, *device, config);
    ASSERT_TRUE(results) << results.failure().message << '\n' << results.failure().log;
    EXPECT_EQ(results->at(0).at(0), static_cast<double>(largest)) << config.text();
  }
}

INSTANTIATE_TEST_SUITE_P(Wide, LongestRow,
                         ::testing::Combine(::testing::Values("row", "split"),
                                            ::testing::ValuesIn(spacious_devices())));

// A wrong last element of more than 2^31.
TEST(WideReference, ComparesElementsToTheLast) {
  const TensorSpec spec{"C", Role::output, DType::f16, 65537, 32768};
  const auto reference = elements_reference({{spec, [](std::int64_t, std::int64_t) {
                                                return Expected{0, 0};
                                              }}});
  std::vector<HostTensor> outputs;
  outputs.push_back({spec, std::vector<std::byte>(spec.bytes())});
  EXPECT_TRUE(reference->check(outputs).passed);
  store_element(DType::f16, outputs[0].data.data(), spec.elements() - 1, 1);
  EXPECT_FALSE(reference->check(outputs).passed);
}

SampledProblem small_problem() {
  return {
      Problem::parse("rmsnorm dtype=f16 out=f16 rows=50 cols=64").value(), {"rows"}, {0, 31, 49}};
}

TEST(SampledProblem, IsJudgedByItsSamples) {
  const auto device = open("hip-host:1");
  expect_right({"rows", "held", small_problem()}, *device);
  SampledProblem columns{
      Problem::parse("gemm dtype=f32 out=f32 m=3 n=40 k=5").value(), {"n"}, {0, 1, 17, 39}};
  expect_right({"columns", "naive", columns}, *device);
  const char* strided =
      "softmax dtype=f16 out=f16 mask=additive x_stride=\"72\" y_stride=\"80\" rows=5 cols=64";
  expect_right({"strided", "held", {Problem::parse(strided).value(), {}, {}}}, *device);
}

TEST(SampledProblem, FailsWhereWhatIsReadLiesElsewhere) {
  const auto device = open("hip-host:1");
  SampledProblem problem = small_problem();
  problem.translate = [](std::vector<HostTensor>& inputs) {
    auto& rows = inputs[0].data;
    std::swap_ranges(rows.begin(), rows.begin() + 128, rows.begin() + 128);
  };
  const Operation& kernel = built_in("rmsnorm");
  const Config config = config_of(kernel, problem.whole, device->info(), "held");
  const auto verdict = run_sampled(kernel, problem, *device, config);
  ASSERT_TRUE(verdict) << verdict.failure().message;
  EXPECT_FALSE(verdict->passed);
}

TEST(SampledProblem, PlacesAreThoseOfTheOuterDimension) {
  EXPECT_EQ(places(100, 6, {0, 7, 49}), (std::vector<std::int64_t>{0, 1, 14, 15, 98, 99}));
  EXPECT_EQ(places(3, 3, {0, 1}), (std::vector<std::int64_t>{0, 1, 2}));
}

}  // namespace
}  // namespace greta::test::wide_test
