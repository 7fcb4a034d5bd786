#pragma once

#include <vector>

#include "runtime/device/compile/embedded_file.hpp"

namespace greta::device {

/// Returns the files of runtime/device/hip/host/language.
const std::vector<EmbeddedFile>& host_language_files();

}  // namespace greta::device
