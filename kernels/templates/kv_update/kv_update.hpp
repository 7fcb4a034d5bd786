#pragma once

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// New keys and values are appended to their caches.
Operation make_kv_update();

}  // namespace greta::kernels
