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
  /// Uses a stream of another library, which it does not destroy.
  HipStream(std::shared_ptr<Context> context, hipStream_t stream);
  ~HipStream() override;
  HipStream(const HipStream&) = delete;
  HipStream& operator=(const HipStream&) = delete;

  Result<void> record(Event& event) override;
  Result<void> replay(const Graph& graph) override;
  Result<void> wait(const Event& event) override;
  Result<void> submit() override;
  Result<void> synchronize(Deadline deadline) override;

  using Recorder::record_peer_copy;
  hipStream_t native() const { return stream_; }
  const Context* context() const { return context_.get(); }

 private:
  void submit_commands();
  /// Waits until all submitted work has finished. Throws `timeout`.
  void wait_until_done(Deadline deadline);
  /// Whether all submitted work has finished. Throws Refusal.
  bool done() const;

  const StreamHandle handle_;  ///< empty: the stream is another library's
  const hipStream_t stream_;
  const std::uint64_t number_;  ///< unique among the streams of this process
  std::vector<Commands> in_flight_;
  Deadline last_wait_{};     ///< how long synchronize() waited last
  bool unfinished_ = false;  ///< whether another library's stream has work that was not waited for
};

}  // namespace greta::device::hip
