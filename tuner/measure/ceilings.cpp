#include "tuner/measure/ceilings.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "tuner/measure/statistics.hpp"

namespace greta {
namespace {

constexpr std::uint32_t fma_threads = 256;

// Chains of FMAs: 8 independent vec4 accumulators per thread hide the latency on every device.
constexpr std::string_view fma_text = R"(#version 460
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 256) in;
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Sink { vec4 values[]; };
layout(push_constant) uniform Arguments { Sink sink; uint iterations; float seed; };
void main() {
  vec4 a[8];
  for (int i = 0; i < 8; ++i) a[i] = vec4(seed + float(gl_LocalInvocationIndex) * 1e-6 + float(i));
  vec4 m = vec4(0.999 + seed * 1e-6);
  for (uint n = 0; n < iterations; ++n) {
    a[0] = fma(a[0], m, m); a[1] = fma(a[1], m, m); a[2] = fma(a[2], m, m); a[3] = fma(a[3], m, m);
    a[4] = fma(a[4], m, m); a[5] = fma(a[5], m, m); a[6] = fma(a[6], m, m); a[7] = fma(a[7], m, m);
  }
  vec4 sum = a[0] + a[1] + a[2] + a[3] + a[4] + a[5] + a[6] + a[7];
  // Never true, and the compiler can't know it: the chains stay, and nothing is written.
  if (sum.x == 12345.678) sink.values[gl_LocalInvocationIndex] = sum;
}
)";
constexpr double flops_per_iteration = 8 * 4 * 2;  // of one thread

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

KernelSource glsl(std::string name, std::string_view text, std::uint32_t argument_bytes) {
  KernelSource source;
  source.name = std::move(name);
  source.language = "glsl";
  source.text = text;
  source.argument_bytes = argument_bytes;
  source.block = {fma_threads, 1, 1};
  return source;
}

std::vector<std::byte> fma_arguments(std::uint64_t sink, std::uint32_t iterations) {
  std::vector<std::byte> block(16);
  const float seed = 1.5F;
  std::memcpy(block.data(), &sink, 8);
  std::memcpy(block.data() + 8, &iterations, 4);
  std::memcpy(block.data() + 12, &seed, 4);
  return block;
}

std::uint32_t groups_that_fill(const DeviceInfo& info) {
  return info.is_cpu() ? 64 : std::max(info.compute_units, 64U) * 16;
}

// The median of a few warm samples, the first of which warms up.
Result<std::vector<double>> samples_of(LaunchTimer& timer, const LaunchTimer::Record& record) {
  constexpr int count = 9;
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
  const double us = median(samples_us);
  ceiling.value = units_per_us / us;
  ceiling.spread_percent = 100 * (quantile(samples_us, 0.9) - quantile(samples_us, 0.1)) / us;
  ceiling.driver = info.driver;
  ceiling.measured_utc = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  return ceiling;
}

Result<Ceiling> fma_ceiling(Device& device, LaunchTimer& timer) {
  auto kernel = device.compile(glsl("ceiling/fma", fma_text, 16));
  if (!kernel) return kernel.failure();
  auto sink = device.allocate(fma_threads * 16);
  if (!sink) return sink.failure();
  const std::uint32_t groups = groups_that_fill(device.info());
  const std::uint32_t iterations = device.info().is_cpu() ? 2000 : 20000;
  const auto arguments = fma_arguments((*sink)->address(), iterations);
  auto samples = samples_of(timer, [&](Stream& stream) {
    return stream.launch(**kernel, {groups, 1, 1}, arguments);
  });
  if (!samples) return samples.failure();
  const double flops = flops_per_iteration * iterations * groups * fma_threads;
  return make_ceiling(ceiling_fma_f32, *samples, flops / 1e3, device.info());
}

Result<Ceiling> copy_ceiling(Device& device, LaunchTimer& timer) {
  auto kernel = device.compile(glsl("ceiling/copy", copy_text, 16));
  if (!kernel) return kernel.failure();
  const DeviceInfo& info = device.info();
  const std::uint64_t wanted = std::max<std::uint64_t>(8 * info.last_level_cache_bytes,
                                                       info.is_cpu() ? 128ULL << 20 : 1ULL << 30);
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
  const auto& best = median(*by_kernel) < median(*by_command) ? *by_kernel : *by_command;
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

Result<ReferenceKernel> ReferenceKernel::create(Device& device) {
  ReferenceKernel reference;
  auto kernel = device.compile(glsl("ceiling/fma", fma_text, 16));
  if (!kernel) return kernel.failure();
  reference.kernel_ = *std::move(kernel);
  auto sink = device.allocate(fma_threads * 16);
  if (!sink) return sink.failure();
  reference.sink_ = *std::move(sink);
  reference.groups_ = groups_that_fill(device.info());
  return reference;
}

Result<void> ReferenceKernel::record(Stream& stream) const {
  return stream.launch(*kernel_, {groups_, 1, 1}, fma_arguments(sink_->address(), 200));
}

}  // namespace greta
