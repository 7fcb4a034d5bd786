#pragma once

// Vulkan's types and functions. Global functions are those of the loader, loaded by load_loader();
// functions of a device are in its VolkDeviceTable.
#include <volk.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/device/result.hpp"

namespace greta::vulkan {

/// Thrown inside this backend only, and turned into its Failure at the interface by guarded().
class Refusal : public std::runtime_error {
 public:
  explicit Refusal(Failure failure)
      : std::runtime_error(failure.message), failure_(std::move(failure)) {}
  Refusal(Status status, std::string message) : Refusal(Failure{status, std::move(message), {}}) {}
  const Failure& failure() const { return failure_; }

 private:
  Failure failure_;
};

/// Throws a Refusal that names the call, unless the result is VK_SUCCESS.
void check(VkResult result, const char* what);

/// The Failure of the exception being handled. Call in a catch block only.
Failure current_failure();

/// Opens the Vulkan loader. Throws `unavailable` when there is none.
void load_loader();

/// Loads the functions that need an instance, once for the process.
void load_instance_functions(VkInstance instance);

}  // namespace greta::vulkan
