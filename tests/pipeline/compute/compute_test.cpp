// Protects: every operation is correct on devices, through a queue and through a pipeline, compared
// with its FP64 reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/pipeline/compute/pipeline.hpp"
#include "runtime/pipeline/compute/queue.hpp"
#include "tests/catalog.hpp"
#include "tests/pipeline/compute/cases.hpp"

namespace greta::test::compute_test {
namespace {

using Parameter = std::tuple<std::string, test::OperationCase>;

class Compute : public ::testing::TestWithParam<Parameter> {
 protected:
  const test::OperationCase& case_ = std::get<1>(GetParam());
  std::unique_ptr<Runtime> runtime_ = test::open_runtime(std::get<0>(GetParam()));
  std::unique_ptr<Queue> queue_ = runtime_->queue().value();
  const Problem problem_ = Problem::parse(case_.key).value();
};

TEST_P(Compute, OperationAtOnce) {
  const test::Loaded loaded = test::load(*runtime_, problem_, case_.shapes, 11);
  case_.call(*queue_, loaded.operands).value();
  queue_->synchronize().value();
  test::expect_right(*runtime_, problem_, loaded, 11);
}

// The outputs are temporaries, filled and read by copies in the same graph. The second replay uses
// other inputs in the same memory.
TEST_P(Compute, OperationInAReplayedGraph) {
  const auto specs = built_in(problem_.op).tensors(problem_);
  test::Loaded loaded = test::load(*runtime_, problem_, case_.shapes, 12);
  Pipeline pipeline(*runtime_);
  std::vector<Tensor> operands = loaded.operands;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].role == Role::input) continue;
    operands[i] = pipeline.temporary(specs[i].dtype, case_.shapes[i]);
    pipeline.copy(operands[i], loaded.operands[i]).value();
  }
  pipeline.label("the operation");
  case_.call(pipeline, operands).value();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].role != Role::input) pipeline.copy(loaded.operands[i], operands[i]).value();
  }
  const auto graph = pipeline.finish().value();
  for (const std::uint64_t seed : {12, 13}) {
    loaded.inputs = built_in(problem_.op).inputs(problem_, seed);
    auto next = loaded.inputs.begin();
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const HostTensor data = specs[i].role == Role::output ? test::unwritten(specs[i]) : *next++;
      runtime_->upload(loaded.operands[i], data.data).value();
    }
    queue_->replay(*graph).value();
    queue_->synchronize().value();
    test::expect_right(*runtime_, problem_, loaded, seed);
  }
}

// The suite must not pass because there is no device to test.
TEST(ComputeDevices, AreOfBothLanguages) {
  const auto ids = test::compute_devices();
  for (const char* backend : {"vulkan:", "hip-host:"}) {
    EXPECT_TRUE(std::any_of(ids.begin(), ids.end(), [&](const std::string& id) {
      return id.starts_with(backend);
    })) << backend;
  }
  EXPECT_FALSE(test::operation_cases().empty());
}

/// Columns of a matrix as operands, immediately and in a graph. Other columns must not change.
class ComputeColumns : public ::testing::TestWithParam<std::string> {};

TEST_P(ComputeColumns, AreReadAndWrittenWhereTheyLie) {
  const auto runtime = test::open_runtime(GetParam());
  const auto queue = runtime->queue().value();
  const Problem problem =
      Problem::parse(
          "rmsnorm dtype=f16 out=f16 affine=none x_stride=\"72\" y_stride=\"72\" rows=5 cols=24")
          .value();
  const Operation& rmsnorm = built_in("rmsnorm");
  const auto specs = rmsnorm.tensors(problem);
  const HostTensor before = random_tensor({"QKV", Role::input_output, DType::f16, 5, 72}, 3);
  HostTensor x{specs[0], {}}, y{specs[1], {}};
  const auto first = before.data.begin() + 24 * 2;
  x.data.assign(first, first + static_cast<std::ptrdiff_t>(specs[0].bytes()));
  const auto reference = rmsnorm.reference(problem, {x}, 1);
  for (const bool graph : {false, true}) {
    const Tensor whole = test::upload(*runtime, before, {5, 72});
    const Tensor in = whole.slice(1, 24, 24), out = whole.slice(1, 48, 24);
    if (graph) {
      Pipeline pipeline(*runtime);
      pipeline.rmsnorm(in, out).value();
      queue->replay(*pipeline.finish().value()).value();
    } else {
      queue->rmsnorm(in, out).value();
    }
    queue->synchronize().value();
    const HostTensor after = test::download(*runtime, whole, before.spec);
    y.data.assign(after.data.begin() + 48 * 2, after.data.end());
    const Verdict verdict = reference->check({y});
    EXPECT_TRUE(verdict.passed) << verdict.detail;
    for (std::size_t i = 0; i < after.data.size() / 2; ++i) {
      if (i % 72 >= 48) continue;
      EXPECT_EQ(after.at(i), before.at(i)) << i;
    }
  }
}

/// Weights that begin where only their format's least alignment allows it: rows of 256 weights of
/// q4_0 are multiples of 16 bytes, and those of 288 are not. On hip-host an access
/// that its type does not allow is an error.
class ComputeWeights : public ::testing::TestWithParam<std::string> {};

TEST_P(ComputeWeights, AreReadFromTheirLeastAlignmentOn) {
  const auto runtime = test::open_runtime(GetParam());
  const auto queue = runtime->queue().value();
  using kernels::WeightFormat;
  for (const auto& [format, k, begin] : {std::tuple{WeightFormat::q4_0, 288, 2},
                                         {WeightFormat::q4_0, 256, 16},
                                         {WeightFormat::q4_k, 256, 16}}) {
    const Problem problem =
        Problem::parse(fmt::format("quantized_gemm dtype=f32 out=f32 weights={} m=1 n=24 k={}",
                                   kernels::traits(format).name, k))
            .value();
    test::Loaded loaded = test::load(*runtime, problem, test::plain_shapes(problem), 5);
    const HostTensor& b = loaded.inputs[1];
    const auto bytes = static_cast<std::int64_t>(b.data.size());
    std::vector<std::byte> moved(b.data.size() + begin);
    std::copy(b.data.begin(), b.data.end(), moved.begin() + begin);
    const Tensor memory = runtime->allocate(DType::u8, {bytes + begin}).value();
    runtime->upload(memory, moved).value();
    loaded.operands[1] = memory.slice(0, begin, bytes).reshape({b.spec.rows, b.spec.cols});
    queue
        ->quantized_gemm(loaded.operands[0], loaded.operands[1], loaded.operands[2],
                         {.format = format})
        .value();
    queue->synchronize().value();
    test::expect_right(*runtime, problem, loaded, 5);
  }
}

// Scales and zero points that are bytes begin at a multiple of 2.
TEST_P(ComputeWeights, HaveBytesBesideThemAtMultiplesOfTwo) {
  const auto runtime = test::open_runtime(GetParam());
  const auto queue = runtime->queue().value();
  for (const bool integers : {true, false}) {
    const Problem problem =
        Problem::parse(
            integers ? "quantized_gemm dtype=f32 out=f32 group=\"32\" zeros=groups m=1 n=24 k=96"
                     : "quantized_gemm dtype=f32 out=f32 weights=mxfp4 m=1 n=24 k=96")
            .value();
    test::Loaded loaded = test::load(*runtime, problem, test::plain_shapes(problem), 5);
    const std::size_t which = integers ? 3 : 2;  // zeros, or scales
    const HostTensor& bytes = loaded.inputs[which];
    std::vector<std::byte> moved(bytes.data.size() + 2);
    std::copy(bytes.data.begin(), bytes.data.end(), moved.begin() + 2);
    const auto count = static_cast<std::int64_t>(bytes.data.size());
    const Tensor memory = runtime->allocate(DType::u8, {count + 2}).value();
    runtime->upload(memory, moved).value();
    loaded.operands[which] = memory.slice(0, 2, count).reshape({bytes.spec.rows, bytes.spec.cols});
    QuantizedGemmOptions options;
    options.format = integers ? kernels::WeightFormat::int4 : kernels::WeightFormat::mxfp4;
    options.scales = loaded.operands[2];
    if (integers) options.zeros = loaded.operands[3];
    queue->quantized_gemm(loaded.operands[0], loaded.operands[1], loaded.operands.back(), options)
        .value();
    queue->synchronize().value();
    test::expect_right(*runtime, problem, loaded, 5);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryDevice, ComputeWeights, ::testing::ValuesIn(test::compute_devices()),
                         [](const auto& given) { return test::device_name(given.param); });

INSTANTIATE_TEST_SUITE_P(EveryDevice, ComputeColumns, ::testing::ValuesIn(test::compute_devices()),
                         [](const auto& given) { return test::device_name(given.param); });

INSTANTIATE_TEST_SUITE_P(EveryDevice, Compute,
                         ::testing::Combine(::testing::ValuesIn(test::compute_devices()),
                                            ::testing::ValuesIn(test::operation_cases())),
                         [](const ::testing::TestParamInfo<Parameter>& given) {
                           return test::device_name(std::get<0>(given.param)) + "_" +
                                  std::get<1>(given.param).name;
                         });

}  // namespace
}  // namespace greta::test::compute_test
