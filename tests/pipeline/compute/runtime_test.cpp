// Protects: lookups of a runtime. Kernels are compiled once, configurations that can't run are
// replaced, uses are counted, and captures survive a file.
#include "runtime/pipeline/compute/runtime.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>

#include "kernels/sampling/candidates.hpp"
#include "runtime/device/system/log.hpp"
#include "runtime/pipeline/compute/capture.hpp"
#include "runtime/pipeline/compute/pipeline.hpp"
#include "runtime/pipeline/compute/queue.hpp"
#include "tests/catalog.hpp"
#include "tests/pipeline/compute/cases.hpp"
#include "tests/pipeline/compute/refusing_device.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::runtime_test {
namespace {

const Problem add_problem = Problem::parse("add dtype=f32 out=f32 rows=4 cols=64").value();

std::unique_ptr<Runtime> refusing(test::RefusingDevice::Refuses refuses, int& compiled,
                                  const LookupFiles& files = {}) {
  auto device = open_device("vulkan:0", {}).value();
  return Runtime::of(std::make_unique<test::RefusingDevice>(std::move(device), std::move(refuses),
                                                            compiled),
                     files)
      .value();
}

TEST(Runtime, KernelsAreCompiledOnceForAllProblemsThatShareThem) {
  int compiled = 0;
  const auto runtime = refusing([](const KernelSource&) { return false; }, compiled);
  const PreparedOperation* const first = runtime->prepare(add_problem).value();
  EXPECT_EQ(compiled, 1);
  EXPECT_EQ(runtime->prepare(add_problem).value(), first);
  Problem taller = add_problem;
  taller.dims[0].second = 8;  // its source does not depend on extents
  EXPECT_NE(runtime->prepare(taller).value(), first);
  EXPECT_EQ(compiled, 1);
  EXPECT_EQ(runtime->kernels().size(), 1U);

  Problem other = add_problem;
  other.op = "gelu";
  Problem wrong = add_problem;
  wrong.dims[0].second = 0;
  const std::vector<Problem> list{add_problem, other, wrong, other};
  const auto outcome = runtime->precompile(list, 4);
  ASSERT_EQ(outcome.size(), 4U);
  EXPECT_EQ(compiled, 2);
  EXPECT_EQ(outcome[1].problem, other.key());
  EXPECT_EQ(outcome[1].kernels, 1U);
  EXPECT_FALSE(outcome[1].failure);
  ASSERT_TRUE(outcome[2].failure);
  EXPECT_EQ(outcome[2].failure->message,
            "add: rows 0: must be a whole number between 1 and 2147483647");
  static_cast<void>(runtime->prepare(other).value());
  EXPECT_EQ(compiled, 2);
}

// What a tuner with a time limit relies on: each longer step asks first, also of a runtime beside.
TEST(Runtime, AsksBeforeEachLongerStep) {
  bool may = true;
  RuntimeOptions options;
  options.device = "hip-host:0";
  options.before_step = [&]() -> Result<void> {
    if (may) return {};
    return Failure{Status::interrupted, "no", {}};
  };
  const auto opened = Runtime::open(options).value();
  const auto runtime = Runtime::beside(*opened, LookupFiles::none()).value();
  const Tensor x = runtime->allocate(DType::f32, {4, 64}).value();
  Pipeline pipeline(*runtime);
  ASSERT_TRUE(pipeline.copy(x.slice(0, 0, 2), x.slice(0, 2, 2)));
  const auto graph = pipeline.finish().value();
  const auto queue = runtime->queue().value();
  EXPECT_TRUE(queue->replay(*graph));
  const std::vector<float> zeros(4 * 64);
  const auto bytes = std::as_bytes(std::span(zeros));
  EXPECT_TRUE(runtime->upload(x, bytes));
  may = false;
  for (Runtime* const one : {opened.get(), runtime.get()}) {
    EXPECT_EQ(one->allocate(DType::f32, {4}).failure().status, Status::interrupted);
    EXPECT_EQ(one->upload(x, bytes).failure().status, Status::interrupted);
    EXPECT_EQ(one->prepare(add_problem).failure().status, Status::interrupted);
  }
  EXPECT_EQ(queue->replay(*graph).failure().status, Status::interrupted);
}

// A database of the user that can't be read any more is a failure of each problem, not an
// exception.
TEST(Runtime, ADatabaseThatBreaksIsAFailureOfPrecompiling) {
  const test::TemporaryFolder folder;
  const auto file = folder / "own.db";
  const DeviceInfo info = open_device("vulkan:0", {}).value()->info();
  test::store_winner(file, info, add_problem, built_in("add").default_config(add_problem, info));
  int compiled = 0;
  const auto runtime = refusing([](const KernelSource&) { return false; }, compiled, {file, {}});
  std::ofstream(file, std::ios::trunc) << std::string(100'000, 'x');
  set_log_sink([](LogLevel, std::string_view) {});
  const std::vector<Problem> list{add_problem};
  const auto outcome = runtime->precompile(list, 1);
  set_log_sink({});
  ASSERT_EQ(outcome.size(), 1U);
  ASSERT_TRUE(outcome[0].failure);
  EXPECT_NE(outcome[0].failure->message.find("own.db"), std::string::npos)
      << outcome[0].failure->message;
  EXPECT_EQ(compiled, 0);
}

TEST(Runtime, ALookedUpConfigurationThatDoesNotCompileIsReplacedOnce) {
  const test::TemporaryFolder folder;
  const Problem problem = Problem::parse("softmax dtype=f32 out=f32 rows=3 cols=500").value();
  const Operation& softmax = built_in("softmax");
  const DeviceInfo info = open_device("vulkan:0", {}).value()->info();
  const Config streamed = sample_candidates(softmax, problem, info, "streamed", 1, 3).at(0).config;
  ASSERT_NE(softmax.default_config(problem, info).variant, "streamed");
  test::store_winner(folder / "own.db", info, problem, streamed);
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel level, std::string_view line) {
    if (level == LogLevel::warning) lines.emplace_back(line);
  });
  int compiled = 0;
  const std::string refused = softmax.plan(problem, info, streamed)->sources[0].text;
  const auto runtime = refusing([&](const KernelSource& source) { return source.text == refused; },
                                compiled, {folder / "own.db", {}});
  for (int i = 0; i < 2; ++i) {
    const PreparedOperation& ready = *runtime->prepare(problem).value();
    EXPECT_EQ(ready.answer.origin, LookupOrigin::fallback);
    EXPECT_EQ(ready.answer.config, softmax.default_config(problem, info));
    EXPECT_EQ(ready.replaced, streamed.text() + ": the driver gives up");
  }
  set_log_sink({});
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find(problem.key() + ": the exact configuration can't run"),
            std::string::npos);

  // If the default can't run either, the failure is returned.
  std::atomic<int> tries{0};
  const auto hopeless = refusing([&](const KernelSource&) { return ++tries > 0; }, compiled);
  const auto failed = hopeless->prepare(problem);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.failure().message, "the driver gives up");
  EXPECT_EQ(failed.failure().log, "its log");
  // A pipeline reports it when it is finished, and keeps what was recorded.
  Pipeline pipeline(*hopeless);
  const Tensor row = Tensor::placeholder(DType::f32, {8, 4096});
  pipeline.label("layer 2 sum");
  pipeline.add(row, row, Tensor::placeholder(DType::f32, {8, 4096})).value();
  tries = 0;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(tries, i) << "a compiler that fails, or hangs, is asked once each time";
    EXPECT_EQ(pipeline.finish().failure().message, "layer 2 sum: the driver gives up");
    EXPECT_EQ(pipeline.problems().size(), 1U);
  }
}

TEST(Runtime, ProblemsOfABucketShareKernelsAndWhatIsKnownExactlyComesFirst) {
  const test::TemporaryFolder folder;
  const auto gemm = [](std::int64_t m) {
    return Problem{"gemm", DType::f32, DType::f32, {}, {{"m", m}, {"n", 64}, {"k", 64}}};
  };
  int compiled = 0;
  const auto plain = refusing([](const KernelSource&) { return false; }, compiled);
  static_cast<void>(plain->prepare(gemm(70)).value());
  const int once = compiled;
  for (const std::int64_t m : {100, 128, 65}) static_cast<void>(plain->prepare(gemm(m)).value());
  EXPECT_EQ(compiled, once);

  const Operation& kernel = built_in("gemm");
  const DeviceInfo info = open_device("vulkan:0", {}).value()->info();
  const Config exact = sample_candidates(kernel, gemm(70), info, "tiled", 1, 3).at(0).config;
  const Config of_bucket = sample_candidates(kernel, gemm(128), info, "tiled", 1, 4).at(0).config;
  test::store_winner(folder / "own.db", info, gemm(70), exact);
  test::store_winner(folder / "own.db", info, gemm(128), of_bucket);
  const auto tuned =
      refusing([](const KernelSource&) { return false; }, compiled, {folder / "own.db", {}});
  EXPECT_EQ(tuned->prepare(gemm(70)).value()->answer.origin, LookupOrigin::exact);
  EXPECT_EQ(tuned->prepare(gemm(70)).value()->answer.config, exact);
  EXPECT_EQ(tuned->prepare(gemm(100)).value()->answer.origin, LookupOrigin::nearest_shape);
  EXPECT_EQ(tuned->prepare(gemm(100)).value()->answer.config, of_bucket);
}

// What was tuned before rounding was allowed still runs, where nothing is known of the permitted
// problem.
TEST(Runtime, APermissionKeepsTheWinnersOfExactProducts) {
  const test::TemporaryFolder folder;
  const auto problem = [](std::int64_t m, bool rounded) {
    Problem one{"quantized_gemm",
                DType::f16,
                DType::f16,
                {{"weights", "q8_0"}},
                {{"m", m}, {"n", 16}, {"k", 64}}};
    if (rounded) one.attributes.emplace_back("math", "rounded_weights");
    return one;
  };
  for (const char* device : {"vulkan:0", "hip-host:0"}) {
    SCOPED_TRACE(device);
    const DeviceInfo info = open_device(device, {}).value()->info();
    const auto file = folder / (std::string(device).substr(0, 3) + ".db");
    const Config tuned =
        sample_candidates(built_in("quantized_gemm"), problem(130, false), info, "tiled", 1, 3)
            .at(0)
            .config;
    test::store_winner(file, info, problem(130, false), tuned);
    RuntimeOptions options;
    options.device = device;
    options.databases = {file, {}, {}};
    options.rounded_weights = true;
    const auto runtime = Runtime::open(options).value();
    const auto tensor = [&](DType type, const Shape& shape) {
      return runtime->allocate(type, shape).value();
    };
    Pipeline pipeline(*runtime);
    QuantizedGemmOptions weights{.format = WeightFormat::q8_0};
    for (const std::int64_t m : {130, 128}) {
      pipeline
          .quantized_gemm(tensor(DType::f16, {m, 64}), tensor(DType::u8, {16, 68}),
                          tensor(DType::f16, {m, 16}), weights)
          .value();
    }
    const auto graph = pipeline.finish().value();
    const auto& recorded = graph->operations();
    ASSERT_EQ(recorded.size(), 2U);
    EXPECT_EQ(recorded[0].prepared->problem, problem(130, true));
    EXPECT_EQ(recorded[0].prepared->answer.origin, LookupOrigin::nearest_shape);
    EXPECT_EQ(recorded[0].prepared->answer.problem, problem(130, false).key());
    EXPECT_EQ(recorded[0].prepared->answer.config, tuned);
    EXPECT_EQ(recorded[1].prepared->problem, problem(128, false));
    EXPECT_TRUE(runtime->queue().value()->replay(*graph));
  }
}

TEST(Runtime, RulesDecideBeforeTheDatabasesAndAreReported) {
  const test::TemporaryFolder folder;
  const auto gemm = [](std::int64_t m) {
    return Problem{"gemm", DType::f32, DType::f32, {}, {{"m", m}, {"n", 64}, {"k", 64}}};
  };
  const DeviceInfo info = open_device("vulkan:0", {}).value()->info();
  const Config exact =
      sample_candidates(built_in("gemm"), gemm(70), info, "tiled", 1, 3).at(0).config;
  test::store_winner(folder / "own.db", info, gemm(70), exact);
  int compiled = 0;
  const auto runtime =
      refusing([](const KernelSource&) { return false; }, compiled, {folder / "own.db", {}});
  runtime->use("gemm m=70: naive THREADS=64").value();
  runtime->use("gemm m=128: naive THREADS=128").value();
  runtime->use("gemm m<=70: naive").value();
  runtime->use("gemm m<=69: tiled").value();
  runtime->use("softmax: held").value();
  const Answer& forced = runtime->prepare(gemm(70)).value()->answer;
  EXPECT_EQ(forced.origin, LookupOrigin::forced);
  EXPECT_EQ(forced.config.text(), "naive THREADS=64");
  EXPECT_EQ(forced.rule, "gemm m=70: naive THREADS=64");
  // A rule for the problem that stands for a bucket decides about that problem alone.
  EXPECT_NE(runtime->prepare(gemm(100)).value()->answer.origin, LookupOrigin::forced);
  EXPECT_EQ(runtime->prepare(gemm(128)).value()->answer.config.text(), "naive THREADS=128");
  EXPECT_EQ(runtime->prepare(gemm(50)).value()->answer.config.variant, "naive");

  const auto rules = runtime->rules();
  ASSERT_EQ(rules.size(), 5U);
  const std::vector<std::pair<bool, bool>> expected{
      {true, true}, {true, true}, {true, true}, {true, false}, {false, false}};
  for (std::size_t i = 0; i < rules.size(); ++i) {
    EXPECT_EQ(std::pair(rules[i].matched, rules[i].decided), expected[i]) << rules[i].text;
  }
  // What is prepared stays, so that a rule for it is refused; other rules may still come.
  EXPECT_EQ(runtime->use("gemm m=50: tiled").failure().message,
            "rule \"gemm m=50: tiled\": " + gemm(50).key() +
                " is prepared already; rules come before what they decide about runs");
  std::ofstream(folder / "rules.txt") << "gemm m=51: tiled\ngemm m=50: tiled\n";
  const auto of_file = runtime->use("@" + (folder / "rules.txt").string());
  EXPECT_TRUE(of_file.failure().message.starts_with((folder / "rules.txt").string() + ":2: rule"));
  EXPECT_EQ(runtime->rules().size(), 5U) << "a file with a bad rule adds none";

  RuntimeOptions options;
  options.device = "vulkan:0";
  options.use = {"gemm: nope"};
  EXPECT_EQ(Runtime::open(options).failure().status, Status::invalid_argument);
}

TEST(Runtime, AForcedConfigurationIsNeverReplaced) {
  int compiled = 0;
  const Problem problem = Problem::parse("softmax dtype=f32 out=f32 rows=3 cols=500").value();
  std::string refused;
  const auto runtime =
      refusing([&](const KernelSource& source) { return source.text == refused; }, compiled);
  const Config streamed = runtime->lookup().best_of(problem, "streamed").value().config;
  refused =
      built_in("softmax").plan(problem, runtime->lookup().device(), streamed)->sources[0].text;
  runtime->use("softmax cols=500: streamed").value();
  const auto failed = runtime->prepare(problem);
  ASSERT_FALSE(failed);
  EXPECT_TRUE(failed.failure().message.starts_with(
      "rule \"softmax cols=500: streamed\": " + problem.key() + ": streamed "))
      << failed.failure().message;
  EXPECT_TRUE(failed.failure().message.ends_with(": the driver gives up"));
  // A configuration that the problem does not allow fails as well, with the constraint.
  const auto other = refusing([](const KernelSource&) { return false; }, compiled);
  other->use("softmax: held ROWS=3").value();
  const auto broken = other->prepare(problem);
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.failure().status, Status::constraints);
  EXPECT_NE(broken.failure().message.find("domain: ROWS=3"), std::string::npos);
}

TEST(Runtime, TransfersAreOfTheWholeTensor) {
  const auto runtime = test::open_runtime("vulkan:0");
  const Tensor tensor = runtime->allocate(DType::f32, {4, 4}).value();
  std::vector<std::byte> bytes(60);
  EXPECT_EQ(runtime->upload(tensor, bytes).failure().message,
            "upload: f32 [4, 4] has 64 bytes, not 60");
  EXPECT_EQ(runtime->download(tensor.slice(1, 0, 2), std::span(bytes).first(32)).failure().message,
            "download: f32 [4, 2] with strides [4, 1] is not packed; only packed tensors are "
            "transferred");
  EXPECT_EQ(runtime->upload({}, bytes).failure().message, "upload: no tensor");
  EXPECT_EQ(runtime->allocate(DType::f32, {std::int64_t{1} << 50}).failure().status,
            Status::out_of_memory);
  RuntimeOptions options;
  options.device = "no such device";
  EXPECT_EQ(Runtime::open(options).failure().status, Status::unavailable);
  options.device = "vulkan:0";
  options.databases.own = "/no/such/file.db";
  EXPECT_NE(Runtime::open(options).failure().message.find("/no/such/file.db"), std::string::npos);
}

TEST(Telemetry, CountsRunsReplaysAndTimesOnlyWhenAsked) {
  const auto runtime = test::open_runtime("vulkan:0");
  const auto queue = runtime->queue().value();
  const auto loaded = test::load(*runtime, add_problem, test::plain_shapes(add_problem), 1);
  const auto& t = loaded.operands;
  queue->add(t[0], t[1], t[2]).value();
  Pipeline pipeline(*runtime);
  for (int i = 0; i < 3; ++i) pipeline.add(t[0], t[1], t[2]).value();
  auto graph = pipeline.finish().value();
  queue->replay(*graph).value();
  const auto counts = [&] { return runtime->telemetry().report(runtime->prepared()).at(0).counts; };
  EXPECT_EQ(counts().runs, 0U);

  runtime->telemetry().set({.count = true});
  queue->add(t[0], t[1], t[2]).value();
  for (int i = 0; i < 2; ++i) queue->replay(*graph).value();
  queue->synchronize().value();
  EXPECT_EQ(counts().runs, 7U);
  EXPECT_EQ(counts().timed_runs, 0U);

  runtime->telemetry().set({.count = true, .device_time = true});
  queue->replay(*graph).value();
  queue->add(t[0], t[1], t[2]).value();
  queue->synchronize().value();
  EXPECT_EQ(counts().runs, 11U);
  EXPECT_EQ(counts().timed_runs, 4U);
  EXPECT_GT(counts().device_us, 0);
  test::expect_right(*runtime, add_problem, loaded, 1);

  graph.reset();  // its counts are kept
  static_cast<void>(Pipeline(*runtime).finish().value());
  EXPECT_EQ(counts().runs, 11U);
  const auto totals = runtime->telemetry().totals(runtime->prepared());
  ASSERT_EQ(totals.size(), 1U);
  EXPECT_EQ(totals[0].op, "add");
  EXPECT_EQ(totals[0].prepared, 1U);
  EXPECT_EQ(totals[0].hits.at(static_cast<std::size_t>(LookupOrigin::fallback)), 11U);
}

class CaptureFile : public ::testing::Test {
 protected:
  std::string error_of(const std::string& content) {
    std::ofstream(file_) << content;
    const auto read = read_capture(file_, catalog());
    if (read) return "read";
    const std::string name = file_.string();
    EXPECT_EQ(read.failure().message.find(name), 0U) << read.failure().message;
    return read.failure().message.substr(name.size());
  }

  const test::TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_ / "seen.jsonl";
};

TEST_F(CaptureFile, KeepsWhatRan) {
  const auto runtime = test::open_runtime("vulkan:0");
  runtime->telemetry().set({.count = true, .device_time = true});
  const auto queue = runtime->queue().value();
  const auto loaded = test::load(*runtime, add_problem, test::plain_shapes(add_problem), 1);
  for (int i = 0; i < 3; ++i) queue->run(add_problem, loaded.operands).value();
  queue->synchronize().value();
  const Capture seen = captured(*runtime);
  ASSERT_EQ(seen.problems.size(), 1U);
  EXPECT_EQ(seen.problems[0].count, 3U);
  EXPECT_GT(seen.problems[0].device_us, 0);
  write_capture(file_, seen).value();
  EXPECT_EQ(folder_.listing(), "seen.jsonl");
  const Capture read = read_capture(file_, catalog()).value();
  EXPECT_EQ(read.problems, seen.problems);
  EXPECT_EQ(read.fingerprint, runtime->device().info().fingerprint());
  EXPECT_EQ(write_capture("/no/such/folder/file", seen).failure().status, Status::io);
}

TEST_F(CaptureFile, EveryLineIsChecked) {
  const std::string head = R"({"greta_capture":1,"device":"d","fingerprint":"f","greta":"0"})"
                           "\n";
  const auto line = [&](const std::string& problem, const std::string& rest) {
    return head + R"({"problem":")" + problem + "\"," + rest + "}\n";
  };
  const std::string good = "add dtype=f32 out=f32 rows=1 cols=2",
                    counts = R"("count":1,"device_us":2)";
  EXPECT_EQ(error_of(line(good, counts)), "read");
  EXPECT_EQ(error_of(""), ": empty, no capture");
  EXPECT_EQ(error_of("x"), ", line 1: not a JSON object");
  EXPECT_EQ(error_of("{}"), ", line 1: no valid \"greta_capture\"");
  EXPECT_EQ(error_of(R"({"greta_capture":2})"),
            ", line 1: version 2 of the form, this GRETA reads 1");
  EXPECT_EQ(error_of(head + "\n"), ", line 2: not a JSON object");
  EXPECT_EQ(error_of(line("fft dtype=f32 out=f32 n=2", counts)),
            ", line 2: op fft: there is no such operation");
  EXPECT_NE(error_of(line("add dtype=f32 out=f32 rows=0 cols=2", counts)).find("rows 0"),
            std::string::npos);
  EXPECT_EQ(error_of(line(good, R"("count":-1,"device_us":2)")), ", line 2: no valid \"count\"");
  EXPECT_EQ(error_of(line(good, R"("count":0,"device_us":2)")),
            ", line 2: \"count\" must be at least 1");
  EXPECT_EQ(error_of(line(good, R"("count":1,"device_us":-2)")),
            ", line 2: \"device_us\" must be at least 0");
  EXPECT_EQ(error_of(line(good, counts) + line(good, counts).substr(head.size())),
            ", line 3: its problem was there before");
  std::filesystem::remove(file_);
  EXPECT_EQ(read_capture(file_, catalog()).failure().status, Status::io);
}

}  // namespace
}  // namespace greta::test::runtime_test
