#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/backend.hpp"
#include "tests/layers.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test {

/// Devices of hip-host, by the architecture that they emulate.
enum Imitated { sm_80, gfx942, gfx1100, gfx1201, sm_90 };
/// Those whose kernels have words of their own.
inline constexpr std::array every_imitated{sm_80, gfx942, gfx1100, gfx1201};

/// Returns the number of lanes of a wave.
unsigned wave_of(Imitated device);

/// Returns the name of a test's parameter.
std::string imitated_name(const ::testing::TestParamInfo<Imitated>& info);

/// An argument block: values at their natural alignment.
class ArgumentBlock {
 public:
  template <typename... Values>
  explicit ArgumentBlock(const Values&... values) {
    (add(values), ...);
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  template <typename T>
  void add(const T& value) {
    bytes_.resize((bytes_.size() + alignof(T) - 1) / alignof(T) * alignof(T) + sizeof(T));
    std::memcpy(bytes_.data() + bytes_.size() - sizeof(T), &value, sizeof(T));
  }
  void add(const std::unique_ptr<Buffer>& buffer) { add(buffer->address()); }

  std::vector<std::byte> bytes_;
};

/// An open device of hip-host with helpers that run kernels. Failures throw Error.
class HostDevice {
 public:
  explicit HostDevice(Imitated device, OpenOptions options = {});

  Device& device() { return *device_; }

  /// Returns the source of a kernel "test" with blocks of this size.
  static KernelSource source(const std::string& text, std::array<unsigned, 3> block,
                             std::size_t dynamic_shared_bytes = 0);
  template <typename T>
  std::unique_ptr<Buffer> upload(const std::vector<T>& values) {
    auto buffer = device_->allocate(values.size() * sizeof(T)).value();
    device_->upload(*buffer, 0, std::as_bytes(std::span(values))).value();
    return buffer;
  }
  template <typename T>
  std::vector<T> download(const std::unique_ptr<Buffer>& buffer) {
    std::vector<T> values(buffer->size() / sizeof(T));
    device_->download(*buffer, 0, std::as_writable_bytes(std::span(values))).value();
    return values;
  }

  /// Compiles a kernel, unless this device has compiled it before, and runs it once.
  template <typename... Values>
  Result<void> run(KernelSource source, Grid grid, const Values&... values) {
    return run_block(std::move(source), grid, ArgumentBlock(values...));
  }

 private:
  Result<void> run_block(KernelSource source, Grid grid, const ArgumentBlock& block);

  TemporaryFolder cache_;
  std::unique_ptr<Device> device_;
  std::map<std::string, std::unique_ptr<Kernel>> kernels_;  ///< by text and block
};

}  // namespace greta::test
