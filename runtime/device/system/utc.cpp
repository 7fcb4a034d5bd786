#include "runtime/device/system/utc.hpp"

#include <fmt/chrono.h>

#include <ctime>

namespace greta::device {

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

}  // namespace greta::device
