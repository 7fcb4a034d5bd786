#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "runtime/device/device.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// Forwards all calls to another device. Tests override some of them.
class ForwardingDevice : public Device {
 public:
  explicit ForwardingDevice(std::unique_ptr<Device> device) : device_(std::move(device)) {}

  const DeviceInfo& info() const override { return device_->info(); }
  Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes, Memory memory) override {
    return device_->allocate(bytes, memory);
  }
  MemoryStatistics memory() const override { return device_->memory(); }
  void trim() override { device_->trim(); }
  Result<void> upload(Buffer& to, std::size_t offset, std::span<const std::byte> from) override {
    return device_->upload(to, offset, from);
  }
  Result<void> download_all(std::span<const Download> parts) override {
    return device_->download_all(parts);
  }
  Result<std::unique_ptr<Kernel>> compile(const KernelSource& source) override {
    return device_->compile(source);
  }
  Result<std::unique_ptr<Kernel>> load(const KernelSource& source,
                                       std::span<const std::byte> code_object) override {
    return device_->load(source, code_object);
  }
  Result<std::unique_ptr<Stream>> create_stream() override { return device_->create_stream(); }
  Result<std::unique_ptr<Event>> create_event() override { return device_->create_event(); }
  Result<std::unique_ptr<Graph>> create_graph(
      const std::function<Result<void>(Stream&)>& record_work) override {
    return device_->create_graph(record_work);
  }
  Result<double> elapsed_us(const Event& start, const Event& stop) override {
    return device_->elapsed_us(start, stop);
  }

 private:
  std::unique_ptr<Device> device_;
};

}  // namespace greta::test
