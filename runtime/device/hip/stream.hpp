#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/device/hip/recorder.hpp"

namespace greta::device::hip {

using StreamHandle = Handle<hipStream_t, &Functions::hipStreamDestroy>;

/// Creates a stream. Throws Refusal.
StreamHandle make_stream(const std::shared_ptr<Context>& context);

/// Records commands, and issues them to the device when they are submitted.
class HipStream final : public Recorder {
 public:
  explicit HipStream(std::shared_ptr<Context> context);
  ~HipStream() override;
  HipStream(const HipStream&) = delete;
  HipStream& operator=(const HipStream&) = delete;

  Result<void> record(Event& event) override;
  Result<void> replay(const Graph& graph) override;
  Result<void> wait(const Event& event) override;
  Result<void> submit() override;
  Result<void> synchronize(Deadline deadline) override;

 private:
  void submit_commands();
  /// Waits until all submitted work has finished. Throws `timeout`.
  void wait_until_done(Deadline deadline);
  /// Whether all submitted work has finished. Throws Refusal.
  bool done() const;

  StreamHandle handle_;
  const std::uint64_t number_;  ///< unique among the streams of this process
  std::vector<Commands> in_flight_;
};

}  // namespace greta::device::hip
