#include "tests/kernels/compiled/compilers.hpp"

#include "runtime/device/hip/code_object.hpp"
#include "runtime/device/hip/cubin.hpp"

namespace greta::test {

std::unique_ptr<hip::Compiler> compiler_for(const DeviceInfo& device) {
  if (device.vendor != "AMD") return std::move(hip::create_nvidia_compiler({}).value());
  const bool old = device.architecture == "gfx90a" || device.architecture == "gfx1030";
  return std::move((old ? hip::create_amd_compiler({}) : hip::create_clang_compiler({})).value());
}

KernelStatistics read_statistics(const DeviceInfo& device, const KernelSource& source,
                                 const std::vector<std::byte>& binary) {
  const auto read = device.vendor == "AMD" ? hip::read_statistics : hip::read_cubin_statistics;
  return read(binary, source.entry).value();
}

}  // namespace greta::test
