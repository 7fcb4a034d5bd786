#include "tests/kernels/plan_runner.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <chrono>
#include <map>

#include "kernels/launch/operands.hpp"
#include "kernels/launch/prepared_plan.hpp"
#include "tests/compiled_kernels.hpp"
#include "tests/layers.hpp"

namespace greta::test {
namespace {

/// Fills the inputs of a launch, and sets its outputs to NaN.
Result<void> fill(Device& device, Stream& stream, Operands& operands,
                  const std::vector<HostTensor>& inputs) {
  auto input = inputs.begin();
  for (std::size_t i = 0; i < operands.specs().size(); ++i) {
    if (operands.specs()[i].role == Role::output) continue;
    if (auto done = operands.upload(device, i, *input++); !done) return done;
  }
  return operands.poison_outputs(stream);
}

/// Downloads the outputs of a repetition, and records those that differ from the previous one.
Result<void> take_outputs(Device& device, const Operands& operands, PlanRun& run) {
  std::vector<HostTensor> outputs;
  if (auto done = operands.download_outputs(device, outputs); !done) return done;
  for (std::size_t i = 0; i < run.outputs.size(); ++i) {
    if (outputs[i].data != run.outputs[i].data) run.changed = outputs[i].spec.name;
  }
  run.outputs = std::move(outputs);
  return {};
}

}  // namespace

std::vector<std::string> usable_devices() {
  return devices_that([](const DeviceInfo&) { return true; });
}

std::vector<std::string> devices_that(const std::function<bool(const DeviceInfo&)>& suit) {
  std::vector<std::string> ids;
  for (Backend* const backend : backends()) {
    for (const ProbedDevice& device : backend->probe().devices) {
      if (device.usable && suit(device.info)) ids.push_back(device.info.id());
    }
  }
  return ids;
}

std::vector<std::string> devices_that_multiply(DType type) {
  return devices_that([&](const DeviceInfo& info) {
    return std::any_of(info.matrix_operations.begin(), info.matrix_operations.end(),
                       [&](const MatrixOperation& one) { return one.input == type; });
  });
}

std::string device_name(std::string id) {
  for (char& c : id) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return id;
}

namespace {

std::map<std::string, std::unique_ptr<Device>>& opened_devices() {
  static std::map<std::string, std::unique_ptr<Device>> devices;
  return devices;
}

}  // namespace

void forget_device(const std::string& id) {
  opened_devices().erase(id);
}

Device& device(const std::string& id) {
  auto& instance = opened_devices()[id];
  OpenOptions options;
  options.vendor = true;
  options.cache_directory = compiled_kernels();
  if (!instance) instance = open_device(id, options).value();
  return *instance;
}

std::vector<HostTensor> random_inputs(const std::vector<TensorSpec>& tensors, std::uint64_t seed) {
  std::vector<HostTensor> inputs;
  for (const TensorSpec& spec : tensors) {
    if (spec.role != Role::output) inputs.push_back(random_tensor(spec, seed++));
  }
  return inputs;
}

Result<PlanRun> run_plan(Device& device, const LaunchPlan& plan,
                         const std::vector<TensorSpec>& tensors,
                         const std::vector<HostTensor>& inputs, int repetitions) {
  auto operands = Operands::create(device, tensors);
  if (!operands) return operands.failure();
  const auto prepared = PreparedPlan::create(
      device, plan, *operands, [&](const KernelSource& source) { return device.compile(source); });
  if (!prepared) return prepared.failure();

  const auto stream = device.create_stream().value();
  const auto start = device.create_event().value(), stop = device.create_event().value();
  prepared->poison_workspace(*stream).value();
  PlanRun run;
  for (int i = 0; i < repetitions; ++i) {
    fill(device, *stream, *operands, inputs).value();
    stream->record(*start).value();
    if (const auto done = prepared->record(*stream); !done) return done.failure();
    stream->record(*stop).value();
    if (const auto done = stream->synchronize(std::chrono::minutes(4)); !done) {
      return done.failure();
    }
    take_outputs(device, *operands, run).value();
  }
  run.microseconds = device.elapsed_us(*start, *stop).value();
  run.overrun = operands->broken_guard(device).value().value_or("");
  run.overrun += prepared->broken_guard(device).value().value_or("");
  if (!prepared->zeroed_part_is_zero(device).value()) run.overrun += " counters not reset";
  return run;
}

void expect_right(const Operation& operation, const Problem& problem,
                  const Result<LaunchPlan>& plan, const std::string& what, std::uint64_t seed,
                  Device& on) {
  SCOPED_TRACE(problem.key() + " | " + what);
  ASSERT_TRUE(plan) << plan.failure().message;
  const auto tensors = operation.tensors(problem);
  const auto inputs = operation.inputs(problem, seed);
  const auto run = run_plan(on, *plan, tensors, inputs);
  ASSERT_TRUE(run) << run.failure().message << '\n' << run.failure().log;
  EXPECT_EQ(run->overrun, "");
  const Verdict verdict = operation.reference(problem, inputs, seed)->check(run->outputs);
  EXPECT_TRUE(verdict.passed) << verdict.detail;
}

}  // namespace greta::test
