#include "runtime/device/hip/host/state.hpp"

#include <array>
#include <chrono>

#include "runtime/device/hip/host/functions.hpp"

namespace greta::device::hip::host {

namespace {

/// All devices. They are never destroyed, as streams may be busy when the process ends.
struct Devices {
  std::mutex mutex;
  std::array<std::shared_ptr<Device>, device_count> open;
  std::vector<std::shared_ptr<Device>> stuck;  ///< reset while some of their work was still running
};

Devices& devices() {
  static auto* const all = new Devices;
  return *all;
}

thread_local int current = 0;

/// The reason that error_string() returns for the OS thread's last error.
struct Detail {
  hipError_t error = hipSuccess;
  std::string text;
};
thread_local Detail detail;

}  // namespace

hipError_t explain(hipError_t error, std::string text) {
  detail = {error, std::move(text)};
  return error;
}

std::shared_ptr<Device> current_device() {
  Devices& all = devices();
  const std::lock_guard lock(all.mutex);
  auto& device = all.open[static_cast<std::size_t>(current)];
  if (!device) device = std::make_shared<Device>(current);
  return device;
}

hipError_t sticking(const Failed& failed) {
  if (!failed) return hipSuccess;
  Fault fault = failed.get();
  return explain(fault.illegal_access ? hipErrorIllegalAddress : hipErrorLaunchFailure,
                 std::move(fault.message));
}

/// Passes a command to a stream.
hipError_t push(hipStream_t stream, const std::function<Command()>& make) {
  return on_device([&](Device& device) {
    if (!device.streams.has(stream)) return hipErrorInvalidHandle;
    stream->push(make());
    return hipSuccess;
  });
}

hipError_t set_device(int device) {
  if (device < 0 || device >= device_count) return hipErrorInvalidDevice;
  current = device;
  return hipSuccess;
}

hipError_t reset_device(int number) {
  Devices& all = devices();
  std::shared_ptr<Device> device;
  {
    const std::lock_guard lock(all.mutex);
    device = std::exchange(all.open[static_cast<std::size_t>(number)], nullptr);
  }
  if (!device) return hipSuccess;
  for (const auto& [handle, stream] : device->streams.all()) stream->queue.cancel();
  for (const auto& [handle, stream] : device->streams.all()) {
    if (stream->queue.wait_idle(std::chrono::seconds(5))) continue;
    const std::lock_guard lock(all.mutex);
    all.stuck.push_back(std::move(device));
    break;
  }
  return hipSuccess;
}

std::string error_name(hipError_t error) {
  switch (error) {
    case hipErrorInvalidValue:
      return "hipErrorInvalidValue";
    case hipErrorOutOfMemory:
      return "hipErrorOutOfMemory";
    case hipErrorInvalidDevice:
      return "hipErrorInvalidDevice";
    case hipErrorInvalidImage:
      return "hipErrorInvalidImage";
    case hipErrorNoBinaryForGpu:
      return "hipErrorNoBinaryForGpu";
    case hipErrorInvalidHandle:
      return "hipErrorInvalidHandle";
    case hipErrorNotFound:
      return "hipErrorNotFound";
    case hipErrorNotReady:
      return "hipErrorNotReady";
    case hipErrorIllegalAddress:
      return "hipErrorIllegalAddress";
    case hipErrorLaunchOutOfResources:
      return "hipErrorLaunchOutOfResources";
    case hipErrorLaunchFailure:
      return "hipErrorLaunchFailure";
    default:
      return "hipError " + std::to_string(error);
  }
}

std::string error_string(hipError_t error) {
  return detail.error == error ? detail.text : "";
}

}  // namespace greta::device::hip::host
