#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/layers.hpp"

namespace greta::test {

/// A launch as the fake library saw it.
struct FakeLaunch {
  std::string kernel;
  std::array<unsigned, 3> grid{}, block{};
  unsigned dynamic_shared_bytes = 0;
  std::vector<std::byte> arguments;
};

/// What happens at the n-th call of a function, from 1 on.
struct FakeFault {
  enum class Kind {
    error,  ///< it returns `error`, this once
    lost,   ///< it and all later calls fail, until the device is reset
    gone,   ///< the same, and resetting does not help
    hang,   ///< nothing that is on the device then or comes later ever finishes
    block   ///< it does not return
  };
  std::string function;
  int call = 1;
  Kind kind = Kind::error;
  int error = 0;
};

/// How a fake library behaves, and what it has seen; tests change it at any time. README.md says
/// what such a library is.
struct FakeHip {
  // Before it is opened
  int version = 60'241'133;  ///< HIP 6.2.41133; CUDA's are like 13000
  int init_error = 0;
  int devices = 2;

  // What devices are
  std::map<int, int> attributes;  ///< by number; others are errors
  std::string name = "Fake Instinct";
  std::string architecture = "gfx90a:sramecc+:xnack-";
  std::string serial = "0123456789abcdef";  ///< HIP: 16 characters; CUDA: bytes of the UUID
  std::string pci = "0000:C1:00.0";
  std::size_t memory_bytes = std::size_t{1} << 30;

  // What a loaded kernel is
  int max_threads_per_block = 1024;  ///< or what its code object says, where that is less
  int static_shared_bytes = 0;       ///< of CUDA's, which have no such code object

  // How they fail
  std::map<std::string, int> fails;  ///< by HIP's name of the function: error of every call
  std::map<int, int> sticking;       ///< by device: error of every call until it is reset
  std::vector<FakeFault> faults;
  int reset_error = 0;  ///< what resetting returns, which it does all the same
  bool gone = false;    ///< resetting does not take away what sticks
  bool busy = false;    ///< no stream ever finishes
  std::function<void(const FakeLaunch&)> on_launch;

  // What it has seen
  std::vector<FakeLaunch> launches;  ///< that were executed
  std::map<int, int> resets;         ///< by device
  std::map<std::string, int> calls;  ///< by HIP's name
  std::vector<std::string> misuse;   ///< calls that no device could have taken
  std::map<std::string, int> live;   ///< objects, by the function that ends them
  int allowed_dynamic_shared = -1;   ///< what a kernel was last allowed
  bool tells_misuse = false;         ///< on standard error, as soon as it happens
};

}  // namespace greta::test

extern "C" greta::test::FakeHip* greta_fake_hip();
