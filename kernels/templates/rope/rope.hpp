#pragma once

#include "kernels/model/kernel_template.hpp"

namespace greta {

/// Rotary position embedding.
const KernelTemplate& rope_template();

}  // namespace greta
