#include "tuner/measure/reference_kernel.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace greta {
namespace {

// Eight independent vec4 chains per thread hide the FMAs' latency on every device; the inner loop
// is unrolled so that its counter costs next to nothing.
constexpr std::string_view text = R"(#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_control_flow_attributes : require
layout(local_size_x = 256) in;
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Sink { vec4 values[]; };
layout(push_constant) uniform Arguments { Sink sink; uint iterations; float seed; };
void main() {
  vec4 a[8];
  [[unroll]] for (int i = 0; i < 8; ++i) a[i] = vec4(seed + float(gl_LocalInvocationIndex + i));
  const float m = 0.999 + seed * 1e-6;
  for (uint n = 0; n < iterations; ++n) {
    [[unroll]] for (int u = 0; u < 8; ++u) {
      [[unroll]] for (int i = 0; i < 8; ++i) a[i] = fma(a[i], vec4(m), vec4(m));
    }
  }
  vec4 sum = a[0] + a[1] + a[2] + a[3] + a[4] + a[5] + a[6] + a[7];
  // Never true, and the compiler can't know it: the chains stay, and nothing is written.
  if (sum.x == 12345.678) sink.values[gl_LocalInvocationIndex] = sum;
}
)";
constexpr std::uint32_t threads = 256;
constexpr double flops_per_iteration = 8 * 8 * 4 * 2;  // of one thread

}  // namespace

Result<ReferenceKernel> ReferenceKernel::create(Device& device) {
  ReferenceKernel reference;
  KernelSource source;
  source.name = "reference";
  source.language = "glsl";
  source.text = text;
  source.argument_bytes = 16;
  source.block = {threads, 1, 1};
  auto kernel = device.compile(source);
  if (!kernel) return kernel.failure();
  reference.kernel_ = *std::move(kernel);
  auto sink = device.allocate(threads * 16);
  if (!sink) return sink.failure();
  reference.sink_ = *std::move(sink);
  const DeviceInfo& info = device.info();
  reference.groups_ = info.is_cpu() ? 64 : std::max(info.compute_units, 64U) * 16;
  return reference;
}

Result<void> ReferenceKernel::record(Stream& stream, std::uint32_t iterations) const {
  std::array<std::byte, 16> arguments{};
  const std::uint64_t address = sink_->address();
  const float seed = 1.5F;
  std::memcpy(arguments.data(), &address, sizeof address);
  std::memcpy(arguments.data() + 8, &iterations, sizeof iterations);
  std::memcpy(arguments.data() + 12, &seed, sizeof seed);
  return stream.launch(*kernel_, {groups_, 1, 1}, arguments);
}

double ReferenceKernel::flops(std::uint32_t iterations) const {
  return flops_per_iteration * iterations * groups_ * threads;
}

}  // namespace greta
