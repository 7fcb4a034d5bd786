#pragma once

#include "kernels/model/kernel_template.hpp"

namespace greta {

/// New keys and values are appended to their caches.
const KernelTemplate& kv_update_template();

}  // namespace greta
