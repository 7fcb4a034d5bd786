#pragma once

#include "kernels/model/kernel_template.hpp"

namespace greta::kernels {

/// The lowest column of each row's largest value.
KernelTemplate make_argmax();

}  // namespace greta::kernels
