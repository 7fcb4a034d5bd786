#include "runtime/device/version.hpp"

namespace greta {

std::string_view version() {
  return GRETA_VERSION;
}

}  // namespace greta
