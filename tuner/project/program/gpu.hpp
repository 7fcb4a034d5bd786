// What main.cpp needs of a GPU. One of gpu_hip.cpp, gpu_cuda.cpp and gpu_vulkan.cpp implements it.
// Every function throws std::runtime_error with the name of the failed call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

/// A launch with its arguments as the kernel reads them.
struct ReadyLaunch {
  std::size_t kernel = 0;  ///< returned by load()
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::vector<std::byte> arguments;  ///< packed at their natural alignment
};

class Gpu {
 public:
  virtual ~Gpu() = default;
  virtual std::string name() const = 0;
  /// Returns the address of new memory, which is freed with the Gpu.
  virtual std::uint64_t allocate(std::size_t bytes) = 0;
  virtual void upload(std::uint64_t to, const std::vector<std::byte>& from) = 0;
  virtual void download(std::vector<std::byte>& to, std::uint64_t from) = 0;
  /// Loads a compiled kernel and returns its number.
  virtual std::size_t load(const std::vector<std::byte>& binary, const std::string& entry,
                           std::array<std::uint32_t, 3> block, std::uint32_t shared_bytes,
                           std::uint32_t subgroup_size, std::size_t argument_bytes) = 0;
  /// Runs launches one after another and waits for them. Returns the time on the device in
  /// microseconds. Before it starts the clock, writes `flush_bytes` of other memory, which empties
  /// the caches; 0 keeps them warm.
  virtual double run(const std::vector<ReadyLaunch>& launches, std::size_t flush_bytes) = 0;
};

std::unique_ptr<Gpu> open_gpu(int index);
