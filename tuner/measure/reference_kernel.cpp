#include "tuner/measure/reference_kernel.hpp"

#include <array>
#include <cstring>

#include "tuner/measure/ceiling_kernels.hpp"

namespace greta::tuner {
Result<ReferenceKernel> ReferenceKernel::create(Device& device) {
  ReferenceKernel reference;
  auto kernel = device.compile(fma_kernel(device.info()));
  if (!kernel) return kernel.failure();
  reference.kernel_ = *std::move(kernel);
  auto sink = device.allocate(ceiling_threads * 16);
  if (!sink) return sink.failure();
  reference.sink_ = *std::move(sink);
  reference.groups_ = ceiling_groups(device.info());
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
  return fma_flops * iterations * groups_ * ceiling_threads;
}

}  // namespace greta::tuner
