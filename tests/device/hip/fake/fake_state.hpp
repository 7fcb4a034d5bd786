#pragma once

// Declarations shared by the sources of a fake library.

#include <map>
#include <mutex>
#include <string>

#include "tests/device/hip/fake/fake_hip.hpp"
#include "tests/layers.hpp"

// A function's name in libamdhip64 or in libcuda.
#ifdef FAKE_CUDA
#define NAME(hip, cuda) cuda
#else
#define NAME(hip, cuda) hip
#endif

namespace greta::test {

inline constexpr int success = 0, invalid_value = 1, out_of_memory = 2, invalid_device = 101,
                     no_context = 201, no_binary_for_gpu = 209, invalid_handle = 400,
                     not_found = 500, not_ready = 600, out_of_resources = 701, launch_failure = 719,
                     capture_unsupported = 900;

extern FakeHip fake;
extern thread_local int current_device;  ///< -1 until a thread sets one

/// A call of a function of the library. Every function begins by constructing one, which serialises
/// the calls.
class Call {
 public:
  explicit Call(const char* name, bool needs_device = true);

  int error() const { return error_; }
  /// Records that no device accepts the call. Returns its error.
  int misused(const std::string& why, int error = invalid_value) const;
  void fail(int error) { error_ = error; }

 private:
  const char* name_;
  std::unique_lock<std::recursive_mutex> lock_;
  int error_ = success;
};

/// An object to which a caller holds a pointer.
struct Object {
  int device = 0;
  std::string ended_by;
};

extern std::map<const void*, Object> objects;

void add_object(const void* object, const char* ended_by);
/// Removes an object. Returns false and records a misuse if it does not exist.
bool remove_object(const Call& call, const void* object, const char* ended_by);
/// Returns whether an object exists and is destroyed by this function; otherwise records a misuse.
bool is_object(const Call& call, const void* object, const char* ended_by);

}  // namespace greta::test
