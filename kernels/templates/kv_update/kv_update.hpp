#pragma once

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Makes the operation that appends new keys and values to their caches.
Operation make_kv_update();

}  // namespace greta::kernels
