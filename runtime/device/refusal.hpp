#pragma once

#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/device/result.hpp"
#include "runtime/device/system/stall_watch.hpp"

namespace greta::device {

/// An exception that is thrown only inside backends. guarded() turns it into its Failure at their
/// interface.
class Refusal : public std::runtime_error {
 public:
  explicit Refusal(Failure failure)
      : std::runtime_error(failure.message), failure_(std::move(failure)) {}
  Refusal(Status status, std::string message) : Refusal(Failure{status, std::move(message), {}}) {}
  const Failure& failure() const { return failure_; }

 private:
  Failure failure_;
};

/// Returns the exception being handled as a Failure. Call it only in a catch block.
Failure current_failure();

/// Runs the body of a function of a backend's public interface. Exceptions become Failures here and
/// nowhere else. On a lost device, nothing is run. A device whose work was lost or missed its
/// deadline is marked as lost. A call that does not return is detected if the process watches for
/// stalls.
template <typename Context, typename Body>
auto guarded(Context& context, Body&& body) -> decltype(body()) {
  if (context.lost()) {
    return Failure{
        Status::device_lost, "the device was lost by an earlier call and must be opened again", {}};
  }
  const StallWatch watch;
  try {
    return body();
  } catch (const std::exception&) {
    Failure failure = current_failure();
    if (failure.status == Status::device_lost || failure.status == Status::timeout) {
      context.mark_lost();
    }
    return failure;
  }
}

/// Keeps a handle that can't be destroyed because its device is lost, where leak checkers find it.
void abandon(std::uint64_t handle);

}  // namespace greta::device
