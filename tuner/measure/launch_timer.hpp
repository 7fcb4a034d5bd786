#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/device/device.hpp"
#include "tuner/measure/cache_flush.hpp"
#include "tuner/measure/clock_warm_up.hpp"
#include "tuner/measure/reference_kernel.hpp"

namespace greta::tuner {

/// Times launches with the device's timestamps. Cold samples are preceded by a cache flush. GPUs
/// lower their clocks within microseconds of idling, so every submission to a GPU starts with
/// untimed work, and the samples follow without a pause.
class LaunchTimer {
 public:
  using Record = std::function<Result<void>(Stream&)>;

  /// Times warm samples if `flush_bytes` is 0. Compiles a reference kernel unless `reference`
  /// provides one for this device.
  static Result<LaunchTimer> create(Device& device, std::uint64_t flush_bytes,
                                    std::shared_ptr<const ReferenceKernel> reference = nullptr);

  /// Runs work until the device reaches its highest speed. Call it before samples that follow work
  /// on the host. Does nothing on a CPU.
  Result<void> reach_pace();
  /// Like reach_pace(), but its first submission, which mostly is the only one, also times `record`
  /// once. Returns that time, µs, or nothing if the device was not yet at its highest speed.
  Result<std::optional<double>> reach_pace_with(const Record& record, Deadline deadline);
  /// Returns the device time that each submission takes in addition to its samples, µs.
  double submission_us() const;

  /// Times each of these once, in this order and in one submission. Returns microseconds.
  Result<std::vector<double>> take_each(const std::vector<const Record*>& records,
                                        Deadline deadline);
  /// Takes `count` samples of one. Each is the mean of `batch` timed launches, which are all cold
  /// if samples are cold.
  Result<std::vector<double>> take(const Record& record, int count, int batch, Deadline deadline);

  /// Called after each timed launch with the events around it.
  using Observer = std::function<Result<void>(const Event& start, const Event& stop)>;
  void set_observer(Observer observer) { observer_ = std::move(observer); }
  /// Sets the number of bytes that the next launches write, for cold samples (CacheFlush).
  void set_written_bytes(std::uint64_t bytes) { written_bytes_ = bytes; }
  std::uint64_t flush_bytes() const { return flush_ ? flush_->bytes() : 0; }
  Stream& stream() { return *stream_; }
  /// Returns an arithmetic kernel of steady duration, for detecting drift.
  const std::shared_ptr<const ReferenceKernel>& reference_kernel() const {
    return reference_kernel_;
  }
  /// Records a short run of it.
  Result<void> record_steady(Stream& stream) const;

 private:
  explicit LaunchTimer(Device& device) : device_(&device) {}
  Result<void> ensure_events(std::size_t count);
  Result<void> record_all(const std::vector<const Record*>& records, Deadline deadline);

  Device* device_;
  std::uint64_t written_bytes_ = 0;
  std::unique_ptr<Stream> stream_;
  std::optional<CacheFlush> flush_;  // empty: warm
  std::shared_ptr<const ReferenceKernel> reference_kernel_;
  std::vector<std::unique_ptr<Event>> events_;
  Pace pace_;
  Observer observer_;
};

/// Returns the current duration of the reference kernel: the fastest of three runs, µs.
Result<double> steady_us(LaunchTimer& timer);

/// Returns the iterations of the reference kernel before this number of samples in one submission.
/// They raise a GPU's clocks. HIP submits commands one by one, so they also last until the host is
/// far enough ahead that no sample waits for it between its two timestamps.
std::uint32_t wake_up_iterations(const DeviceInfo& info, std::size_t records);

/// Returns the number of launches to average so that the resolution of the timestamps is negligible
/// for a kernel of this duration.
int batch_for(double kernel_us, double timestamp_period_ns);

}  // namespace greta::tuner
