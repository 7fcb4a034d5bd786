#include "runtime/device/hip/stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "runtime/device/hip/graph.hpp"
#include "runtime/device/telemetry.hpp"

namespace greta::device::hip {

namespace {

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

StreamHandle make_stream(const std::shared_ptr<Context>& context) {
  hipStream_t handle = nullptr;
  context->check(context->functions().hipStreamCreateWithFlags(&handle, hipStreamNonBlocking),
                 "hipStreamCreateWithFlags");
  return {context, handle};
}

HipStream::HipStream(std::shared_ptr<Context> context)
    : Recorder(std::move(context)),
      handle_(make_stream(context_)),
      stream_(handle_.get()),
      number_(next_number()) {}

HipStream::HipStream(std::shared_ptr<Context> context, hipStream_t stream)
    : Recorder(std::move(context)), stream_(stream), number_(next_number()) {}

HipStream::~HipStream() {
  discard();
  if (in_flight_.empty() && !unfinished_) return;
  // Work in flight uses the objects that are destroyed next. If it does not finish, the device is
  // marked as lost and the objects are kept.
  static_cast<void>(entered(*context_, [&]() -> Result<void> {
    wait_until_done(context_->options().transfer_deadline);
    return {};
  }));
}

Result<void> HipStream::record(Event& event) {
  return entered(*context_, [&]() -> Result<void> {
    const HipEvent& known = checked_event(*context_, event);
    Recording& last = *known.recording();
    if (last.state != Recording::State::never && !known.reached()) {
      throw Refusal(Status::invalid_argument,
                    "the event is recorded again before its first recording has completed");
    }
    last.state = Recording::State::recorded;
    last.stream = number_;
    commands_.list.emplace_back(Commands::Record{known.recording()});
    return {};
  });
}

Result<void> HipStream::replay(const Graph& graph) {
  return guarded(*context_, [&]() -> Result<void> {
    const auto* const known = dynamic_cast<const HipGraph*>(&graph);
    if (known == nullptr || known->context() != context_.get()) {
      throw Refusal(Status::invalid_argument, "the graph belongs to another device");
    }
    if (known->handle()) commands_.list.emplace_back(Commands::Replay{known->handle()});
    telemetry::count("device.replays");
    return {};
  });
}

Result<void> HipStream::wait(const Event& event) {
  return entered(*context_, [&]() -> Result<void> {
    const Recording& known = *checked_event(*context_, event).recording();
    if (known.state != Recording::State::never && known.stream == number_) {
      return {};  // a stream runs in order
    }
    if (known.state != Recording::State::submitted) {
      throw Refusal(Status::invalid_argument,
                    "waiting for an event that was not recorded and submitted");
    }
    submit_commands();
    context_->check(context_->functions().hipStreamWaitEvent(stream_, known.handle.get(), 0),
                    "hipStreamWaitEvent");
    return {};
  });
}

void HipStream::submit_commands() {
  if (commands_.list.empty()) return;
  telemetry::count("device.submissions");
  if (!in_flight_.empty() && done()) in_flight_.clear();
  in_flight_.push_back(std::exchange(commands_, {}));
  Commands& batch = in_flight_.back();
  std::size_t issued = 0;
  try {
    for (; issued < batch.list.size(); ++issued) batch.issue(*context_, issued, stream_);
  } catch (const Refusal& refusal) {
    // The rest is not run. After the failure the caller may release the objects that the issued
    // part uses, so this waits for it.
    batch.forget_events(issued);
    if (refusal.failure().status != Status::device_lost) {
      wait_until_done(context_->options().transfer_deadline);
    }
    throw;
  }
  // Whether another library's stream has finished is not asked here, as it may be capturing.
  if (handle_.get() == nullptr) {
    in_flight_.clear();
    unfinished_ = true;
  }
}

Result<void> HipStream::submit() {
  return entered(*context_, [&]() -> Result<void> {
    submit_commands();
    return {};
  });
}

Result<void> HipStream::synchronize(Deadline deadline) {
  return entered(*context_, [&]() -> Result<void> {
    submit_commands();
    wait_until_done(deadline);
    return {};
  });
}

bool HipStream::done() const {
  const hipError_t error = context_->functions().hipStreamQuery(stream_);
  if (error == hipErrorNotReady) return false;
  context_->check(error, "hipStreamQuery");
  return true;
}

// HIP can't wait with a deadline, so this polls with increasing intervals. The wait exceeds the
// work by at most 1/64 of its duration plus the time the system takes to wake a thread, which is 50
// us and more. This delay matters: a model waits for each token's work before it submits the next
// token's. These waits are alike, so that this polls without sleep near the end of the last wait.
void HipStream::wait_until_done(Deadline deadline) {
  using namespace std::chrono_literals;
  using Clock = std::chrono::steady_clock;
  const telemetry::Span span("device.wait");
  const StallWatch watch(std::chrono::duration<double>(deadline).count());
  const auto start = Clock::now();
  while (!done()) {
    const Deadline waited = Clock::now() - start;
    if (waited >= deadline) {
      if (const auto& abandon = context_->functions().abandon) abandon(stream_);
      throw Refusal(Status::timeout,
                    fmt::format("the device did not finish within {:.6g} ms",
                                std::chrono::duration<double, std::milli>(deadline).count()));
    }
    const bool near_last = waited > last_wait_ * 7 / 8 - 100us && waited < last_wait_ * 9 / 8;
    if (waited < 50us || near_last) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::min<Deadline>({waited / 64, 1ms, deadline - waited}));
    }
  }
  last_wait_ = Clock::now() - start;
  in_flight_.clear();
  unfinished_ = false;
}

}  // namespace greta::device::hip
