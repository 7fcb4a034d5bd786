#pragma once

#include "kernels/model/kernel_template.hpp"

namespace greta {

/// C = A + B.
const KernelTemplate& add_template();

}  // namespace greta
