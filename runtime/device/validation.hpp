#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/device/device_info.hpp"
#include "runtime/device/result.hpp"

namespace greta::device {

/// What an API's validation layer says of a call.
struct ValidationMessage {
  bool error = false;  ///< otherwise a warning
  std::string id;      ///< names the rule: "VUID-vkCmdDispatch-None-08114"
  std::string text;
};

/// Receives what validation layers say in this process. Both functions may be called by any thread.
struct ValidationObserver {
  std::function<void(const DeviceInfo& device)> opened;  ///< a device was opened with validation
  std::function<void(const ValidationMessage& message)> said;
};

/// Makes every Vulkan device that this process opens from now on use the validation layer, as if
/// OpenOptions::validation were set, and passes its messages to `observer`. nullptr, the initial
/// state, ends this.
void observe_validation(std::shared_ptr<const ValidationObserver> observer);
std::shared_ptr<const ValidationObserver> validation_observer();

/// Fails with `unavailable` where Vulkan has no loader or no validation layer.
Result<void> can_validate();

}  // namespace greta::device
