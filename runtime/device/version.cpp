#include "runtime/device/version.hpp"

namespace greta::device {

std::string_view version() {
  return GRETA_VERSION;
}

}  // namespace greta::device
