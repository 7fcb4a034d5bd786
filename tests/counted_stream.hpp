#pragma once

#include "runtime/device/device.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// Does nothing, counts calls, and fails as it is told.
class CountedStream final : public Stream {
 public:
  Result<void> launch(const Kernel&, Grid, std::span<const std::byte>, LaunchOrder) override {
    return {};
  }
  Result<void> copy(Buffer&, std::size_t, const Buffer&, std::size_t, std::size_t) override {
    return {};
  }
  Result<void> fill(Buffer&, std::size_t, std::size_t, std::uint32_t) override { return {}; }
  Result<void> record(Event&) override { return {}; }
  Result<void> replay(const Graph&) override { return {}; }
  Result<void> wait(const Event&) override { return {}; }
  Result<void> submit() override { return submitted; }
  Result<void> synchronize(Deadline) override {
    ++waits;
    return waited;
  }
  void discard() override { ++discards; }

  Result<void> submitted, waited;
  int waits = 0, discards = 0;
};

}  // namespace greta::test
