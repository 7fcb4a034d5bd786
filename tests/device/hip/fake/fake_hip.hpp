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

/// A launch as seen by the fake library.
struct FakeLaunch {
  std::string kernel;
  std::array<unsigned, 3> grid{}, block{};
  unsigned dynamic_shared_bytes = 0;
  std::vector<std::byte> arguments;
};

/// What happens at the n-th call of a function, counted from 1.
struct FakeFault {
  enum class Kind {
    error,  ///< this call returns `error`
    lost,   ///< this and all later calls fail until the device is reset
    gone,   ///< like `lost`, but resetting does not help
    hang,   ///< no pending or later work on the device ever finishes
    block   ///< the call does not return
  };
  std::string function;
  int call = 1;
  Kind kind = Kind::error;
  int error = 0;
};

/// The configuration and the recorded state of a fake library. Tests may change it at any time.
/// README.md describes such libraries.
struct FakeHip {
  // Before it is opened
  int version = 60'241'133;  ///< HIP 6.2.41133; CUDA's are like 13000
  int init_error = 0;
  int devices = 2;

  // Properties of the devices
  std::map<int, int> attributes;  ///< by number; others are errors
  std::string name = "Fake Instinct";
  std::string architecture = "gfx90a:sramecc+:xnack-";
  std::string serial = "0123456789abcdef";  ///< HIP: 16 characters; CUDA: bytes of the UUID
  std::string pci = "0000:C1:00.0";
  std::size_t memory_bytes = std::size_t{1} << 30;

  // Properties of a loaded kernel
  int max_threads_per_block = 1024;  ///< or the code object's limit, if lower
  int static_shared_bytes = 0;       ///< only CUDA; it has no such code object

  // Failures
  std::map<std::string, int> fails;  ///< by HIP's function name: error of every call
  std::map<int, int> sticking;       ///< by device: error of every call until it is reset
  std::vector<FakeFault> faults;
  int reset_error = 0;  ///< returned by a reset, which succeeds anyway
  bool gone = false;    ///< a reset does not clear sticky errors
  bool busy = false;    ///< no stream ever finishes
  std::function<void(const FakeLaunch&)> on_launch;

  // Recorded state
  std::vector<FakeLaunch> launches;  ///< executed launches
  std::map<int, int> resets;         ///< by device
  std::map<std::string, int> calls;  ///< by HIP's function name
  std::vector<std::string> misuse;   ///< calls that no device accepts
  std::map<std::string, int> live;   ///< objects, by the function that destroys them
  int allowed_dynamic_shared = -1;   ///< the last limit set for a kernel
  bool tells_misuse = false;         ///< prints misuse immediately on standard error
};

}  // namespace greta::test

extern "C" greta::test::FakeHip* greta_fake_hip();
