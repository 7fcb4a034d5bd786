#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/backend.hpp"
#include "tests/layers.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test {

constexpr Deadline patience = std::chrono::seconds(30);

/// Returns the ids of all devices of all backends that can execute kernels.
std::vector<std::string> usable_devices();
/// Returns those that run on the CPU and have a validation layer.
std::vector<std::string> validated_devices();

/// Protects: the contract of devices, for every device of every backend. On CPU devices the API's
/// validation is enabled, and any message fails the test.
class Conformance : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;
  void TearDown() override;

  /// Opens the device under test another time.
  std::unique_ptr<Device> open(const std::filesystem::path& cache = {});
  std::vector<std::string> take_messages();

  std::unique_ptr<Device> device_;

 private:
  std::mutex mutex_;
  std::vector<std::string> messages_;
};

/// A kernel's source in every language. The GLSL text is preceded by the extensions that every
/// kernel uses and by buffer types for floats and for unsigned integers; the HIP text, whose kernel
/// is called "work", by the headers of the templates.
struct KernelText {
  std::string glsl, hip;
};

/// Returns complete GLSL.
std::string glsl(const std::string& body);

/// Returns the source in the device's language, with 8 bytes of arguments.
KernelSource source_of(const DeviceInfo& device, const KernelText& text,
                       std::array<std::uint32_t, 3> block = {1, 1, 1});

/// x[i] = x[i] * a + b for i < n, repeated `rounds` times; in GLSL unless the device needs another
/// language.
KernelSource affine_source(const DeviceInfo& device = {});
struct AffineArguments {
  std::uint64_t x = 0;
  std::uint32_t n = 0;
  std::uint32_t rounds = 1;
  float a = 1;
  float b = 0;
};

/// Returns the number of workgroups that affine_source needs for n elements.
Grid affine_grid(std::uint32_t n);

template <typename Arguments>
std::span<const std::byte> bytes_of(const Arguments& arguments) {
  return std::as_bytes(std::span(&arguments, 1));
}

std::unique_ptr<Buffer> upload_floats(Device& device, const std::vector<float>& values);
std::vector<float> download_floats(Device& device, const Buffer& buffer);

std::string parameter_name(const ::testing::TestParamInfo<std::string>& info);

}  // namespace greta::test
