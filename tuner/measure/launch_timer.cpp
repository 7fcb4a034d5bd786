#include "tuner/measure/launch_timer.hpp"

#include <algorithm>
#include <cmath>

namespace greta {

std::uint64_t default_flush_bytes(const DeviceInfo& info) {
  return 2 * info.last_level_cache_bytes;
}

int batch_for(double kernel_us, double timestamp_period_ns) {
  const double wanted_us = 100 * timestamp_period_ns / 1000;
  return static_cast<int>(std::clamp(std::ceil(wanted_us / std::max(kernel_us, 1e-3)), 1.0, 64.0));
}

Result<LaunchTimer> LaunchTimer::create(Device& device, std::uint64_t flush_bytes) {
  LaunchTimer timer(device);
  auto stream = device.create_stream();
  if (!stream) return stream.failure();
  timer.stream_ = *std::move(stream);
  timer.flush_bytes_ = flush_bytes / 4 * 4;
  if (timer.flush_bytes_ > 0) {
    auto buffer = device.allocate(timer.flush_bytes_);
    if (!buffer) return buffer.failure();
    timer.flush_ = *std::move(buffer);
  }
  return timer;
}

Result<void> LaunchTimer::ensure_events(std::size_t count) {
  while (events_.size() < count) {
    auto event = device_->create_event();
    if (!event) return event.failure();
    events_.push_back(*std::move(event));
  }
  return {};
}

Result<std::vector<double>> LaunchTimer::take(const Record& record, int count, int batch,
                                              Deadline deadline) {
  const auto intervals = static_cast<std::size_t>(count) * static_cast<std::size_t>(batch);
  if (auto ready = ensure_events(2 * intervals); !ready) return ready.failure();
  const auto record_all = [&]() -> Result<void> {
    for (std::size_t i = 0; i < intervals; ++i) {
      if (flush_) {
        if (auto r = stream_->fill(*flush_, 0, flush_bytes_, pattern_++); !r) return r;
      }
      if (auto r = stream_->record(*events_[2 * i]); !r) return r;
      if (auto r = record(*stream_); !r) return r;
      if (auto r = stream_->record(*events_[2 * i + 1]); !r) return r;
    }
    return stream_->synchronize(deadline);
  };
  if (auto done = record_all(); !done) return done.failure();

  std::vector<double> samples(static_cast<std::size_t>(count), 0.0);
  for (std::size_t i = 0; i < intervals; ++i) {
    auto us = device_->elapsed_us(*events_[2 * i], *events_[2 * i + 1]);
    if (!us) return us.failure();
    samples[i / static_cast<std::size_t>(batch)] += *us / batch;
  }
  return samples;
}

}  // namespace greta
