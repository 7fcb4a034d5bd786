#pragma once

#include "kernels/model/kernel_template.hpp"

namespace greta::kernels {

/// x times the share of a normal distribution below x.
KernelTemplate make_gelu();

}  // namespace greta::kernels
