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

/// Collects events of the host and of devices as a trace for chrome://tracing and Perfetto. All
/// times are on the host's steady clock, relative to the construction. Thread-safe.
class Trace : public TelemetrySink {
 public:
  Trace() = default;

  /// Receives the runtime's telemetry of the host, by thread. Counts become instant events.
  void count(const char* name, std::uint64_t amount) override;
  void span(const char* name, Clock::time_point start, Clock::duration duration) override;
  /// Adds work that ran on a device. `details` is a JSON object, which viewers show; empty: none.
  void device_span(const std::string& device, const std::string& name, Clock::time_point start,
                   Clock::duration duration, std::string details = {});
  /// Reports the possible error of the device's clock relative to the host's. The file contains the
  /// largest one.
  void alignment(const std::string& device, double error_us);
  /// Adds what the whole trace is of to the file's otherData, for example its device.
  void fact(const std::string& name, std::string value);

  /// Writes the trace; fails with `io`. A trace holds a million events. The file states how many
  /// further events were dropped.
  Result<void> write(const std::filesystem::path& file) const;

 private:
  struct Entry {
    std::string name;
    std::uint32_t process = 0;  // 0: the host; else a device
    std::uint32_t thread = 0;
    double start_us = 0;
    double duration_us = -1;   // negative: an instant event
    std::uint64_t amount = 0;  // value of an instant event
    std::string details{};     // of work on a device: JSON
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
  std::map<std::string, std::string> facts_;
};

/// Converts a device's events to the host's clock. An event is recorded on the idle device between
/// two readings of the host's clock, several times; the narrowest pair of readings counts. This is
/// repeated after one second, because the clocks drift apart by about ten microseconds in that
/// time.
class DeviceTrace {
 public:
  /// Both must outlive this object.
  DeviceTrace(Device& device, Trace& trace) : device_(device), trace_(trace) {}

  /// Aligns the clocks. Call it while the device is idle, before work that will be added.
  Result<void> align();
  /// Adds work that ran between two events of a synchronised stream.
  Result<void> add(const std::string& name, const Event& start, const Event& stop);

 private:
  Device& device_;
  Trace& trace_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> origin_;
  TelemetrySink::Clock::time_point origin_time_;
};

}  // namespace greta::tuner
