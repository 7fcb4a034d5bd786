#pragma once

#include <string>
#include <utility>

#include "runtime/device/result.hpp"

namespace greta::runtime {

/// Throws an Error about an argument.
[[noreturn]] inline void refuse(std::string message) {
  throw Error(Failure{Status::invalid_argument, std::move(message), {}});
}

}  // namespace greta::runtime
