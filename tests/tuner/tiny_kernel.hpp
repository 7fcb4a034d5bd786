#pragma once

#include <string>

#include "kernels/model/operation.hpp"
#include "kernels/planning/render.hpp"
#include "runtime/device/device_info.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// Returns a plan of one kernel with one thread, in the device's language. Its body can use C(i),
/// element i of the only operand, an output of floats, and `count`, which is `floats`.
inline LaunchPlan tiny_plan(const DeviceInfo& device, const std::string& body, std::size_t floats) {
  KernelSource source;
  source.name = "tiny";
  source.language = device.language;
  source.argument_bytes = 12;
  if (device.language == Language::glsl) {
    source.text = R"(#version 460
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 1) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float values[]; };
layout(push_constant) uniform Arguments { Floats c; uint count; };
#define C(i) c.values[i]
void main() { )" + body +
                  " }";
  } else {
    source.entry = "tiny";
    source.text =
        render("common/device.hip", {}) +
        "typedef u32 uint;\n#define C(i) c[i]\nGRETA_KERNEL(1) tiny(float* c, u32 count) { " +
        body + " }\n";
  }
  LaunchPlan plan;
  plan.sources.push_back(source);
  plan.launches.push_back({0, {1, 1, 1}, {OperandArgument{0}, static_cast<std::uint32_t>(floats)}});
  return plan;
}

}  // namespace greta::test
