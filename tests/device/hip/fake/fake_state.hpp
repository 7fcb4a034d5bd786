#pragma once

// What the sources of a fake library share.

#include "tests/device/hip/fake/fake_hip.hpp"

// A function's name in libamdhip64 or in libcuda.
#ifdef FAKE_CUDA
#define NAME(hip, cuda) cuda
#else
#define NAME(hip, cuda) hip
#endif

namespace greta::test {

inline constexpr int success = 0, invalid_value = 1, no_context = 201, not_found = 500,
                     not_ready = 600;

extern FakeHip fake;
extern thread_local int current_device;  ///< -1 before a thread has set one

/// How every call begins: its error, if it is to fail.
int begin(const char* name, bool needs_device = true);

}  // namespace greta::test
