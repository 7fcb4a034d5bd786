#include <gtest/gtest.h>

#include <cctype>
#include <set>

#include "db/tuned_db.hpp"
#include "tests/catalog.hpp"
#include "tests/compiled_kernels.hpp"
#include "tests/pipeline/compute/cases.hpp"

/// Devices, tensors and winners that cases run with.
namespace greta::test {

std::vector<std::string> compute_devices() {
  std::vector<std::string> ids;
  std::set<Api> backends_seen;
  for (Backend* const backend : backends()) {
    for (const ProbedDevice& device : backend->probe().devices) {
      if (device.usable && backends_seen.insert(device.info.backend).second) {
        ids.push_back(device.info.id());
      }
    }
  }
  return ids;
}

std::string device_name(std::string id) {
  for (char& c : id) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return id;
}

std::unique_ptr<Runtime> open_runtime(const std::string& device, const LookupFiles& databases) {
  RuntimeOptions options;
  options.device = device;
  options.open.cache_directory = compiled_kernels();
  options.databases = databases;
  return Runtime::open(options).value();
}

Tensor upload(Runtime& runtime, const HostTensor& data, const Shape& shape) {
  Tensor tensor = runtime.allocate(data.spec.dtype, shape).value();
  runtime.upload(tensor, data.data).value();
  return tensor;
}

Tensor upload(Runtime& runtime, const std::vector<std::int32_t>& values) {
  Tensor tensor = runtime.allocate(DType::i32, {static_cast<std::int64_t>(values.size())}).value();
  runtime.upload(tensor, std::as_bytes(std::span(values))).value();
  return tensor;
}

HostTensor download(Runtime& runtime, const Tensor& tensor, const TensorSpec& spec) {
  HostTensor data{spec, std::vector<std::byte>(spec.bytes())};
  runtime.download(tensor, data.data).value();
  return data;
}

HostTensor unwritten(const TensorSpec& spec) {
  return {spec, std::vector<std::byte>(spec.bytes(), std::byte{0xff})};
}

std::vector<Shape> plain_shapes(const Problem& problem) {
  std::vector<Shape> shapes;
  for (const TensorSpec& spec : built_in(problem.op).tensors(problem)) {
    shapes.push_back({spec.rows, spec.cols});
  }
  return shapes;
}

Loaded load(Runtime& runtime, const Problem& problem, const std::vector<Shape>& shapes,
            std::uint64_t seed) {
  const Operation& kernel = built_in(problem.op);
  Loaded loaded;
  loaded.inputs = kernel.inputs(problem, seed);
  auto next = loaded.inputs.begin();
  const auto specs = kernel.tensors(problem);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    loaded.operands.push_back(upload(
        runtime, specs[i].role == Role::output ? unwritten(specs[i]) : *next++, shapes.at(i)));
  }
  return loaded;
}

void expect_right(Runtime& runtime, const Problem& problem, const Loaded& loaded,
                  std::uint64_t seed) {
  const Operation& kernel = built_in(problem.op);
  const auto specs = kernel.tensors(problem);
  std::vector<HostTensor> outputs;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].role == Role::input) continue;
    outputs.push_back(download(runtime, loaded.operands[i], specs[i]));
  }
  const Verdict verdict = kernel.reference(problem, loaded.inputs, seed)->check(outputs);
  EXPECT_TRUE(verdict.passed) << problem.key() << ": " << verdict.detail;
}

void store_winner(const std::filesystem::path& file, const DeviceInfo& device,
                  const Problem& problem, const Config& config) {
  TunedDb db = TunedDb::open(file, TunedDb::Mode::read_write);
  SessionRecord record;
  record.device = device;
  record.problem = problem;
  record.provenance = {"0.1.0", built_in(problem.op).key(), device.driver, device.compiler,
                       "2026-11-20T12:00:00Z"};
  record.strategy = "random";
  record.budget = "1";
  const auto session = db.begin_session(record);
  Winner winner;
  winner.config = config;
  winner.default_us = 30;
  winner.speedup = winner.speedup_low = winner.speedup_high = 3;
  winner.rounds = 1;
  winner.measurement.samples_us = {10};
  winner.measurement.median_us = winner.measurement.low_us = winner.measurement.high_us = 10;
  winner.default_samples_us = {30};
  winner.verdict.passed = true;
  winner.verdict.method = "full";
  db.set_winner(session, winner);
  db.end_session(session, "done");
}

}  // namespace greta::test
