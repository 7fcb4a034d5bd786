#include "tuner/bench/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

namespace greta::tuner {
namespace {

using nlohmann::json;
using Clock = TelemetrySink::Clock;

constexpr std::size_t most_events = 1'000'000;
constexpr int alignments = 20;
constexpr auto alignment_age = std::chrono::seconds(1);

double microseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

Clock::duration from_microseconds(double us) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::micro>(us));
}

json name_event(const char* kind, std::uint32_t process, std::uint32_t thread,
                const std::string& name) {
  return {
      {"ph", "M"}, {"name", kind}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

}  // namespace

void Trace::add(Entry entry) {
  if (events_.size() < most_events) {
    events_.push_back(std::move(entry));
  } else {
    ++dropped_;
  }
}

std::uint32_t Trace::own_thread() {
  const auto next = static_cast<std::uint32_t>(threads_.size());
  return threads_.try_emplace(std::this_thread::get_id(), next).first->second;
}

double Trace::since_start_us(Clock::time_point at) const {
  return microseconds(at - start_);
}

void Trace::count(const char* name, std::uint64_t amount) {
  const double now = since_start_us(Clock::now());
  const std::lock_guard lock(mutex_);
  add({name, 0, own_thread(), now, -1, amount});
}

void Trace::span(const char* name, Clock::time_point start, Clock::duration duration) {
  const std::lock_guard lock(mutex_);
  add({name, 0, own_thread(), since_start_us(start), microseconds(duration), 0});
}

void Trace::device_span(const std::string& device, const std::string& name, Clock::time_point start,
                        Clock::duration duration, std::string details) {
  const std::lock_guard lock(mutex_);
  const auto next = static_cast<std::uint32_t>(devices_.size()) + 1;
  const auto process = devices_.try_emplace(device, next).first->second;
  add({name, process, 0, since_start_us(start), microseconds(duration), 0, std::move(details)});
}

void Trace::alignment(const std::string& device, double error_us) {
  const std::lock_guard lock(mutex_);
  alignment_us_[device] = std::max(alignment_us_[device], error_us);
}

void Trace::fact(const std::string& name, std::string value) {
  const std::lock_guard lock(mutex_);
  facts_[name] = std::move(value);
}

Result<void> Trace::write(const std::filesystem::path& file) const {
  const std::lock_guard lock(mutex_);
  std::ofstream out(file);
  json other{{"alignment_error_us", alignment_us_}, {"events_left_out", dropped_}};
  other.update(facts_);
  out << "{\"displayTimeUnit\": \"ns\", \"otherData\": "
      << other.dump(-1, ' ', false, json::error_handler_t::replace) << ", \"traceEvents\": [\n"
      << name_event("process_name", 0, 0, "host").dump();
  for (const auto& [device, process] : devices_) {
    out << ",\n" << name_event("process_name", process, 0, device).dump();
  }
  for (const auto& event : events_) {
    json object{{"name", event.name},
                {"pid", event.process},
                {"tid", event.thread},
                {"ts", event.start_us}};
    if (event.duration_us >= 0) {
      object["ph"] = "X";
      object["dur"] = event.duration_us;
      if (!event.details.empty()) object["args"] = json::parse(event.details);
    } else {
      object["ph"] = "i";
      object["s"] = "t";
      object["args"] = {{"amount", event.amount}};
    }
    out << ",\n" << object.dump();
  }
  out << "\n]}\n";
  out.close();
  if (!out) return Failure{Status::io, file.string() + ": can't be written", {}};
  return {};
}

Result<void> DeviceTrace::align() {
  if (origin_ && Clock::now() - origin_time_ < alignment_age) return {};
  if (!stream_) {
    auto stream = device_.create_stream();
    if (!stream) return stream.failure();
    stream_ = *std::move(stream);
  }
  auto narrowest = Clock::duration::max();
  for (int i = 0; i < alignments; ++i) {
    auto event = device_.create_event();
    if (!event) return event.failure();
    if (auto r = stream_->record(**event); !r) return r;
    const auto before = Clock::now();
    if (auto r = stream_->synchronize(std::chrono::seconds(30)); !r) return r;
    const auto after = Clock::now();
    if (after - before >= narrowest) continue;
    narrowest = after - before;
    origin_ = *std::move(event);
    origin_time_ = before + narrowest / 2;
  }
  trace_.alignment(device_.info().id(), microseconds(narrowest) / 2);
  return {};
}

Result<void> DeviceTrace::add(const std::string& name, const Event& start, const Event& stop) {
  if (!origin_) return Failure{Status::invalid_argument, "the clocks are not aligned yet", {}};
  const auto from = device_.elapsed_us(*origin_, start);
  if (!from) return from.failure();
  const auto us = device_.elapsed_us(start, stop);
  if (!us) return us.failure();
  trace_.device_span(device_.info().id(), name, origin_time_ + from_microseconds(*from),
                     from_microseconds(*us));
  return {};
}

}  // namespace greta::tuner
