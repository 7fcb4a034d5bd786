#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tests/device/hip/fake/fake_hip.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// The connection to the process that executes kernels (emulator.py). A process has one connection.
class Emulator {
 public:
  /// Returns nullptr without GRETA_FAKE_EMULATOR, which names the socket. Ends the process if the
  /// emulator does not answer.
  static Emulator* instance();

  int memory_file() const { return memory_file_; }
  void* memory_base() const { return memory_base_; }
  std::size_t memory_size() const { return memory_size_; }

  void allow(std::size_t offset, std::size_t pages, std::size_t bytes);
  void forbid(std::size_t offset, std::size_t pages);

  /// The outcome of a launch: the number of instructions executed by its waves, or an error, which
  /// is "fault", "endless" or "unsupported".
  struct Outcome {
    double instructions = 0;
    std::string error, message;
  };
  Outcome launch(const std::vector<std::byte>& code_object, const FakeLaunch& launch);

  /// Reports that a code object is not launched any more.
  void unload(const std::vector<std::byte>& code_object);

 private:
  explicit Emulator(const std::string& path);
  void send(const std::string& line, std::span<const std::byte> bytes = {}) const;
  std::string receive();

  int socket_ = -1, memory_file_ = -1;
  void* memory_base_ = nullptr;
  std::size_t memory_size_ = 0;
  std::string received_;
  std::map<const std::vector<std::byte>*, int> modules_;
};

}  // namespace greta::test
