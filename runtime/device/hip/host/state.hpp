#pragma once

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/hip/functions.hpp"
#include "runtime/device/hip/host/library.hpp"
#include "runtime/device/hip/host/queue.hpp"

// The objects behind HIP's handles on this platform, and the process's state on its devices.

namespace greta::device::hip {

struct hipStream {
  explicit hipStream(std::shared_ptr<host::Failed> failed) : queue(std::move(failed)) {}

  void push(host::Command command) {
    if (captured) {
      captured->push_back(std::move(command));
    } else {
      queue.push(std::move(command));
    }
  }

  host::Queue queue;
  std::unique_ptr<std::vector<host::Command>> captured;  ///< commands of the graph being captured
};

struct hipEvent {
  std::shared_ptr<host::Marker> marker = std::make_shared<host::Marker>();
};

struct hipFunction {
  std::shared_ptr<host::Library> library;
};

struct hipModule {
  hipFunction function;
};

struct hipGraph {
  std::vector<host::Command> commands;
};

struct hipGraphExec {
  std::shared_ptr<const std::vector<host::Command>> commands;
  unsigned replays = 0;
};

namespace host {

/// Owns objects that handles point to.
template <typename T>
class Objects {
 public:
  T* add(std::unique_ptr<T> object) {
    T* const handle = object.get();
    all_.emplace(handle, std::move(object));
    return handle;
  }
  hipError_t remove(T* handle) {
    return all_.erase(handle) == 1 ? hipSuccess : hipErrorInvalidHandle;
  }
  bool has(T* handle) const { return all_.count(handle) == 1; }
  const auto& all() const { return all_; }

 private:
  std::map<T*, std::unique_ptr<T>> all_;
};

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

/// The process's objects on a device.
struct Device {
  explicit Device(int its_number) : number(its_number) {}

  int number;
  std::mutex mutex;
  std::shared_ptr<Failed> failed = std::make_shared<Failed>();
  std::map<void*, std::unique_ptr<void, Free>> memory;  ///< destroyed last
  Objects<hipModule> modules;
  Objects<hipEvent> events;
  Objects<hipGraph> graphs;
  Objects<hipGraphExec> executables;
  Objects<hipStream> streams;
};

/// Returns the calling thread's current device.
std::shared_ptr<Device> current_device();
/// Returns a device's sticky failure, or hipSuccess if there is none.
hipError_t sticking(const Failed& failed);
/// Makes error_string() return the reason for this error. Returns the error.
hipError_t explain(hipError_t error, std::string why);

/// Runs the body of a function on the calling thread's device, unless the device has a sticky
/// failure.
template <typename Body>
hipError_t on_device(Body&& body) {
  const auto device = current_device();
  const std::lock_guard lock(device->mutex);
  if (const hipError_t error = sticking(*device->failed); error != hipSuccess) return error;
  try {
    return body(*device);
  } catch (const std::bad_alloc&) {
    return hipErrorOutOfMemory;
  }
}

/// Passes a command to a stream.
hipError_t push(hipStream_t stream, const std::function<Command()>& make);

hipError_t set_device(int number);
hipError_t reset_device(int number);
std::string error_name(hipError_t error);
std::string error_string(hipError_t error);

}  // namespace host

}  // namespace greta::device::hip
