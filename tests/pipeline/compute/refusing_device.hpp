#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "tests/forwarding_device.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// A device that rejects some kernels and counts those that it compiles.
class RefusingDevice final : public ForwardingDevice {
 public:
  using Refuses = std::function<bool(const KernelSource&)>;

  RefusingDevice(std::unique_ptr<Device> device, Refuses refuses, int& compiled)
      : ForwardingDevice(std::move(device)), refuses_(std::move(refuses)), compiled_(compiled) {}

  Result<std::unique_ptr<Kernel>> compile(const KernelSource& source) override {
    if (refuses_(source)) return Failure{Status::compile, "the driver gives up", "its log"};
    ++compiled_;
    return ForwardingDevice::compile(source);
  }

 private:
  Refuses refuses_;
  int& compiled_;
};

}  // namespace greta::test
