#pragma once

#include <vector>

#include "runtime/device/compile/embedded_file.hpp"

namespace greta::tuner {

/// Returns the files of tuner/project/program.
const std::vector<EmbeddedFile>& project_files();

}  // namespace greta::tuner
