#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/device/device.hpp"

namespace greta {

/// Times launches on the device's own clock. Cold: before each sample a buffer larger than the
/// last-level cache is overwritten.
class LaunchTimer {
 public:
  using Record = std::function<Result<void>(Stream&)>;

  /// `flush_bytes` 0: warm.
  static Result<LaunchTimer> create(Device& device, std::uint64_t flush_bytes);

  /// Takes `count` samples, in microseconds, in one submission. Each is the mean over `batch`
  /// timed launches (each cold where samples are cold).
  Result<std::vector<double>> take(const Record& record, int count, int batch, Deadline deadline);

  std::uint64_t flush_bytes() const { return flush_bytes_; }
  Stream& stream() { return *stream_; }

 private:
  explicit LaunchTimer(Device& device) : device_(&device) {}
  Result<void> ensure_events(std::size_t count);

  Device* device_;
  std::uint64_t flush_bytes_ = 0;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Buffer> flush_;
  std::vector<std::unique_ptr<Event>> events_;
  std::uint32_t pattern_ = 1;  // changes with each flush, so that no write can be elided
};

/// What to overwrite for a cold sample on this device: twice the last-level cache.
std::uint64_t default_flush_bytes(const DeviceInfo& info);

/// How many launches to average so that a kernel of this duration stands clear of the clock's
/// resolution.
int batch_for(double kernel_us, double timestamp_period_ns);

}  // namespace greta
