#include "runtime/device/result.hpp"

namespace greta::device {

std::string_view to_string(Status status) {
  switch (status) {
    case Status::constraints:
      return "constraints";
    case Status::compile:
      return "compile";
    case Status::launch:
      return "launch";
    case Status::correctness:
      return "correctness";
    case Status::timeout:
      return "timeout";
    case Status::crash:
      return "crash";
    case Status::out_of_memory:
      return "out_of_memory";
    case Status::unavailable:
      return "unavailable";
    case Status::invalid_argument:
      return "invalid_argument";
    case Status::device_lost:
      return "device_lost";
    case Status::io:
      return "io";
    case Status::interrupted:
      return "interrupted";
  }
  return "unknown";
}

Failure bad_field(std::string field, std::string value, std::string reason) {
  std::string message = value.empty() ? field + " " + reason : field + " " + value + ": " + reason;
  return {Status::invalid_argument,
          std::move(message),
          {},
          BadField{std::move(field), std::move(value), std::move(reason)}};
}

}  // namespace greta::device
