#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/device/device.hpp"
#include "runtime/device/telemetry.hpp"

namespace greta::tuner {

/// Collects what the host and devices do as a trace that chrome://tracing and Perfetto read. All
/// times are the host's steady clock, from when this was made. Thread-safe.
class Trace : public TelemetrySink {
 public:
  Trace() = default;

  /// Of the host, by thread: what the runtime tells as telemetry. Counts are moments.
  void count(const char* name, std::uint64_t amount) override;
  void span(const char* name, Clock::time_point start, Clock::duration duration) override;
  /// Something that ran on a device.
  void device_span(const std::string& device, const std::string& name, Clock::time_point start,
                   Clock::duration duration);
  /// How far the device's clock may be off the host's; the largest is told in the file.
  void alignment(const std::string& device, double error_us);

  /// Fails with `io`. A trace holds a million events; how many more there were is told in the file.
  Result<void> write(const std::filesystem::path& file) const;

 private:
  struct Entry {
    std::string name;
    std::uint32_t process = 0;  // 0: the host; else a device
    std::uint32_t thread = 0;
    double start_us = 0;
    double duration_us = -1;   // negative: a moment
    std::uint64_t amount = 0;  // of a moment
  };
  void add(Entry entry);
  std::uint32_t own_thread();
  double since_start_us(Clock::time_point at) const;

  const Clock::time_point start_ = Clock::now();
  mutable std::mutex mutex_;
  std::vector<Entry> events_;
  std::uint64_t dropped_ = 0;
  std::map<std::thread::id, std::uint32_t> threads_;
  std::map<std::string, std::uint32_t> devices_;
  std::map<std::string, double> alignment_us_;
};

/// Puts a device's events on the host's clock: an event is recorded on the idle device between two
/// readings of the host's clock, several times; the narrowest pair counts. That is done again when
/// the last time was a second ago, as clocks drift apart by some ten microseconds in that.
class DeviceTrace {
 public:
  /// Both must outlive this.
  DeviceTrace(Device& device, Trace& trace) : device_(device), trace_(trace) {}

  /// To be called while the device is idle, before work that will be told.
  Result<void> align();
  /// What ran between two events of a synchronised stream.
  Result<void> add(const std::string& name, const Event& start, const Event& stop);

 private:
  Device& device_;
  Trace& trace_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> origin_;
  TelemetrySink::Clock::time_point origin_time_;
};

}  // namespace greta::tuner
