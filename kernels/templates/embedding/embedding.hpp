#pragma once

#include "kernels/model/kernel_template.hpp"

namespace greta {

/// Rows of a table that ids name.
const KernelTemplate& embedding_template();

}  // namespace greta
