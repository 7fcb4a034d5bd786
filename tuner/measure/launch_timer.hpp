#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/device/device.hpp"
#include "tuner/measure/cache_flush.hpp"
#include "tuner/measure/pace.hpp"
#include "tuner/measure/reference_kernel.hpp"

namespace greta::tuner {

/// Times launches on the device's own clock. Cold: before each sample the caches are flushed. GPUs
/// lower their clocks within microseconds of idling, so every submission to one starts with some
/// work that is not timed, and samples follow without a pause.
class LaunchTimer {
 public:
  using Record = std::function<Result<void>(Stream&)>;

  /// `flush_bytes` 0: warm. Compiles a reference kernel, unless there is one of this device.
  static Result<LaunchTimer> create(Device& device, std::uint64_t flush_bytes,
                                    std::shared_ptr<const ReferenceKernel> reference = nullptr);

  /// Works until the device runs as fast as it can; to be called before samples that follow work of
  /// the host's. Does nothing on a CPU.
  Result<void> reach_pace();

  /// Times each of these once, in this order and in one submission; microseconds.
  Result<std::vector<double>> take_each(const std::vector<const Record*>& records,
                                        Deadline deadline);
  /// Takes `count` samples of one. Each is the mean over `batch` timed launches (each of them cold
  /// where samples are cold).
  Result<std::vector<double>> take(const Record& record, int count, int batch, Deadline deadline);

  /// Told of each timed launch by the events around it, once it is done.
  using Observer = std::function<Result<void>(const Event& start, const Event& stop)>;
  void set_observer(Observer observer) { observer_ = std::move(observer); }
  /// What each of the launches to come writes, for cold samples (CacheFlush).
  void set_written_bytes(std::uint64_t bytes) { written_bytes_ = bytes; }
  std::uint64_t flush_bytes() const { return flush_ ? flush_->bytes() : 0; }
  Stream& stream() { return *stream_; }
  /// A steady arithmetic kernel, for noticing drift.
  const std::shared_ptr<const ReferenceKernel>& reference_kernel() const {
    return reference_kernel_;
  }

 private:
  explicit LaunchTimer(Device& device) : device_(&device) {}
  Result<void> ensure_events(std::size_t count);
  Result<void> record_all(const std::vector<const Record*>& records);

  Device* device_;
  std::uint64_t written_bytes_ = 0;
  std::unique_ptr<Stream> stream_;
  std::optional<CacheFlush> flush_;  // none: warm
  std::shared_ptr<const ReferenceKernel> reference_kernel_;
  std::vector<std::unique_ptr<Event>> events_;
  Pace pace_;
  Observer observer_;
};

/// What the reference kernel takes now: the fastest of three, µs.
Result<double> steady_us(LaunchTimer& timer);

/// Iterations of the reference kernel in front of so many samples of one submission. They bring a
/// GPU's clocks up; and since HIP takes commands one by one, they last until the host is far enough
/// ahead that no sample waits for it between its two timestamps.
std::uint32_t wake_up_iterations(const DeviceInfo& info, std::size_t records);

/// How many launches to average so that a kernel of this duration stands clear of the clock's
/// resolution.
int batch_for(double kernel_us, double timestamp_period_ns);

}  // namespace greta::tuner
