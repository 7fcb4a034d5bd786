#include "tuner/measure/ceilings.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/device/utc.hpp"
#include "tuner/measure/statistics.hpp"

namespace greta {
namespace {

constexpr std::string_view copy_text = R"(#version 460
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 256) in;
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer From { vec4 values[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) writeonly buffer To { vec4 values[]; };
layout(push_constant) uniform Arguments { From from; To to; };
void main() {
  const uint base = gl_WorkGroupID.x * (256 * 4) + gl_LocalInvocationIndex;
  vec4 v0 = from.values[base], v1 = from.values[base + 256];
  vec4 v2 = from.values[base + 512], v3 = from.values[base + 768];
  to.values[base] = v0; to.values[base + 256] = v1;
  to.values[base + 512] = v2; to.values[base + 768] = v3;
}
)";
constexpr std::uint64_t copy_group_bytes = 256 * 4 * 16;

// A few warm samples; the first one warms up and is left out.
Result<std::vector<double>> samples_of(LaunchTimer& timer, const LaunchTimer::Record& record) {
  constexpr int count = 15;
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
  // Whatever disturbs a sample makes it slower, so the fastest one is closest to the ceiling.
  const double us = *std::min_element(samples_us.begin(), samples_us.end());
  ceiling.value = units_per_us / us;
  ceiling.spread_percent = 100 * (quantile(samples_us, 0.9) - quantile(samples_us, 0.1)) / us;
  ceiling.driver = info.driver;
  ceiling.measured_utc = utc_now();
  return ceiling;
}

Result<Ceiling> fma_ceiling(Device& device, LaunchTimer& timer) {
  const ReferenceKernel& kernel = timer.reference_kernel();
  const std::uint32_t iterations = device.info().is_cpu() ? 250 : 2500;
  auto samples =
      samples_of(timer, [&](Stream& stream) { return kernel.record(stream, iterations); });
  if (!samples) return samples.failure();
  return make_ceiling(ceiling_fma_f32, *samples, kernel.flops(iterations) / 1e3, device.info());
}

Result<Ceiling> copy_ceiling(Device& device, LaunchTimer& timer) {
  KernelSource source;
  source.name = "copy";
  source.language = "glsl";
  source.text = copy_text;
  source.argument_bytes = 16;
  source.block = {256, 1, 1};
  auto kernel = device.compile(source);
  if (!kernel) return kernel.failure();
  const DeviceInfo& info = device.info();
  const std::uint64_t wanted = std::max<std::uint64_t>(8 * info.last_level_cache_bytes,
                                                       info.is_cpu() ? 128ULL << 20 : 2ULL << 30);
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

  // Never zeros: some memory systems move them faster.
  auto filled = timer.stream().fill(**from, 0, bytes, 0x3F9D70A4);
  if (!filled) return filled.failure();
  auto by_kernel = samples_of(timer, [&](Stream& stream) {
    return stream.launch(**kernel, {static_cast<std::uint32_t>(groups), 1, 1}, arguments);
  });
  if (!by_kernel) return by_kernel.failure();
  auto by_command =
      samples_of(timer, [&](Stream& stream) { return stream.copy(**to, 0, **from, 0, bytes); });
  if (!by_command) return by_command.failure();
  const auto fastest = [](const std::vector<double>& us) {
    return *std::min_element(us.begin(), us.end());
  };
  const auto& best = fastest(*by_kernel) < fastest(*by_command) ? *by_kernel : *by_command;
  return make_ceiling(ceiling_copy, best, 2.0 * static_cast<double>(bytes) / 1e3, info);
}

}  // namespace

Result<std::vector<Ceiling>> measure_ceilings(Device& device) {
  auto timer = LaunchTimer::create(device, 0);
  if (!timer) return timer.failure();
  std::vector<Ceiling> ceilings;
  for (const auto measure : {copy_ceiling, fma_ceiling}) {
    auto ceiling = measure(device, *timer);
    if (!ceiling) return ceiling.failure();
    ceilings.push_back(*std::move(ceiling));
  }
  device.trim();
  return ceilings;
}

double ceiling(const std::vector<Ceiling>& ceilings, std::string_view kind) {
  const auto found = std::find_if(ceilings.begin(), ceilings.end(),
                                  [&](const Ceiling& c) { return c.kind == kind; });
  return found == ceilings.end() ? 0 : found->value;
}

double roofline_us(const Work& work, const std::vector<Ceiling>& ceilings) {
  const double gflops = ceiling(ceilings, ceiling_fma_f32);
  const double gbps = ceiling(ceilings, ceiling_copy);
  if (gflops <= 0 || gbps <= 0) return 0;
  return std::max(work.flops / gflops, work.bytes / gbps) / 1e3;
}

}  // namespace greta
