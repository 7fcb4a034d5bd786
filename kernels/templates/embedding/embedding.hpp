#pragma once

#include "kernels/model/kernel_template.hpp"

namespace greta::kernels {

/// Rows of a table that ids name.
KernelTemplate make_embedding();

}  // namespace greta::kernels
