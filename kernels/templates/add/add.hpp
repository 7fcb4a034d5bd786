#pragma once

#include "kernels/model/kernel_template.hpp"

namespace greta::kernels {

/// C = A + B.
KernelTemplate make_add();

}  // namespace greta::kernels
