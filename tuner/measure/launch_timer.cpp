#include "tuner/measure/launch_timer.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/device/system/stall_watch.hpp"

namespace greta::tuner {

int batch_for(double kernel_us, double timestamp_period_ns) {
  const double wanted_us = 100 * timestamp_period_ns / 1000;
  return static_cast<int>(std::clamp(std::ceil(wanted_us / std::max(kernel_us, 1e-3)), 1.0, 64.0));
}

std::uint32_t wake_up_iterations(const DeviceInfo& info, std::size_t records) {
  if (info.is_cpu()) return 0;
  if (info.language != Language::hip) return ReferenceKernel::wake_up;
  constexpr std::size_t per_record = 3;  // about 15 µs, for four commands
  return static_cast<std::uint32_t>(
      std::max<std::size_t>(ReferenceKernel::wake_up, per_record * records));
}

Result<LaunchTimer> LaunchTimer::create(Device& device, std::uint64_t flush_bytes,
                                        std::shared_ptr<const ReferenceKernel> reference) {
  LaunchTimer timer(device);
  auto stream = device.create_stream();
  if (!stream) return stream.failure();
  timer.stream_ = *std::move(stream);
  if (!reference) {
    auto created = ReferenceKernel::create(device);
    if (!created) return created.failure();
    reference = std::make_shared<const ReferenceKernel>(*std::move(created));
  }
  timer.reference_kernel_ = std::move(reference);
  if (flush_bytes > 0) {
    auto flush = CacheFlush::create(device, flush_bytes);
    if (!flush) return flush.failure();
    timer.flush_ = *std::move(flush);
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

Result<void> LaunchTimer::record_all(const std::vector<const Record*>& records, Deadline deadline) {
  // Timestamps around a launch that waits in a queue with others are up to 0.8 µs further apart, by
  // chance. The flush of a cold sample is work enough to hide the way of a submission.
  const bool one_by_one = flush_ && !device_->info().is_cpu();
  const std::size_t together = one_by_one ? 1 : records.size();
  if (const auto iterations = wake_up_iterations(device_->info(), together)) {
    if (auto r = reference_kernel_->record(*stream_, iterations); !r) return r;
  }
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (one_by_one && i > 0) {
      if (auto done = stream_->synchronize(deadline); !done) return done;
    }
    if (flush_) {
      if (auto r = flush_->record(*stream_, written_bytes_); !r) return r;
    }
    if (auto r = stream_->record(*events_[2 * i]); !r) return r;
    if (auto r = (*records[i])(*stream_); !r) return r;
    if (auto r = stream_->record(*events_[2 * i + 1]); !r) return r;
  }
  return {};
}

Result<void> LaunchTimer::record_steady(Stream& stream) const {
  return reference_kernel_->record(stream, ReferenceKernel::steady);
}

Result<void> LaunchTimer::reach_pace() {
  if (device_->info().is_cpu()) return {};
  const Record steady = [this](Stream& stream) { return record_steady(stream); };
  return pace_.reach([&](int count) { return take(steady, count, 1, std::chrono::seconds(30)); });
}

Result<std::optional<double>> LaunchTimer::reach_pace_with(const Record& record,
                                                           Deadline deadline) {
  std::optional<double> timed;
  if (device_->info().is_cpu()) return timed;
  const Record steady = [this](Stream& stream) { return record_steady(stream); };
  int submissions = 0;
  const auto reached = pace_.reach([&](int count) -> Result<std::vector<double>> {
    timed.reset();
    if (++submissions > 1) return take(steady, count, 1, std::chrono::seconds(30));
    const auto both = take_each({&steady, &record}, deadline);
    if (!both) return both.failure();
    timed = both->back();
    return std::vector{both->front()};
  });
  if (!reached) return reached.failure();
  return timed;
}

double LaunchTimer::submission_us() const {
  return pace_.usual_us() * ReferenceKernel::wake_up / ReferenceKernel::steady;
}

Result<std::vector<double>> LaunchTimer::take_each(const std::vector<const Record*>& records,
                                                   Deadline deadline) {
  const StallWatch watch(std::chrono::duration<double>(deadline).count());
  if (auto ready = ensure_events(2 * records.size()); !ready) return ready.failure();
  if (auto recorded = record_all(records, deadline); !recorded) {
    stream_->discard();
    return recorded.failure();
  }
  if (auto done = stream_->synchronize(deadline); !done) return done.failure();
  std::vector<double> samples;
  for (std::size_t i = 0; i < records.size(); ++i) {
    auto us = device_->elapsed_us(*events_[2 * i], *events_[2 * i + 1]);
    if (!us) return us.failure();
    samples.push_back(*us);
    if (!observer_) continue;
    if (auto told = observer_(*events_[2 * i], *events_[2 * i + 1]); !told) return told.failure();
  }
  return samples;
}

Result<std::vector<double>> LaunchTimer::take(const Record& record, int count, int batch,
                                              Deadline deadline) {
  const std::vector<const Record*> records(static_cast<std::size_t>(count * batch), &record);
  auto launches = take_each(records, deadline);
  if (!launches || batch == 1) return launches;
  std::vector<double> samples(static_cast<std::size_t>(count), 0.0);
  for (std::size_t i = 0; i < launches->size(); ++i) {
    samples[i / static_cast<std::size_t>(batch)] += (*launches)[i] / batch;
  }
  return samples;
}

Result<double> steady_us(LaunchTimer& timer) {
  const LaunchTimer::Record steady = [&](Stream& stream) { return timer.record_steady(stream); };
  const auto samples = timer.take(steady, 3, 1, std::chrono::seconds(30));
  if (!samples) return samples.failure();
  return *std::min_element(samples->begin(), samples->end());
}

}  // namespace greta::tuner
