// Every operation on devices, through a queue and through a pipeline, against its FP64 reference.
#include <gtest/gtest.h>

#include "kernels/catalog.hpp"
#include "runtime/pipeline/compute/pipeline.hpp"
#include "runtime/pipeline/compute/queue.hpp"
#include "tests/pipeline/compute/cases.hpp"

namespace greta {
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

// What is written is a temporary, filled and read by copies of the same graph; the second replay is
// on other inputs, in the same memory.
TEST_P(Compute, OperationInAReplayedGraph) {
  const auto specs = find_template(problem_.op)->tensors(problem_);
  test::Loaded loaded = test::load(*runtime_, problem_, case_.shapes, 12);
  Pipeline pipeline(*runtime_);
  std::vector<Tensor> operands = loaded.operands;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].role == Role::input) continue;
    operands[i] = pipeline.temporary(specs[i].dtype, case_.shapes[i]);
    if (specs[i].role == Role::input_output) {
      pipeline.copy(operands[i], loaded.operands[i]).value();
    }
  }
  pipeline.label("the operation");
  case_.call(pipeline, operands).value();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].role != Role::input) pipeline.copy(loaded.operands[i], operands[i]).value();
  }
  const auto graph = pipeline.finish().value();
  for (const std::uint64_t seed : {12, 13}) {
    loaded.inputs = find_template(problem_.op)->inputs(problem_, seed);
    auto next = loaded.inputs.begin();
    for (std::size_t i = 0; i < specs.size(); ++i) {
      if (specs[i].role == Role::output) continue;
      runtime_->upload(loaded.operands[i], next->data).value();
      ++next;
    }
    queue_->replay(*graph).value();
    queue_->synchronize().value();
    test::expect_right(*runtime_, problem_, loaded, seed);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryDevice, Compute,
                         ::testing::Combine(::testing::ValuesIn(test::compute_devices()),
                                            ::testing::ValuesIn(test::operation_cases())),
                         [](const ::testing::TestParamInfo<Parameter>& given) {
                           return test::device_name(std::get<0>(given.param)) + "_" +
                                  std::get<1>(given.param).name;
                         });

}  // namespace
}  // namespace greta
