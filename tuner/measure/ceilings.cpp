#include "tuner/measure/ceilings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "runtime/device/system/log.hpp"
#include "runtime/device/system/utc.hpp"
#include "tuner/measure/ceiling_kernels.hpp"
#include "tuner/measure/statistics.hpp"

namespace greta::tuner {
namespace {

// Takes a few warm samples, fewer where a launch takes tens of milliseconds. The first one is a
// warm-up and is left out.
Result<std::vector<double>> samples_of(LaunchTimer& timer, const DeviceInfo& info,
                                       const LaunchTimer::Record& record) {
  const int count = info.is_cpu() ? 5 : 15;
  std::vector<double> samples;
  for (int i = 0; i <= count; ++i) {
    auto taken = timer.take(record, 1, 1, std::chrono::seconds(30));
    if (!taken) return taken.failure();
    if (i > 0) samples.push_back(taken->front());
  }
  return samples;
}

Ceiling make_ceiling(std::string_view kind, const std::vector<double>& samples_us,
                     double units_per_us, const DeviceInfo& info) {
  Ceiling ceiling;
  ceiling.kind = kind;
  // Every disturbance makes a sample slower, so the fastest one is closest to the ceiling.
  const double us = *std::min_element(samples_us.begin(), samples_us.end());
  ceiling.value = units_per_us / us;
  ceiling.spread_percent = 100 * (quantile(samples_us, 0.9) - quantile(samples_us, 0.1)) / us;
  ceiling.driver = info.driver;
  ceiling.measured_utc = utc_now();
  return ceiling;
}

Result<Ceiling> fma_ceiling(Device& device, LaunchTimer& timer) {
  const ReferenceKernel& kernel = *timer.reference_kernel();
  const std::uint32_t iterations = device.info().is_cpu() ? 250 : 2500;
  auto samples = samples_of(timer, device.info(),
                            [&](Stream& stream) { return kernel.record(stream, iterations); });
  if (!samples) return samples.failure();
  return make_ceiling(ceiling_fma_f32, *samples, kernel.flops(iterations) / 1e3, device.info());
}

/// The rates of kernels of matrix operations, of which the fastest counts.
class MatrixRates {
 public:
  MatrixRates(Device& device, LaunchTimer& timer) : device_(device), timer_(timer) {}

  /// Adds the rate of a kernel. `flops`: of one subgroup per
  /// unit of dot-product length; `least`: the length on hip-host, which emulates each lane. Fails
  /// if the device is lost; what can't be measured otherwise is only logged.
  Result<void> add(const KernelSource& source, double flops, std::uint32_t input,
                   std::uint32_t least, std::string_view name) {
    const DeviceInfo& info = device_.info();
    const std::uint32_t groups = ceiling_groups(info);
    const std::uint32_t length = info.is_cpu() ? least : 32768;
    const double subgroups = 1.0 * groups * ceiling_threads / info.subgroup_size;
    const auto us = time_us(source, groups, length, input);
    if (us) {
      best_ = std::max(best_, flops * length * subgroups / *us / 1e3);
      return {};
    }
    const Status status = us.failure().status;
    if (status == Status::timeout || status == Status::device_lost) return us.failure();
    log(LogLevel::warning, "the rate of matrix operations on {} was not measured: {}", name,
        us.failure().message);
    return {};
  }

  /// Returns the fastest one; 0 if none could be measured.
  Ceiling best(std::string kind) const {
    Ceiling ceiling;
    ceiling.kind = std::move(kind);
    ceiling.value = best_;
    ceiling.driver = device_.info().driver;
    ceiling.measured_utc = utc_now();
    return ceiling;
  }

 private:
  /// Returns the shortest time of a launch of `groups` workgroups with dot products of this length.
  Result<double> time_us(const KernelSource& source, std::uint32_t groups, std::uint32_t length,
                         std::uint32_t input) {
    auto kernel = device_.compile(source);
    if (!kernel) return kernel.failure();
    auto sink = device_.allocate(ceiling_threads * 16);
    if (!sink) return sink.failure();
    const std::uint32_t inputs[] = {length, input};
    std::array<std::byte, 16> arguments{};
    const std::uint64_t address = (*sink)->address();
    std::memcpy(arguments.data(), &address, sizeof address);
    std::memcpy(arguments.data() + 8, inputs, sizeof inputs);
    auto samples = samples_of(timer_, device_.info(), [&](Stream& stream) {
      return stream.launch(**kernel, {groups, 1, 1}, arguments);
    });
    if (!samples) return samples.failure();
    return *std::min_element(samples->begin(), samples->end());
  }

  Device& device_;
  LaunchTimer& timer_;
  double best_ = 0;
};

Result<Ceiling> matrix_ceiling(Device& device, LaunchTimer& timer, DType input) {
  MatrixRates rates(device, timer);
  for (const MatrixOperation& operation : device.info().matrix_operations) {
    if (operation.input != input) continue;
    const auto added =
        rates.add(matrix_kernel(device.info(), operation), matrix_flops(device.info(), operation),
                  matrix_input(input), 128, to_string(input));
    if (!added) return added.failure();
  }
  return rates.best(ceiling_matrix(input));
}

Result<Ceiling> numbers_ceiling(Device& device, LaunchTimer& timer, MatrixNumbers numbers) {
  MatrixRates rates(device, timer);
  const RateKernel kernel = matrix_kernel(device.info(), numbers);
  const auto added =
      rates.add(kernel.source, kernel.flops, matrix_input(numbers), 256, to_string(numbers));
  if (!added) return added.failure();
  return rates.best(ceiling_matrix(numbers));
}

bool measured(const Ceiling& ceiling) {
  return std::isfinite(ceiling.value) && ceiling.value > 0;
}

std::vector<DType> matrix_inputs(const DeviceInfo& device) {
  std::vector<DType> inputs;
  for (const MatrixOperation& operation : device.matrix_operations) {
    if (std::find(inputs.begin(), inputs.end(), operation.input) == inputs.end()) {
      inputs.push_back(operation.input);
    }
  }
  return inputs;
}

Result<Ceiling> copy_ceiling(Device& device, LaunchTimer& timer) {
  auto kernel = device.compile(copy_kernel(device.info()));
  if (!kernel) return kernel.failure();
  const DeviceInfo& info = device.info();
  // A device of the CPU emulates each thread, so what its cache does not hold has to do.
  const std::uint64_t caches = info.is_cpu() ? 2 : 8;
  const std::uint64_t wanted = std::max<std::uint64_t>(caches * info.last_level_cache_bytes,
                                                       info.is_cpu() ? 64ULL << 20 : 2ULL << 30);
  const std::uint64_t limit = std::min(info.max_allocation_bytes, info.memory_bytes / 8);
  const std::uint64_t groups =
      std::min<std::uint64_t>(std::min(wanted, limit) / copy_group_bytes, info.max_grid[0]);
  const std::uint64_t bytes = groups * copy_group_bytes;
  auto from = device.allocate(bytes);
  if (!from) return from.failure();
  auto to = device.allocate(bytes);
  if (!to) return to.failure();
  std::vector<std::byte> arguments(16);
  const std::uint64_t addresses[] = {(*from)->address(), (*to)->address()};
  std::memcpy(arguments.data(), addresses, sizeof addresses);

  // The data is not zero, because some memory systems move zeros faster.
  auto filled = timer.stream().fill(**from, 0, bytes, 0x3F9D70A4);
  if (!filled) return filled.failure();
  auto by_kernel = samples_of(timer, device.info(), [&](Stream& stream) {
    return stream.launch(**kernel, {static_cast<std::uint32_t>(groups), 1, 1}, arguments);
  });
  if (!by_kernel) return by_kernel.failure();
  auto by_command = samples_of(
      timer, device.info(), [&](Stream& stream) { return stream.copy(**to, 0, **from, 0, bytes); });
  if (!by_command) return by_command.failure();
  const auto fastest = [](const std::vector<double>& us) {
    return *std::min_element(us.begin(), us.end());
  };
  const auto& best = fastest(*by_kernel) < fastest(*by_command) ? *by_kernel : *by_command;
  return make_ceiling(ceiling_copy, best, 2.0 * static_cast<double>(bytes) / 1e3, info);
}

}  // namespace

Result<std::vector<Ceiling>> measure_ceilings(Device& device,
                                              const std::vector<std::string>& kinds) {
  auto timer = LaunchTimer::create(device, 0);
  if (!timer) return timer.failure();
  if (auto r = timer->reach_pace(); !r) return r.failure();
  const std::vector<DType> inputs = matrix_inputs(device.info());
  std::vector<Ceiling> ceilings;
  for (const std::string& kind : kinds) {
    const auto input = std::find_if(inputs.begin(), inputs.end(),
                                    [&](DType type) { return ceiling_matrix(type) == kind; });
    const auto numbers =
        std::find_if(all_matrix_numbers.begin(), all_matrix_numbers.end(),
                     [&](MatrixNumbers one) { return ceiling_matrix(one) == kind; });
    auto ceiling = kind == ceiling_copy      ? copy_ceiling(device, *timer)
                   : kind == ceiling_fma_f32 ? fma_ceiling(device, *timer)
                   : input != inputs.end()   ? matrix_ceiling(device, *timer, *input)
                   : numbers != all_matrix_numbers.end()
                       ? numbers_ceiling(device, *timer, *numbers)
                       : invalid_argument("there is no peak named " + kind);
    if (!ceiling) return ceiling.failure();
    if (measured(*ceiling)) ceilings.push_back(*std::move(ceiling));
  }
  device.trim();
  return ceilings;
}

std::string ceiling_matrix(DType input) {
  return fmt::format("matrix_{}_gflops", to_string(input));
}

std::string ceiling_matrix(MatrixNumbers numbers) {
  return fmt::format("matrix_{}_gflops", to_string(numbers));
}

std::vector<std::string> ceiling_kinds(const DeviceInfo& device) {
  std::vector<std::string> kinds{std::string(ceiling_copy), std::string(ceiling_fma_f32)};
  for (const DType input : matrix_inputs(device)) kinds.push_back(ceiling_matrix(input));
  for (const MatrixNumbers numbers : all_matrix_numbers) {
    if (has_matrix_kernel(device, numbers)) kinds.push_back(ceiling_matrix(numbers));
  }
  return kinds;
}

std::vector<std::string> missing_kinds(const std::vector<Ceiling>& ceilings,
                                       const DeviceInfo& device) {
  auto kinds = ceiling_kinds(device);
  std::erase_if(kinds, [&](const std::string& kind) {
    return std::any_of(ceilings.begin(), ceilings.end(), [&](const Ceiling& c) {
      return c.kind == kind && c.driver == device.driver && measured(c);
    });
  });
  return kinds;
}

void update(std::vector<Ceiling>& ceilings, std::vector<Ceiling> measured) {
  for (Ceiling& fresh : measured) {
    std::erase_if(ceilings, [&](const Ceiling& known) { return known.kind == fresh.kind; });
    ceilings.push_back(std::move(fresh));
  }
}

double ceiling(const std::vector<Ceiling>& ceilings, std::string_view kind) {
  const auto found = std::find_if(ceilings.begin(), ceilings.end(),
                                  [&](const Ceiling& c) { return c.kind == kind && measured(c); });
  return found == ceilings.end() ? 0 : found->value;
}

std::vector<std::string> arithmetic_kinds(DType input, const Work& work) {
  const bool bytes = work.numbers && *work.numbers != MatrixNumbers::tf32x3;
  std::vector<std::string> kinds{std::string(ceiling_fma_f32),
                                 ceiling_matrix(bytes ? DType::f16 : input)};
  if (work.numbers) kinds.push_back(ceiling_matrix(*work.numbers));
  return kinds;
}

double arithmetic_gflops(DType input, const Work& work, const std::vector<Ceiling>& ceilings) {
  double highest = 0;
  for (const std::string& kind : arithmetic_kinds(input, work)) {
    highest = std::max(highest, ceiling(ceilings, kind));
  }
  return highest;
}

double roofline_us(DType input, const Work& work, const std::vector<Ceiling>& ceilings) {
  const double gflops = arithmetic_gflops(input, work, ceilings);
  const double gbps = ceiling(ceilings, ceiling_copy);
  if (gflops <= 0 || gbps <= 0) return 0;
  return std::max(work.flops / gflops, work.bytes / gbps) / 1e3;
}

}  // namespace greta::tuner
