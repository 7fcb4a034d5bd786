#pragma once

// What the sources of a fake library share.

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
extern thread_local int current_device;  ///< -1 before a thread has set one

/// A call of one of the library's functions, one at a time: every one begins by making this.
class Call {
 public:
  explicit Call(const char* name, bool needs_device = true);

  int error() const { return error_; }
  /// Notes that no device could have taken the call. Returns its error.
  int misused(const std::string& why, int error = invalid_value) const;
  void fail(int error) { error_ = error; }

 private:
  const char* name_;
  std::unique_lock<std::recursive_mutex> lock_;
  int error_ = success;
};

/// Something that a caller holds a pointer to.
struct Object {
  int device = 0;
  std::string ended_by;
};

extern std::map<const void*, Object> objects;

void add_object(const void* object, const char* ended_by);
/// Takes an object out; false, and a misuse, when it is not there.
bool remove_object(const Call& call, const void* object, const char* ended_by);
/// Whether an object is there, and of the kind that this function ends; a misuse when not.
bool is_object(const Call& call, const void* object, const char* ended_by);

}  // namespace greta::test
