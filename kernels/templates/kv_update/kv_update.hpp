#pragma once

#include "kernels/model/kernel_template.hpp"

namespace greta::kernels {

/// New keys and values are appended to their caches.
KernelTemplate make_kv_update();

}  // namespace greta::kernels
