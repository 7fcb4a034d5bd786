#include "tests/device/conformance.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <utility>

#include "kernels/planning/render.hpp"
#include "tests/layers.hpp"

namespace greta::test {

namespace {

std::vector<std::string> ids_of(bool (*wanted)(const ProbedDevice&)) {
  std::vector<std::string> ids;
  for (Backend* const backend : backends()) {
    for (const auto& device : backend->probe().devices) {
      if (device.usable && wanted(device)) ids.push_back(device.info.id());
    }
  }
  return ids;
}

}  // namespace

std::vector<std::string> usable_devices() {
  return ids_of([](const ProbedDevice&) { return true; });
}

std::vector<std::string> validated_devices() {
  return ids_of([](const ProbedDevice& device) {
    return device.info.is_cpu() && device.info.backend == Api::vulkan;
  });
}

std::string parameter_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ':' || c == '-'; }, '_');
  return name;
}

void Conformance::SetUp() {
  device_ = open();
}

void Conformance::TearDown() {
  device_.reset();
  const auto messages = take_messages();
  EXPECT_TRUE(messages.empty()) << fmt::format("{}", fmt::join(messages, "\n"));
}

std::unique_ptr<Device> Conformance::open(const std::filesystem::path& cache) {
  const auto device = select_device(GetParam()).value();
  OpenOptions options;
  options.cache_directory = cache;
  options.validation = device.info.is_cpu();
  options.on_validation_message = [this](std::string_view message) {
    const std::lock_guard lock(mutex_);
    messages_.emplace_back(message);
  };
  return open_device(GetParam(), options).value();
}

std::vector<std::string> Conformance::take_messages() {
  const std::lock_guard lock(mutex_);
  return std::exchange(messages_, {});
}

std::string glsl(const std::string& body) {
  return R"(#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Floats { float at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Numbers { uint at[]; };
)" + body;
}

KernelSource source_of(const DeviceInfo& device, const KernelText& text,
                       std::array<std::uint32_t, 3> block) {
  KernelSource source;
  source.name = "test/kernel";
  source.language = device.language;
  const bool hip = device.language == Language::hip;
  source.text = hip ? render("common/types.hip", {}) + text.hip : glsl(text.glsl);
  source.entry = hip ? "work" : "main";
  source.block = block;
  source.argument_bytes = 8;
  return source;
}

KernelSource affine_source(const DeviceInfo& device) {
  KernelSource source = source_of(device,
                                  {R"(
layout(local_size_x = 64) in;
layout(push_constant, scalar) uniform Arguments { Floats x; uint n; uint rounds; float a; float b; };
void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= n) return;
  float value = x.at[i];
  for (uint round = 0; round < rounds; ++round) value = value * a + b;
  x.at[i] = value;
}
)",
                                   R"(
GRETA_KERNEL(64) work(float* x, u32 n, u32 rounds, float a, float b) {
  const u32 i = block_x() * 64 + thread_index();
  if (i >= n) return;
  float value = x[i];
  for (u32 round = 0; round < rounds; ++round) value = value * a + b;
  x[i] = value;
}
)"},
                                  {64, 1, 1});
  source.name = "test/affine";
  source.argument_bytes = sizeof(AffineArguments);
  return source;
}

Grid affine_grid(std::uint32_t n) {
  return {(n + 63) / 64, 1, 1};
}

std::unique_ptr<Buffer> upload_floats(Device& device, const std::vector<float>& values) {
  auto buffer = device.allocate(values.size() * sizeof(float)).value();
  device.upload(*buffer, 0, std::as_bytes(std::span(values))).value();
  return buffer;
}

std::vector<float> download_floats(Device& device, const Buffer& buffer) {
  std::vector<float> values(buffer.size() / sizeof(float));
  device.download(buffer, 0, std::as_writable_bytes(std::span(values))).value();
  return values;
}

// The suite must not pass because there is no device to test.
TEST(Devices, OfTheCpuAreThere) {
  EXPECT_FALSE(validated_devices().empty()) << "lavapipe";
  const auto ids = usable_devices();
  for (const char* id : {"hip-host:0", "hip-host:1", "hip-host:2", "hip-host:3", "hip-host:4"}) {
    EXPECT_EQ(std::count(ids.begin(), ids.end(), id), 1) << id;
  }
}

}  // namespace greta::test
