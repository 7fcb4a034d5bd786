#pragma once

#include <vector>

#include "kernels/model/embedded.hpp"

namespace greta::kernels {

/// Returns the files of kernels/described/language.
const std::vector<EmbeddedFile>& described_language_files();

}  // namespace greta::kernels
