#include "runtime/pipeline/c/abi.hpp"

namespace greta::runtime::c {
namespace {

thread_local std::string last_message;

greta_status status_of(Status status) {
  switch (status) {
    case Status::constraints:
      return GRETA_CONSTRAINTS;
    case Status::compile:
      return GRETA_COMPILE;
    case Status::launch:
      return GRETA_LAUNCH;
    case Status::timeout:
      return GRETA_TIMEOUT;
    case Status::crash:
      return GRETA_CRASH;
    case Status::out_of_memory:
      return GRETA_OUT_OF_MEMORY;
    case Status::unavailable:
      return GRETA_UNAVAILABLE;
    case Status::invalid_argument:
      return GRETA_INVALID_ARGUMENT;
    case Status::device_lost:
      return GRETA_DEVICE_LOST;
    case Status::io:
      return GRETA_IO;
    case Status::interrupted:
      return GRETA_INTERRUPTED;
    case Status::correctness:
      break;  // of candidates alone
  }
  return GRETA_INTERNAL;
}

}  // namespace

const char* last_error() noexcept {
  return last_message.c_str();
}

greta_status fail(Status status, std::string_view message) noexcept {
  try {
    last_message = message;
  } catch (...) {
    last_message.clear();
  }
  return status_of(status);
}

void refuse(std::string message) {
  throw Error(Failure{Status::invalid_argument, std::move(message), {}});
}

}  // namespace greta::runtime::c
