#include "tests/kernels/wide/sampled_problem.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <random>
#include <span>

#include "kernels/launch/operands.hpp"
#include "kernels/launch/prepared_plan.hpp"
#include "kernels/model/problem_rules.hpp"
#include "runtime/device/backend.hpp"
#include "tests/catalog.hpp"

namespace greta::test {
namespace {

/// Calls use(offset in the whole tensor, offset in the part, size), in bytes, for each run of
/// consecutive elements that both contain; for a tensor with unpacked rows, for all elements.
template <typename Use>
void each_run(const TensorSpec& whole, const TensorSpec& part,
              const std::vector<std::int64_t>& samples, Use use) {
  const bool all = whole.stride > 0;
  const auto rows = places(whole.rows, all ? whole.rows : part.rows, samples);
  const auto cols = places(whole.cols, all ? whole.cols : part.cols, samples);
  const auto size = bytes_of(whole.dtype, std::int64_t{1});
  const auto extent = static_cast<std::int64_t>(cols.size());
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::int64_t first = 0, end = 0; first < extent; first = end) {
      const auto col = [&](std::int64_t i) { return cols[static_cast<std::size_t>(i)]; };
      for (end = first + 1; end < extent && col(end) == col(end - 1) + 1;) ++end;
      const std::int64_t from = static_cast<std::int64_t>(row) * extent + first;
      use(static_cast<std::size_t>((rows[row] * whole.row_stride() + col(first)) * size),
          static_cast<std::size_t>(from * size), static_cast<std::size_t>((end - first) * size));
    }
  }
}

/// Sets elements that are not sampled to NaN between rows, else to 0. New memory of hip-host is
/// already 0 and occupies no physical memory until it is written.
Result<void> clear(Device& device, Operands& operands, std::size_t tensor) {
  const bool gaps = operands.specs()[tensor].stride > 0;
  if (device.info().backend == Api::hip_host && !gaps) return {};
  const std::vector<std::byte> values(64 << 20, std::byte(gaps ? 0xFF : 0));
  const std::size_t bytes = operands.specs()[tensor].bytes();
  for (std::size_t first = 0; first < bytes; first += values.size()) {
    const std::span<const std::byte> part(values.data(), std::min(values.size(), bytes - first));
    if (auto done = operands.upload_part(device, tensor, first, part); !done) return done;
  }
  return {};
}

Result<void> upload(Device& device, Operands& operands, const SampledProblem& problem,
                    std::vector<HostTensor> inputs) {
  std::vector<TensorSpec> parts;
  for (const HostTensor& input : inputs) parts.push_back(input.spec);
  if (problem.translate) problem.translate(inputs);
  auto input = inputs.begin();
  Result<void> result;
  for (std::size_t i = 0; i < operands.specs().size(); ++i) {
    const TensorSpec& whole = operands.specs()[i];
    if (whole.role == Role::output) continue;
    if (auto done = clear(device, operands, i); !done) return done;
    each_run(whole, input->spec, problem.samples,
             [&](std::size_t to, std::size_t from, std::size_t bytes) {
               const std::span<const std::byte> run(input->data.data() + from, bytes);
               if (result) result = operands.upload_part(device, i, to, run);
             });
    if (!result) return result;
    ++input;
  }
  return {};
}

Result<std::vector<HostTensor>> download(Device& device, const Operands& operands,
                                         const std::vector<TensorSpec>& parts,
                                         const std::vector<std::int64_t>& samples) {
  std::vector<HostTensor> outputs;
  Result<void> result;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].role == Role::input) continue;
    HostTensor& output =
        outputs.emplace_back(HostTensor{parts[i], std::vector<std::byte>(parts[i].bytes())});
    each_run(operands.specs()[i], parts[i], samples,
             [&](std::size_t from, std::size_t to, std::size_t bytes) {
               const std::span<std::byte> run(output.data.data() + to, bytes);
               if (result) result = operands.download_part(device, i, from, run);
             });
    if (!result) return result.failure();
  }
  return outputs;
}

/// Returns whether it is a matrix product with few rows or columns.
bool is_narrow(const Problem& problem) {
  return problem.op == "gemm" && std::min(problem.dim("m"), problem.dim("n")) <= 16;
}

Result<void> run(Device& device, const PreparedPlan& plan, Operands& operands) {
  auto stream = device.create_stream();
  if (!stream) return stream.failure();
  if (auto done = plan.poison_workspace(**stream); !done) return done;
  if (auto done = operands.poison_outputs(**stream); !done) return done;
  if (auto done = plan.record(**stream); !done) return done;
  if (auto done = (*stream)->synchronize(std::chrono::minutes(50)); !done) return done;
  for (const auto& guard : {operands.broken_guard(device), plan.broken_guard(device)}) {
    if (!guard) return guard.failure();
    if (*guard) return Failure{Status::correctness, **guard, {}};
  }
  return {};
}

}  // namespace

Problem SampledProblem::part() const {
  Problem small = of_packed_rows(built_in(whole.op), whole);
  for (auto& [name, extent] : small.dims) {
    if (std::find(dimensions.begin(), dimensions.end(), name) != dimensions.end()) {
      extent = static_cast<std::int64_t>(samples.size());
    }
  }
  return small;
}

std::vector<std::int64_t> places(std::int64_t whole, std::int64_t part,
                                 const std::vector<std::int64_t>& samples) {
  std::vector<std::int64_t> list(static_cast<std::size_t>(part));
  std::iota(list.begin(), list.end(), std::int64_t{0});
  if (whole == part) return list;
  const std::int64_t inner = part / static_cast<std::int64_t>(samples.size());
  for (std::int64_t& place : list) {
    place = samples[static_cast<std::size_t>(place / inner)] * inner + place % inner;
  }
  return list;
}

Result<std::vector<HostTensor>> run_whole(const Operation& kernel, const SampledProblem& problem,
                                          Device& device, const Config& config,
                                          std::uint64_t seed) {
  const Problem part = problem.part();
  const auto plan = kernel.plan(problem.whole, device.info(), config);
  if (!plan) return plan.failure();
  auto operands = Operands::create(device, kernel.tensors(problem.whole));
  if (!operands) return operands.failure();
  const auto prepared = PreparedPlan::create(
      device, *plan, *operands, [&](const KernelSource& source) { return device.compile(source); });
  if (!prepared) return prepared.failure();
  if (auto done = upload(device, *operands, problem, kernel.inputs(part, seed)); !done) {
    return done.failure();
  }
  if (auto done = run(device, *prepared, *operands); !done) return done.failure();
  return download(device, *operands, kernel.tensors(part), problem.samples);
}

Result<Verdict> run_sampled(const Operation& kernel, const SampledProblem& problem, Device& device,
                            const Config& config, std::uint64_t seed) {
  const auto outputs = run_whole(kernel, problem, device, config, seed);
  if (!outputs) return outputs.failure();
  const Problem part = problem.part();
  return kernel.reference(part, kernel.inputs(part, seed), seed)->check(*outputs);
}

namespace {

/// Returns a measure of idle threads: of tiles wider than the problem, or of splits.
int idle_threads(const Config& config) {
  if (config.has("BM")) return config["BM"] * config["BN"];
  return config.has("SPLIT") ? config["THREADS"] * config["SPLIT"] : config["THREADS"];
}

}  // namespace

Config config_of(const Operation& kernel, const Problem& problem, const DeviceInfo& device,
                 const std::string& variant) {
  const Space space = kernel.space(problem, device);
  if (space.count(variant) == 0) throw Error(problem.key() + " has no " + variant);
  std::mt19937_64 random(1);
  Config best = space.sample(variant, random);
  if (!best.has("BM") || !is_narrow(problem)) {
    for (const Variant& each : kernel.variants) {
      if (each.name != variant) continue;
      for (const Config& config : each.defaults(kernel.shape(problem), device)) {
        if (space.valid(config)) return config;
      }
    }
  }
  for (int i = 0; i < 300; ++i) {
    const Config config = space.sample(variant, random);
    if (idle_threads(config) < idle_threads(best)) best = config;
  }
  return best;
}

std::vector<std::string> spacious_devices() {
  std::vector<std::string> ids;
  for (Backend* const backend : backends()) {
    for (const ProbedDevice& device : backend->probe().devices) {
      if (!device.usable) continue;
      const std::string id = device.info.id();
      if (!device.info.is_cpu() || id == "hip-host:1") ids.push_back(id);
    }
  }
  return ids;
}

}  // namespace greta::test
