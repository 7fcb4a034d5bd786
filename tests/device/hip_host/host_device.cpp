#include "tests/device/hip_host/host_device.hpp"

#include <fmt/format.h>

#include "runtime/device/hip/hip_backend.hpp"
#include "tests/layers.hpp"

namespace greta::test {

namespace {

Backend& backend() {
  static auto* const host = hip::create_host_backend().release();
  return *host;
}

}  // namespace

unsigned wave_of(Imitated device) {
  return device == gfx942 ? 64 : 32;
}

std::string imitated_name(const ::testing::TestParamInfo<Imitated>& info) {
  constexpr std::array names{"sm_80", "gfx942", "gfx1100", "gfx1201", "sm_90"};
  return names[info.param];
}

HostDevice::HostDevice(Imitated device, OpenOptions options) {
  options.cache_directory = cache_.path();
  device_ = backend().open(device, options).value();
}

KernelSource HostDevice::source(const std::string& text, std::array<unsigned, 3> block,
                                std::size_t dynamic_shared_bytes) {
  KernelSource source;
  source.name = "test.hip";
  source.language = Language::hip;
  source.text = text;
  source.entry = "test";
  source.block = block;
  source.dynamic_shared_bytes = static_cast<std::uint32_t>(dynamic_shared_bytes);
  return source;
}

Result<void> HostDevice::run_block(KernelSource source, Grid grid, const ArgumentBlock& block) {
  source.argument_bytes = static_cast<std::uint32_t>(block.bytes().size());
  auto& kernel = kernels_[fmt::format("{} {} {}", fmt::join(source.block, " "),
                                      source.dynamic_shared_bytes, source.text)];
  if (!kernel) {
    auto compiled = device_->compile(source);
    if (!compiled) return compiled.failure();
    kernel = std::move(*compiled);
  }
  const auto stream = device_->create_stream().value();
  if (auto launched = stream->launch(*kernel, grid, block.bytes()); !launched) return launched;
  return stream->synchronize(std::chrono::seconds(60));
}

}  // namespace greta::test
