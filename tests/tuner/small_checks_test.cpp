// Protects: a kernel that is only correct on the user's problem, because no tile is partial and
// factors are 1, is found before it is timed. Bugs are planted in kernel sources; each first passes
// the aligned problem.

#include "tuner/evaluate/small_checks.hpp"

#include <gtest/gtest.h>

#include <map>

#include "runtime/device/backend.hpp"
#include "tests/catalog.hpp"
#include "tests/forwarding_device.hpp"
#include "tests/layers.hpp"

namespace greta::test::small_checks_test {
namespace {

using Values = std::map<std::string, int>;

struct Plant {
  const char* name;
  const char* problem;
  const char* variant;
  Values values;  ///< parameter values; others are the first valid ones
  const char* text;
  const char* broken;
};

const char* const square = "gemm dtype=f32 out=f32 m=64 n=64 k=64";
const char* const one_row = "gemm dtype=f32 out=f32 m=1 n=64 k=64";
const char* const rows = "softmax dtype=f32 out=f32 rows=64 cols=256";
const char* const all_keys =
    "attention dtype=f32 out=f32 batch=1 heads=2 kv_heads=2 q=64 kv=64 dim=16";
const char* const causal =
    "attention dtype=f32 out=f32 mask=causal batch=1 heads=2 kv_heads=2 q=64 kv=64 dim=16";

/// The extents are multiples of every tile.
const std::vector<Plant> plants{
    {"TiledRows", square, "tiled", {}, "if (row < ROWS_M) put4", "put4"},
    {"TiledK", square, "tiled", {{"VA", 1}}, "k0 + BK <= k_end;", "true;"},
    {"NaiveElements",
     square,
     "naive",
     {},
     "if (id >= uint64_t(args.tiles_m) * args.n) return;",
     ""},
    {"GemvColumns",
     one_row,
     "gemv",
     {{"SPLIT", 1}, {"VB", 1}, {"COLS", 8}},
     "tid < OUT_WIDTH && out_col < args.n",
     "tid < WIDTH"},
    {"GemvSlices",
     one_row,
     "gemv",
     {{"SPLIT", 4}, {"VA", 1}, {"VB", 1}},
     "min(k_begin + args.slice, args.k)",
     "k_begin + args.slice"},
    {"SplitKSlices",
     square,
     "split_k",
     {{"SPLIT", 4}, {"VA", 1}},
     "min(k_begin + args.slice, args.k)",
     "k_begin + args.slice"},
    {"ReduceElements", square, "split_k", {}, "if (id >= args.m * groups) return;", ""},
    {"Alpha", square, "tiled", {}, "vec4 x = args.alpha * sum;", "vec4 x = sum;"},
    {"Beta", square, "tiled", {}, "x += args.beta * load_out4(c);", ";"},
    {"StreamedRows",
     rows,
     "streamed",
     {{"ROWS", 8}},
     "group * ROWS + thread_index() / LANES < args.rows",
     "true"},
    {"StreamedColumns",
     rows,
     "streamed",
     {{"ROWS", 1}, {"VEC", 1}},
     "have = vectors_before(at, end)",
     "have = ITEMS"},
    {"FlatVectors",
     "add dtype=f32 out=f32 rows=64 cols=256",
     "flat",
     {{"VEC", 4}},
     "if (at < vectors) store_floats",
     "store_floats"},
    {"GroupedHeads", all_keys, "vector", {}, "head / (args.heads / args.kv_heads)", "head"},
    {"KeysOtherThanQueries",
     all_keys,
     "vector",
     {},
     "+ kv_head) * args.capacity;",
     "+ kv_head) * args.queries;"},
    {"CausalBehindACache",
     causal,
     "vector",
     {},
     "const uint end = count + query + 1;",
     "const uint end = args.queries + query + 1;"},
    {"QueriesOfATile", all_keys, "vector", {}, "if (query >= query_count()) continue;", ""},
};

class PlantedBug : public ::testing::TestWithParam<Plant> {
 protected:
  /// Returns the first valid configuration with these values.
  Config config_with(const Plant& plant, const Operation& operation) const {
    Alternative alternative =
        operation.variant(plant.variant).space(operation.shape(problem_), info());
    for (Parameter& parameter : alternative.parameters) {
      const auto wanted = plant.values.find(parameter.name);
      if (wanted != plant.values.end()) parameter.values = {wanted->second};
    }
    return Space({std::move(alternative)}).at(0);
  }

  PreparedPlan compiled(const LaunchPlan& plan, const Operands& operands, const Plant* plant) {
    std::size_t planted = 0;
    auto prepared = PreparedPlan::create(*device_, plan, operands, [&](const KernelSource& source) {
      KernelSource changed = source;
      const auto at = plant == nullptr ? std::string::npos : source.text.find(plant->text);
      if (at != std::string::npos) {
        changed.text.replace(at, std::string(plant->text).size(), plant->broken);
        ++planted;
      }
      return device_->compile(changed);
    });
    EXPECT_EQ(planted > 0, plant != nullptr) << "the text to plant a bug in is not there";
    return std::move(prepared).value();
  }

  const DeviceInfo& info() const { return device_->info(); }

  std::unique_ptr<Device> device_ = open_device("vulkan:0", {}).value();
  Problem problem_ = Problem::parse(GetParam().problem).value();
};

TEST_P(PlantedBug, PassesTheProblemAndNotTheSmallOnes) {
  const Operation& operation = built_in(problem_.op);
  const Config config = config_with(GetParam(), operation);
  SCOPED_TRACE(config.text());
  const LaunchPlan plan = operation.plan(problem_, info(), config).value();
  Workload load = Workload::create(*device_, operation, problem_).value();
  load.set_inputs(*device_, 1, InputStyle::plain).value();
  auto stream = device_->create_stream().value();
  SmallChecks checks(operation, problem_, info(), 1, config, plan);

  const PreparedPlan right = compiled(plan, load.operands(), nullptr);
  std::string method;
  const auto fine = checks.check(*device_, *stream, config, plan, right, 30, method);
  EXPECT_TRUE(fine) << fine.failure().message;
  EXPECT_EQ(method, "; 3 small problems with the same kernels");

  const PreparedPlan wrong = compiled(plan, load.operands(), &GetParam());
  Verdict verdict;
  const auto aligned = load.check(*device_, *stream, wrong, 30, verdict);
  EXPECT_TRUE(aligned) << "the problem alone finds it: " << aligned.failure().message;
  const auto found = checks.check(*device_, *stream, config, plan, wrong, 30, method);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.failure().status, Status::correctness);
  EXPECT_TRUE(found.failure().message.starts_with("on " + problem_.op + " dtype="))
      << found.failure().message;
}

INSTANTIATE_TEST_SUITE_P(Kernels, PlantedBug, ::testing::ValuesIn(plants),
                         [](const auto& instance) { return instance.param.name; });

/// A device that fails a given number of the next allocations.
class ScarceDevice final : public test::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;

  Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes, Memory memory) override {
    if (refused_ > 0) {
      --refused_;
      return Failure{Status::out_of_memory, "no memory is left", {}};
    }
    return ForwardingDevice::allocate(bytes, memory);
  }
  void trim() override {
    ++trims_;
    ForwardingDevice::trim();
  }

  int refused_ = 0;
  int trims_ = 0;
};

// A candidate must not fail because memory is temporarily short, and must not pass unverified if it
// stays short.
TEST(SmallChecks, MemoryThatIsShortIsReleasedAndAskedForOnceMore) {
  ScarceDevice device(open_device("vulkan:0", {}).value());
  const auto problem = Problem::parse(square).value();
  const Operation& operation = built_in(problem.op);
  const Config config = operation.default_config(problem, device.info());
  const LaunchPlan plan = operation.plan(problem, device.info(), config).value();
  Workload load = Workload::create(device, operation, problem).value();
  load.set_inputs(device, 1, InputStyle::plain).value();
  const auto right =
      PreparedPlan::create(device, plan, load.operands(),
                           [&](const KernelSource& source) { return device.compile(source); });
  ASSERT_TRUE(right);
  auto stream = device.create_stream().value();
  for (const int refused : {1, 1000}) {
    SmallChecks checks(operation, problem, device.info(), 1, config, plan);
    std::string method;
    device.refused_ = refused;
    device.trims_ = 0;
    const auto checked = checks.check(device, *stream, config, plan, *right, 30, method);
    EXPECT_GE(device.trims_, 1);
    if (refused == 1) {
      EXPECT_TRUE(checked) << checked.failure().message;
      EXPECT_EQ(method, "; 3 small problems with the same kernels");
      continue;
    }
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.failure().status, Status::out_of_memory);
    EXPECT_TRUE(checked.failure().message.starts_with("not verified on gemm "))
        << checked.failure().message;
    EXPECT_EQ(method, "");
  }
}

}  // namespace
}  // namespace greta::test::small_checks_test
